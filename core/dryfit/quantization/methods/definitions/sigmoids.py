"""Sigmoid as libraries evaluate it: the same function, and other last bits.

`x` is f32(sx * (q - zx)). Every definition makes a table of all codes, and quantizes its FP32 numbers by the rule's
requantization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.code_tables import by_table, exponential
from dryfit.quantization.methods.definitions.fused_multiply_add import fused_multiply_add
from dryfit.quantization.methods.definitions.output_codes import output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import codes_of_real

Array = np.ndarray[Any, Any]
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
