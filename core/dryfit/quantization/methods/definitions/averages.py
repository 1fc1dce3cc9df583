"""Average pooling over windows, and means over whole axes."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.layers.window_layer import Pooling
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.real_numbers import real_values
from dryfit.quantization.methods.definitions.weighted import output_range, with_tail
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    FixedPoint,
    codes_of_real,
    effective_multiplier,
    encoded,
    fixed_point,
    requantize,
    two_step,
)
from dryfit.quantization.rounding import RoundingMode, round_values
from dryfit.reference.convolution import counted_elements, views_of_windows

_ONE = np.asarray(1, np.float32)
CUT_OFFSET = "cut_offset"
"""The option of `mean_of_codes`: whether the zero points' difference is cut to a whole number, not rounded."""


def average_of_codes(call: OperatorCall, rule: MethodRule) -> Array:
    """The codes' sum divided by the cells inside the input, whole numbers throughout, half away from zero.

    Input and output have one grid: neither scale nor zero point takes part.
    """
    layer, codes = cast("Pooling", call.layer), call.operand(0).values
    total = np.asarray(sum(view.astype(np.int64) for view in views_of_windows(layer, codes.astype(np.int32), 0)))
    count = counted_elements(layer, codes.shape[2:]).astype(np.int64)
    magnitude = (np.abs(total) + count // 2) // count
    return _codes(np.sign(total) * magnitude, call, rule)


def average_of_real_values(call: OperatorCall, rule: MethodRule) -> Array:
    """The dequantized elements added in FP32, row after row of the window, divided by their count, then by sy.

    The count is that of the cells inside the input, or, where padding counts, of all the window, with what rounding an
    extent up adds. The zero point is added where the rule's requantization says.
    """
    layer, values = cast("Pooling", call.layer), real_values(call.operand(0))
    total = np.zeros((), np.float32)
    for view in views_of_windows(layer, values, 0):
        total = total + view
    count: Any = math.prod(layer.window_size_nd)
    if layer.average_count_excludes_padding:
        count = counted_elements(layer, values.shape[2:])
    average = total / np.asarray(count, np.float32)
    scale, zero_point = call.output_grid
    codes = codes_of_real(average / scale, rule.record, zero_point, output_range(call, rule))
    return codes.astype(call.to_type.numpy)


def average_of_sums(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(sum of (x - zx))` with the multiplier f32(sx / f32(sy * n)).

    n counts the axes' elements of a mean; of a window all its cells, those outside the input too, which add nothing.
    """
    total, count = _sums(call)
    scale, zero_point = call.output_grid
    factors = encoded(rule.record, float(call.operand(0).one_scale / (scale * np.float32(count))))
    codes = requantize(rule.record, total, factors, zero_point, output_range(call, rule))
    return codes.astype(call.to_type.numpy)


def mean_by_divided_multiplier(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(sum of (x - zx))` with the mantissa of sx / sy divided by n, rounded down.

    Before that the mantissa M is shifted left by h = min(floor(log2 n), 32, 31 + S), so that few of its bits are lost;
    its power of two S is h less after it.
    """
    total, count = _sums(call)
    scale, zero_point = call.output_grid
    ratio = effective_multiplier(rule.record.scale_rule, np.asarray(call.operand(0).one_scale), _ONE, np.asarray(scale))
    whole = fixed_point(ratio)
    shift = int(whole.shift)
    left = min(count.bit_length() - 1, 32, 31 + shift)
    divided = FixedPoint(np.asarray((int(whole.mantissa) << left) // count), np.asarray(shift - left))
    codes = two_step(total, divided, rule.record.rounding) + zero_point
    return _codes(codes, call, rule)


def mean_of_scaled_codes(call: OperatorCall, rule: MethodRule) -> Array:
    """`round(f32(f32(sum of x * s) + b))`, s = f32(f32(sx / sy) * f32(1 / n)), b = f32(zy - f32(n zx s)).

    The zero point is in b, so before the rounding.
    """
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    total, count = _sums(call)
    factor = operand.one_scale / scale * (np.float32(1) / np.float32(count))
    moved = np.float32(count * operand.one_zero_point)
    offset = np.float32(zero_point) - moved * factor
    values = (total.astype(np.float32) + moved) * factor + offset
    return codes_of_real(values, rule.record, 0, output_range(call, rule)).astype(call.to_type.numpy)


def mean_of_codes(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(sum of x) + zy - round(f32(f32(zx * sx) / sy))` with the multiplier sx / (n sy) of FP64.

    The codes are added as they are; the zero points meet in one number, rounded half away from zero or, by the option
    `cut_offset`, toward zero. Reads the options of vector tails.
    """
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    total, count = _sums(call)
    moved = np.asarray(np.float32(operand.one_zero_point) * operand.one_scale / scale)
    whole = np.trunc(moved) if rule.options.get(CUT_OFFSET) else round_values(moved, RoundingMode.HALF_AWAY_FROM_ZERO)
    offset = zero_point - int(whole)
    factor = fixed_point(float(operand.one_scale) / (count * float(scale)))
    sums = total + count * operand.one_zero_point
    codes = with_tail(rule, sums.shape, lambda record: two_step(sums, factor, record.rounding)) + offset
    return _codes(codes, call, rule)


def extreme_over_axes(call: OperatorCall, rule: MethodRule) -> Array:
    """The largest or smallest code over axes; input and output have one grid."""
    del rule
    layer = cast("Reduce", call.layer)
    values: Any = call.operand(0).values  # numpy's types know no `keepdims` that is a variable
    function = values.max if layer.op is ReduceOperation.MAX else values.min
    return np.asarray(function(axis=axes_in(layer.axes), keepdims=layer.keep_dims))


def _codes(values: Array, call: OperatorCall, rule: MethodRule) -> Array:
    """Whole numbers within the output's range, in its type."""
    return np.asarray(np.clip(values, *output_range(call, rule)).astype(call.to_type.numpy))


def _sums(call: OperatorCall) -> tuple[Array, int]:
    """Sums of distances from the zero point in INT64, of the output's shape, and how many make one."""
    layer, distances = call.layer, cast("Any", call.operand(0).distances)
    if isinstance(layer, Reduce):
        axes = axes_in(layer.axes)
        total = distances.sum(axis=axes, keepdims=layer.keep_dims, dtype=np.int64)
        return total, math.prod(distances.shape[axis] for axis in axes)
    pooling = cast("Pooling", layer)
    total = np.asarray(sum(view.astype(np.int64) for view in views_of_windows(pooling, distances, 0)))
    return total, math.prod(pooling.window_size_nd)
