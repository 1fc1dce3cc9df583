"""Unsqueeze."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.unsqueeze import Unsqueeze
from dryfit.reference.registry import Array, reference


@reference(Unsqueeze)
def unsqueeze(layer: Unsqueeze, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """A view with the axes."""
    return [np.expand_dims(inputs[0], axis=tuple(int(axis) for axis in inputs[1].reshape(-1)))]
