"""Shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.shape import ShapeLayer
from dryfit.reference.registry import Array, reference


@reference(ShapeLayer)
def shape(layer: ShapeLayer, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """The extents as `int64[rank]`."""
    return [np.asarray(inputs[0].shape, dtype=np.int64).reshape(-1)]
