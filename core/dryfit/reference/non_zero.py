"""Non-zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.non_zero import NonZero
from dryfit.reference.conversion import convert
from dryfit.reference.registry import Array, reference


@reference(NonZero)
def non_zero(layer: NonZero, inputs: Sequence[Array]) -> list[Array]:
    """The indices as `[rank, count]`, in row-major order."""
    return [np.argwhere(convert(inputs[0], DataType.BOOL)).T.astype(layer.indices_type.numpy)]
