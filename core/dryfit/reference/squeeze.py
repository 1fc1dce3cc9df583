"""Squeeze."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.squeeze import Squeeze
from dryfit.reference.registry import Array, reference


@reference(Squeeze)
def squeeze(layer: Squeeze, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """A view without the axes."""
    return [np.squeeze(inputs[0], axis=tuple(int(axis) for axis in inputs[1].reshape(-1)))]
