"""Sums of two quantized tensors, and of a tensor with what differs by channel only: operands broadcast.

Every definition clamps to the codes of a fused activation's limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import Operand, OperatorCall
from dryfit.quantization.methods.conditions import sum_bits
from dryfit.quantization.methods.definitions.weighted import is_in_vectors, output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    codes_of_real,
    doubling_high_product,
    encoded,
    fixed_point,
    requantize,
    shifted_right,
    two_step,
)

SHIFT_BITS = "shift_bits"
"""The option of `sum_by_common_shift`: bits behind the point of the larger ratio, of which one is 1 to 2."""
CUT_OPERANDS = "cut_operands"
"""The option of `sum_by_three_multipliers`: whether vectors, of as many elements as `vector_elements` says, cut."""
IS_DIFFERENCE = "is_difference"
"""The option of `sum_by_common_shift`: whether the second operand is subtracted."""


def sum_by_three_multipliers(call: OperatorCall, rule: MethodRule) -> Array:
    """Both operands with 20 bits behind the point, scaled to twice the larger scale; their sum scaled to the output's.

    T = 2 max(sa, sb);  y = requantize(fixed((a - za) << 20, sa / T) + fixed((b - zb) << 20, sb / T), T / (2**20 sy)),
    all in FP64 and with the two roundings of the rule's requantization; INT16 has 15 bits in the place of 20. Where the
    option `cut_operands` is set, vectors of elements shift operands right without rounding.
    """
    scale, zero_point = call.output_grid
    operands = (call.operand(0), call.operand(1))
    twice = 2 * max(float(one.one_scale) for one in operands)
    total = sum(scaled_operand(one, float(one.one_scale) / twice, call, rule) for one in operands)
    factors = encoded(rule.record, twice / (2 ** sum_bits(call) * float(scale)))
    codes = requantize(rule.record, np.asarray(total), factors, zero_point, output_range(call, rule))
    return codes.astype(call.to_type.numpy)


def scaled_operand(operand: Operand, factor: float, call: OperatorCall, rule: MethodRule) -> Array:
    """Distances from the zero point with `sum_bits` behind the point, times a factor of at most 1/2."""
    multiplier = fixed_point(factor)
    distances = operand.distances.astype(np.int64) << sum_bits(call)
    scaled = two_step(distances, multiplier, rule.record.rounding)
    if not rule.options.get(CUT_OPERANDS):
        return scaled
    cut = doubling_high_product(distances, multiplier.mantissa) >> -multiplier.shift
    return np.where(is_in_vectors(rule, call.output_shape), cut, scaled)


def sum_by_common_shift(call: OperatorCall, rule: MethodRule) -> Array:
    """Both operands with whole multipliers of one power of two: A = rte(f32(sa / sy) * 2**h), B likewise.

    h = shift_bits - floor(log2(larger ratio));  y = round((A (a - za) + B (b - zb)) / 2**h) + zy. Reads the options
    `shift_bits` and `is_difference`, and the rounding of the rule's requantization.
    """
    scale, zero_point = call.output_grid
    operands = (call.operand(0), call.operand(1))
    ratios = [one.one_scale / scale for one in operands]
    _, exponent = np.frexp(max(ratios))  # a fraction from 1/2 to 1: the logarithm's floor is one less
    shift = rule.options[SHIFT_BITS] - (int(exponent) - 1)
    factors = [int(np.rint(np.ldexp(np.float64(ratio), shift))) for ratio in ratios]
    if rule.options.get(IS_DIFFERENCE):
        factors[1] = -factors[1]
    total = sum(one.distances.astype(np.int64) * factor for one, factor in zip(operands, factors, strict=True))
    codes = shifted_right(np.asarray(total), shift, rule.record.rounding) + zero_point
    return np.asarray(np.clip(codes, *output_range(call, rule)).astype(call.to_type.numpy))


def sum_by_fused_products(call: OperatorCall, rule: MethodRule) -> Array:
    """`fma(a, ra, fma(b, rb, k))` with ra = f32(sa / sy), rb = f32(sb / sy), k = f32(zy - fma(ra, za, f32(rb zb))).

    The zero point is in k, so before the rounding. An operand that one element of repeats along the innermost axis is
    b, whichever side it is on.
    """
    scale, zero_point = call.output_grid
    a, b = call.operand(0), call.operand(1)
    if _is_repeated_innermost(a, call.output_shape):
        a, b = b, a
    ra, rb = a.one_scale / scale, b.one_scale / scale
    zero_points = fused_multiply_add(ra, np.float32(a.one_zero_point), rb * np.float32(b.one_zero_point))
    constant = np.float32(zero_point) - zero_points
    values = fused_multiply_add(a.values, ra, fused_multiply_add(b.values, rb, constant))
    return codes_of_real(values, rule.record, 0, output_range(call, rule)).astype(call.to_type.numpy)


def _is_repeated_innermost(operand: Operand, output_shape: tuple[int, ...]) -> bool:
    """Whether the last axis along which the output extends is one that the operand does not extend along."""
    axes = [axis for axis, extent in enumerate(output_shape) if extent > 1]
    return bool(axes) and operand.values.shape[axes[-1]] == 1


# A product and a sum with one rounding --------------------------------------------------------------------------------


Numbers = Array | np.floating[Any]


def fused_multiply_add(a: Numbers, b: Numbers, c: Numbers) -> Array:
    """`f32(a * b + c)` of FP32 numbers, rounded once, ties to even; they broadcast.

    The product is exact in FP64. Its sum with c is rounded to odd there: to the neighbour whose last bit is 1 wherever
    it is not exact. FP64 has more than two bits beyond FP32, so that the second rounding sees what the first one left.

    Source: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    a, b, c = (np.asarray(number, np.float32).astype(np.float64) for number in (a, b, c))
    product = a * b
    with np.errstate(invalid="ignore"):  # infinities have no remainder
        total = np.asarray(product + c)
        back = total - product
        lost = (product - (total - back)) + (c - back)  # the sum's rounding error, exactly (Knuth)
        is_even = (total.view(np.int64) & 1) == 0
        towards = np.where(lost > 0, np.inf, -np.inf)
        is_moved = np.isfinite(total) & (lost != 0) & is_even
    with np.errstate(over="ignore"):
        return np.where(is_moved, np.nextafter(total, towards), total).astype(np.float32)
