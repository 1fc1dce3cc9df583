"""Running sums and products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.cumulative import Cumulative, CumulativeOperation
from dryfit.reference.precision import rounded
from dryfit.reference.registry import Array, compute_type, reference


@reference(Cumulative)
def cumulative(layer: Cumulative, inputs: Sequence[Array]) -> list[Array]:
    """The sum or product of each element and those before it, along the axis of input 1; integers wrap around."""
    x = inputs[0]
    axis = int(inputs[1].item())
    if not -x.ndim <= axis < x.ndim:
        raise layer.problem("The input does not have the axis", found=axis, allowed=f"{-x.ndim} to {x.ndim - 1}")
    wide = np.moveaxis(x.astype(compute_type(x.dtype), copy=False), axis, 0)
    if layer.reverse:
        wide = wide[::-1]
    is_sum = layer.op is CumulativeOperation.SUM
    total = (np.cumsum if is_sum else np.cumprod)(wide, axis=0, dtype=wide.dtype)
    if layer.exclusive:
        first = np.full_like(total[:1], 0 if is_sum else 1)
        total = np.concatenate([first, total[:-1]])
    if layer.reverse:
        total = total[::-1]
    return [rounded(np.moveaxis(total, 0, axis), x.dtype)]
