"""Functions of one code: ReLU with its clipped and leaky forms, and sigmoid as libraries evaluate it, to the last bit.

`v` is the distance `q - zx` of a code from its zero point, `x` is f32(sx * v). Every sigmoid makes a table of all
codes, and quantizes its FP32 numbers by the rule's requantization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from dryfit.network.layers.activation import ActivationType
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.real_numbers import by_table, exponential
from dryfit.quantization.methods.definitions.sums import fused_multiply_add
from dryfit.quantization.methods.definitions.weighted import output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    codes_of_real,
    effective_multiplier,
    encoded,
    requantize,
    shifted_right,
)

FRACTION_BITS = "fraction_bits"
"""The option of `leaky_relu_by_shift`: how many bits of the ratios are behind the point."""


def relu(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(v)`, clamped to the codes of the activation's limits."""
    return _with_ratio(_limited(call), rule)


def relu_of_codes(call: OperatorCall, rule: MethodRule) -> Array:
    """The codes themselves, clamped to those of the activation's limits; input and output have one grid."""
    low, high = output_range(_limited(call), rule)
    return np.clip(call.operand(0).values, low, high).astype(call.to_type.numpy)


def _limited(call: OperatorCall) -> OperatorCall:
    """The call with the limits that its layer, a ReLU or a clip, stands for."""
    low, high = activation_limits(call)
    return attrs.evolve(call, limits=(max(low, call.limits[0]), min(high, call.limits[1])))


def activation_limits(call: OperatorCall) -> tuple[float, float]:
    """Lowest and highest real number that a ReLU or a clip lets through."""
    layer: Any = call.layer
    return (layer.alpha, layer.beta) if layer.activation_type is ActivationType.CLIP else (0.0, np.inf)


def _with_ratio(call: OperatorCall, rule: MethodRule) -> Array:
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    factors = encoded(
        rule.record,
        effective_multiplier(rule.record.scale_rule, np.asarray(operand.one_scale), _ONE, np.asarray(scale)),
    )
    codes = output_range(call, rule)
    table = by_table(operand, lambda v: requantize(rule.record, v, factors, zero_point, codes))
    return table.astype(call.to_type.numpy)


_ONE = np.asarray(1, np.float32)


def leaky_relu(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(v)` with the ratio `f32(sx / sy)`, or where v < 0 with `f32(f32(sx * alpha) / sy)`."""
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    slope = np.float32(getattr(call.layer, "alpha", 0))
    ratios = (operand.one_scale / scale, operand.one_scale * slope / scale)
    codes = output_range(call, rule)

    def function(v: Array) -> Array:
        above, below = (
            requantize(rule.record, v, encoded(rule.record, float(one)), zero_point, codes) for one in ratios
        )
        return np.where(v >= 0, above, below)

    return by_table(operand, function).astype(call.to_type.numpy)


def leaky_relu_by_shift(call: OperatorCall, rule: MethodRule) -> Array:
    """`round(v * rte(2**bits * ratio) / 2**bits) + zy`: ratio f32(sx / sy), or where v < 0 f32(alpha * that).

    Reads the option `fraction_bits` and the rounding of the rule's requantization.
    """
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    bits, slope = rule.options[FRACTION_BITS], np.float32(getattr(call.layer, "alpha", 0))
    ratio = operand.one_scale / scale
    above, below = (int(np.rint(np.float32(2**bits) * one)) for one in (ratio, ratio * slope))
    codes = output_range(call, rule)

    def function(v: Array) -> Array:
        products = v.astype(np.int64) * np.where(v >= 0, above, below)
        return np.asarray(np.clip(shifted_right(products, bits, rule.record.rounding) + zero_point, *codes))

    return by_table(operand, function).astype(call.to_type.numpy)


def leaky_relu_by_ratio(call: OperatorCall, rule: MethodRule) -> Array:
    """`f32(f32(sx / sy) * v)`, below zero times alpha, then rounded: one FP32 operation at a time."""
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    ratio, slope = operand.one_scale / scale, np.float32(getattr(call.layer, "alpha", 0))
    codes = output_range(call, rule)

    def function(v: Array) -> Array:
        units = v.astype(np.float32) * ratio
        return codes_of_real(np.where(units < 0, units * slope, units), rule.record, zero_point, codes)

    return by_table(operand, function).astype(call.to_type.numpy)


_LIMIT = np.float32(18)
_NUMERATOR = tuple(
    np.float32(factor)
    for factor in (
        4.37031012579801e-11,
        1.15627324459942e-07,
        6.08574864600143e-05,
        8.51377133304701e-03,
        2.48287947061529e-01,
    )
)
_DENOMINATOR = tuple(
    np.float32(factor)
    for factor in (
        6.10247389755681e-13,
        5.76102136993427e-09,
        6.29106785017040e-06,
        1.70198817374094e-03,
        1.16817656904453e-01,
        9.93151921023180e-01,
    )
)


def sigmoid(call: OperatorCall, rule: MethodRule) -> Array:
    """`f32(1 / f32(1 + exp(-x)))` quantized; where sy is 1/256, `f32(256 / f32(1 + exp(-x)))` is the same."""
    return _quantized(call, rule, lambda x: np.float32(1) / (np.float32(1) + exponential(-x)))


def sigmoid_in_double(call: OperatorCall, rule: MethodRule) -> Array:
    """`f32(1 / (1 + exp(-x)))` computed in FP64, quantized."""

    def function(x: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray((1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32))

    return _quantized(call, rule, function)


def sigmoid_by_quotient(call: OperatorCall, rule: MethodRule) -> Array:
    """1/2 plus an odd polynomial of degree 9 by an even one of degree 10, each step a fused multiply-add; quantized.

    Source: the factors are those of ONNX Runtime's logistic function on x86 with fused multiply-add, whose arguments
    are clamped to -18 and 18.
    """

    def function(x: Array) -> Array:
        x = np.clip(x, -_LIMIT, _LIMIT)
        square = x * x
        numerator = x * _polynomial(square, _NUMERATOR)
        return np.clip(numerator / _polynomial(square, _DENOMINATOR) + np.float32(0.5), np.float32(0), np.float32(1))

    return _quantized(call, rule, function)


def _polynomial(x: Array, factors: tuple[np.float32, ...]) -> Array:
    """The polynomial by Horner's rule, the factor of the highest power first."""
    value = np.full_like(x, factors[0])
    for factor in factors[1:]:
        value = fused_multiply_add(value, x, factor)
    return value


def _quantized(call: OperatorCall, rule: MethodRule, function: Callable[[Array], Array]) -> Array:
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    codes = output_range(call, rule)

    def of_distances(v: Array) -> Array:
        values = function(v.astype(np.float32) * operand.one_scale)
        return codes_of_real(values / scale, rule.record, zero_point, codes)

    return by_table(operand, of_distances).astype(call.to_type.numpy)
