"""Concatenation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.concatenation import Concatenation
from dryfit.reference.registry import Array, reference


@reference(Concatenation)
def concatenation(layer: Concatenation, inputs: Sequence[Array]) -> list[Array]:
    """The inputs one after the other on `axis`."""
    return [np.concatenate(inputs, axis=layer.axis)]
