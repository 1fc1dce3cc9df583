"""Reductions of axes, running sums and products, histograms and rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.ranking import (
    BIN_BITS,
    BINS,
    HEAD_WORDS,
    INFINITE,
    LEAST_EXPONENT,
    MAXIMUM,
    MINIMUM,
    NAN,
    NEGATIVE_EXPONENT,
    NO_EXPONENT,
    POSITIVE_EXPONENT,
    RECORD_WORDS,
    VALUES,
    ZEROS,
    BoundingBoxFormat,
    HistogramLayer,
    Nms,
    TopK,
    TopKOperation,
)
from dryfit.network.layers.reduction import Cumulative, CumulativeOperation, Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.tensor import Array
from dryfit.reference.precision import rounded, widened
from dryfit.reference.registry import compute_type, reference


@reference(Reduce)
def reduce(layer: Reduce, inputs: Sequence[Array]) -> list[Array]:
    """`op` over the axes of the mask.

    Integers are computed in their own type and wrap around; their average is truncated toward zero. Over nothing, SUM
    is 0, PROD 1, MAX and MIN the lowest and highest value of the type, and AVG NaN.
    """
    x = inputs[0]
    wide: Any = x.astype(compute_type(x.dtype), copy=False)  # numpy's types know no `keepdims` that is a variable
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


def _average(wide: Any, axes: tuple[int, ...], keep: bool) -> Array:
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
        raise layer.problem(
            "The axis must be an axis of the input",
            found=axis,
            allowed=f"{-x.ndim} to {x.ndim - 1}",
            remedy="Pass another axis",
        )
    wide = np.moveaxis(x.astype(compute_type(x.dtype), copy=False), axis, 0)
    if layer.reverse:
        wide = wide[::-1]
    is_sum = layer.op is CumulativeOperation.SUM
    total = wide.cumsum(0, wide.dtype) if is_sum else wide.cumprod(0, wide.dtype)
    if layer.exclusive:
        first: Array = np.full_like(total[:1], 0 if is_sum else 1)
        total = np.concatenate([first, total[:-1]])
    if layer.reverse:
        total = total[::-1]
    return [rounded(np.moveaxis(total, 0, axis), x.dtype)]


# Histograms -----------------------------------------------------------------------------------------------------------


Counts = np.ndarray[Any, np.dtype[np.int64]]

_CHUNK = 1 << 15
"""Values that are binned at once: their temporaries fit into a core's own cache."""


@reference(HistogramLayer)
def histogram(layer: HistogramLayer, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001  it has no parameter
    """The record that `HistogramLayer` describes."""
    return [histogram_record(widened(inputs[0]))]


def histogram_record(values: Array) -> Counts:
    """The record of float32 or float64 values of any shape: `int64[4104]`, as `HistogramLayer` describes it."""
    flat = values.reshape(-1)
    finite = np.isfinite(flat)
    nan = int(np.count_nonzero(np.isnan(flat)))
    infinite = flat.size - int(np.count_nonzero(finite)) - nan
    flat = flat if nan + infinite == 0 else flat[finite]
    # A sum with zero turns -0.0 into 0.0: equal values have to give equal records.
    ends = [float(flat.min()) + 0.0, float(flat.max()) + 0.0] if flat.size else [math.inf, -math.inf]
    exponents = exponent_of(max(ends[1], 0.0)), exponent_of(max(-ends[0], 0.0))
    record = np.zeros(RECORD_WORDS, np.int64)
    sides = record[HEAD_WORDS:].reshape(2, BINS)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        for side, magnitudes in enumerate((part[part > 0], -part[part < 0])):
            sides[side] += _bin_counts(magnitudes, exponents[side])
    head = record[:HEAD_WORDS]
    head[[POSITIVE_EXPONENT, NEGATIVE_EXPONENT]] = exponents
    head[[MINIMUM, MAXIMUM]] = np.array(ends, np.float64).view(np.int64)
    head[[NAN, INFINITE, VALUES]] = nan, infinite, values.size
    head[ZEROS] = flat.size - int(sides.sum())
    return record


def exponent_of(magnitude: float) -> int:
    """The exponent for a largest magnitude; `NO_EXPONENT` for zero."""
    return max(math.frexp(magnitude)[1], LEAST_EXPONENT) if magnitude else NO_EXPONENT


def _bin_counts(magnitudes: Array, exponent: int) -> Counts:
    """How many magnitudes, all above zero and below 2^exponent, lie in each bin."""
    if not magnitudes.size:
        return np.zeros(BINS, np.int64)
    magnitudes *= magnitudes.dtype.type(math.ldexp(1.0, BIN_BITS - exponent))
    return np.bincount(magnitudes.astype(np.intp), minlength=BINS)


# Rankings -------------------------------------------------------------------------------------------------------------


@reference(TopK)
def top_k(layer: TopK, inputs: Sequence[Any]) -> list[Array]:
    """The k first elements in descending (MAX) or ascending (MIN) order, and their indices.

    Raises:
        NetworkError: k, where it is an input, is not between 0 and the extent of the axis.
    """
    x: Array = inputs[0]
    k = layer.k
    if len(inputs) > 1 and inputs[1] is not None:
        k = int(inputs[1].item())
    axis, extent = layer.axis, x.shape[layer.axis]
    if not 0 <= k <= extent:
        raise layer.problem(
            "k must be between 0 and the extent of the axis", found=k, allowed=f"0 to {extent}", remedy="Pass another k"
        )
    keys = x.astype(compute_type(x.dtype), copy=False)
    if layer.op is TopKOperation.MIN:
        order = np.argsort(keys, axis=axis, kind="stable")
    elif k == 1:
        order = np.expand_dims(np.argmax(keys, axis=axis), axis)
    else:
        # Sorted from the back, so that turning the order round puts the lower of two equal elements first again.
        order = extent - 1 - np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
    chosen = np.take(order, np.arange(k), axis=axis)
    return [np.take_along_axis(x, chosen, axis=axis), chosen.astype(layer.indices_type.numpy)]


@reference(Nms)
def nms(layer: Nms, inputs: Sequence[Any]) -> list[Array]:
    """Rows of (batch, class, box) and their count, chosen greedily by falling score."""
    boxes, scores, most, overlap, threshold = (*inputs, None, None)[:5]
    limit = int(most.item())
    largest_overlap = 0.0 if overlap is None else float(overlap.item())
    least_score = 0.0 if threshold is None else float(threshold.item())
    corners = _corners(layer, widened(boxes))
    rows: list[tuple[int, int, int]] = []
    for batch, by_class in enumerate(scores.swapaxes(1, 2)):
        for label, score in enumerate(by_class):
            group = corners[batch] if boxes.ndim == 3 else corners[batch][:, min(label, boxes.shape[2] - 1)]
            order = np.argsort(-widened(score), kind="stable")[: layer.topk_box_limit]
            order = order[score[order] > least_score]
            rows += [(batch, label, box) for box in _chosen(group, order, limit, largest_overlap)]
    indices = np.array(rows, dtype=layer.indices_type.numpy).reshape(-1, 3)
    return [indices, np.array(len(rows), dtype=np.int32)]


def _corners(layer: Nms, boxes: Array) -> Array:
    """(x1, y1, x2, y2) with the lower corner first."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if layer.bounding_box_format is BoundingBoxFormat.CENTER_SIZES:
        first, second = first - second / 2, first + second / 2
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _chosen(boxes: Array, order: Array, limit: int, largest_overlap: float) -> list[int]:
    """The boxes that stay, in the order given, at most `limit`."""
    chosen: list[int] = []
    while order.size and len(chosen) < limit:
        best, order = int(order[0]), order[1:]
        chosen.append(best)
        order = order[_overlap(boxes[best], boxes[order]) <= largest_overlap]
    return chosen


def _overlap(box: Array, others: Array) -> Array:
    """Intersection over union; 0 where a box has no area."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.prod(np.maximum(sides, 0), axis=1)
    area, areas = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = area + areas - shared
    return np.where((shared > 0) & (union > 0), shared / union, 0)
