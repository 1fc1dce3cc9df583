"""Functions of two quantized tensors besides their sum: product, differences, comparisons, extremes, parametric ReLU.

Operands broadcast. Every definition clamps to the codes of a fused activation's limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import sum_bits
from dryfit.quantization.methods.definitions.sums import scaled_operand
from dryfit.quantization.methods.definitions.weighted import output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    effective_multiplier,
    encoded,
    fixed_point,
    multipliers,
    requantize,
    two_step,
)
from dryfit.quantization.rounding import RoundingMode

_AWAY = RoundingMode.HALF_AWAY_FROM_ZERO


def product(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize((a - za) (b - zb))`, with the scale of b in the place of the weights'."""
    a, b, (scale, zero_point) = call.operand(0), call.operand(1), call.output_grid
    factors = multipliers(rule.record, a.one_scale, b.one_scale, scale)
    sums = a.distances.astype(np.int64) * b.distances
    return requantize(rule.record, sums, factors, zero_point, output_range(call, rule)).astype(call.to_type.numpy)


def difference_by_three_multipliers(call: OperatorCall, rule: MethodRule) -> Array:
    """As `sum_by_three_multipliers`, with the second operand subtracted after it was scaled."""
    scale, zero_point = call.output_grid
    operands = (call.operand(0), call.operand(1))
    twice = 2 * max(float(one.one_scale) for one in operands)
    first, second = (scaled_operand(one, float(one.one_scale) / twice, call, rule) for one in operands)
    factors = encoded(rule.record, twice / (2 ** sum_bits(call) * float(scale)))
    codes = requantize(rule.record, first - second, factors, zero_point, output_range(call, rule))
    return codes.astype(call.to_type.numpy)


_SQUARE_BITS = 7


def squared_difference(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(d^2)`, d the difference of both operands with 7 bits behind the point, scaled to T = 2 max(sa, sb).

    The last multiplier is T^2 / (2**14 sy).
    """
    scale, zero_point = call.output_grid
    a, b = call.operand(0), call.operand(1)
    twice = 2 * max(float(a.one_scale), float(b.one_scale))
    first, second = (
        two_step(one.distances.astype(np.int64) << _SQUARE_BITS, fixed_point(float(one.one_scale) / twice), _AWAY)
        for one in (a, b)
    )
    factors = encoded(rule.record, twice * twice / (2 ** (2 * _SQUARE_BITS) * float(scale)))
    codes = requantize(rule.record, np.square(first - second), factors, zero_point, output_range(call, rule))
    return codes.astype(call.to_type.numpy)


_COMPARISON_BITS = 8
_COMPARED: dict[ElementWiseOperation, Callable[[Array, Array], Array]] = {
    ElementWiseOperation.EQUAL: np.equal,
    ElementWiseOperation.GREATER: np.greater,
    ElementWiseOperation.GREATER_EQUAL: np.greater_equal,
    ElementWiseOperation.LESS: np.less,
    ElementWiseOperation.LESS_EQUAL: np.less_equal,
}


def comparison(call: OperatorCall, rule: MethodRule) -> Array:
    """Which of two numbers are equal, or one the larger: each is `two_step(v << 8, its scale)`."""
    record = rule.record
    first, second = (
        two_step(one.distances.astype(np.int64) << _COMPARISON_BITS, fixed_point(float(one.one_scale)), record.rounding)
        for one in (call.operand(0), call.operand(1))
    )
    return _COMPARED[cast("Elementwise", call.layer).op](first, second)


def comparison_of_codes(call: OperatorCall, rule: MethodRule) -> Array:
    """Which of two codes are equal, or one the larger; their grids are not looked at."""
    del rule
    return _COMPARED[cast("Elementwise", call.layer).op](call.operand(0).values, call.operand(1).values)


def extreme_of_codes(call: OperatorCall, rule: MethodRule) -> Array:
    """The larger or smaller code; input and output have one grid."""
    del rule
    layer = call.layer
    is_larger = isinstance(layer, Elementwise) and layer.op is ElementWiseOperation.MAX
    return (np.maximum if is_larger else np.minimum)(call.operand(0).values, call.operand(1).values)


def parametric_relu(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(v)` with the ratio sx / sy, or where v < 0 `requantize(v (a - za))` with sx * sa / sy."""
    x, slopes, (scale, zero_point) = call.operand(0), call.operand(1), call.output_grid
    one = np.float32(1)
    record, codes = rule.record, output_range(call, rule)
    above = encoded(record, effective_multiplier(record.scale_rule, x.one_scale, one, scale))
    below = multipliers(record, x.one_scale, slopes.one_scale, scale)
    distances = x.distances.astype(np.int64)
    positive = requantize(record, distances, above, zero_point, codes)
    negative = requantize(record, distances * slopes.distances, below, zero_point, codes)
    return np.where(distances >= 0, positive, negative).astype(call.to_type.numpy)
