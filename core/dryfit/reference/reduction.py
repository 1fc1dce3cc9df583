"""Reductions of axes, and running sums and products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.reduction import Cumulative, CumulativeOperation, Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.reference.precision import rounded
from dryfit.reference.registry import Array, compute_type, reference


@reference(Reduce)
def reduce(layer: Reduce, inputs: Sequence[Array]) -> list[Array]:
    """`op` over the axes of the mask.

    Integers are computed in their own type and wrap around; their average is truncated toward zero. Over nothing, SUM
    is 0, PROD 1, MAX and MIN the lowest and highest value of the type, and AVG NaN.
    """
    x = inputs[0]
    wide = x.astype(compute_type(x.dtype), copy=False)
    axes, keep = axes_in(layer.axes), layer.keep_dims
    if layer.op is ReduceOperation.SUM:
        y = wide.sum(axis=axes, keepdims=keep, dtype=wide.dtype)
    elif layer.op is ReduceOperation.PROD:
        y = wide.prod(axis=axes, keepdims=keep, dtype=wide.dtype)
    elif layer.op is ReduceOperation.AVG:
        y = _average(wide, axes, keep)
    else:
        is_maximum = layer.op is ReduceOperation.MAX
        initial = _neutral(wide, is_maximum)
        y = (wide.max if is_maximum else wide.min)(axis=axes, keepdims=keep, initial=initial)
    return [rounded(np.asarray(y), x.dtype)]


def _average(wide: Array, axes: tuple[int, ...], keep: bool) -> Array:
    count = math.prod(wide.shape[axis] for axis in axes)
    if not np.issubdtype(wide.dtype, np.integer):
        return np.asarray(wide.sum(axis=axes, keepdims=keep, dtype=wide.dtype) / wide.dtype.type(count))
    total = wide.sum(axis=axes, keepdims=keep, dtype=np.float64)
    return np.asarray(np.trunc(total / count)).astype(wide.dtype)


def _neutral(wide: Array, is_maximum: bool) -> float | int | bool:
    """What changes no maximum (or minimum) of this type."""
    if wide.dtype == np.bool_:
        return not is_maximum
    if np.issubdtype(wide.dtype, np.integer):
        limits = np.iinfo(wide.dtype)
        return int(limits.min if is_maximum else limits.max)
    return -math.inf if is_maximum else math.inf


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
