"""Between codes and real numbers, and operators that are computed in real numbers between the two.

dequantize  x = f32(sx * (q - zx))
quantize    q = clamp(round(f32(x / sy)) + zy)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dryfit.network.layers.activation import Activation
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import Operand, OperatorCall
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import codes_of_real
from dryfit.reference.registry import evaluate

TIMES_RECIPROCAL = "times_reciprocal"
"""The option of a rule of `quantize`: whether `f32(x * f32(1 / sy))` takes the place of the division."""


def dequantize(call: OperatorCall, rule: MethodRule) -> Array:
    """FP32 numbers: `f32(sx * (q - zx))`, which is what `f32(f64(sx) * (q - zx))` is too."""
    del rule
    return real_values(call.operand(0))


def quantize(call: OperatorCall, rule: MethodRule) -> Array:
    """Codes of FP32 numbers; reads the rule's requantization and its option `times_reciprocal`.

    Infinities, and numbers of 2**31 steps and more, give the lowest or highest code, NaN the lowest. (TensorFlow Lite
    and Caffe2 convert them to an INT32 that overflows; what comes out there is none that a network can want.)
    """
    values = call.operand(0).values.astype(np.float32)
    return quantized(call, rule, values)


def dequantize_by_line(call: OperatorCall, rule: MethodRule) -> Array:
    """FP32 numbers: `f32(f32(sx * q) + f32(-zx * sx))`, which differs from `dequantize` in the last bit."""
    del rule
    operand = call.operand(0)
    return (
        operand.values.astype(np.float32) * operand.one_scale + -np.float32(operand.one_zero_point) * operand.one_scale
    )


def in_real_numbers(call: OperatorCall, rule: MethodRule) -> Array:
    """Operands dequantized, the layer in FP32 as `dryfit.reference` has it, the result limited and quantized."""
    if isinstance(call.layer, Activation):
        only = call.operand(0)
        return by_table(only, lambda distances: _evaluated(call, rule, [distances.astype(np.float32) * only.one_scale]))
    return _evaluated(call, rule, [None if one is None else real_values(one) for one in call.operands])


def _evaluated(call: OperatorCall, rule: MethodRule, operands: list[Array | None]) -> Array:
    result = evaluate(call.layer, operands)[0]
    return quantized(call, rule, np.clip(result, *np.asarray(call.limits, np.float32)))


def real_values(operand: Operand) -> Array:
    """The FP32 numbers that codes stand for; plain numbers as they are."""
    return operand.values if operand.scale is None else operand.distances.astype(np.float32) * operand.one_scale


def quantized(call: OperatorCall, rule: MethodRule, values: Array) -> Array:
    """Codes of FP32 numbers on the output's grid, in the output's type; reads what `quantize` does of the rule."""
    scale, zero_point = call.output_grid
    with np.errstate(over="ignore", invalid="ignore"):
        units = values * (np.float32(1) / scale) if rule.options.get(TIMES_RECIPROCAL) else values / scale
        return codes_of_real(units, rule.record, zero_point, call.code_range).astype(call.to_type.numpy)


_LOWEST_WEIGHT = np.int8(-127)


def calibrated_weights(call: OperatorCall, rule: MethodRule) -> Array:
    """INT8 codes of FP32 numbers, the lowest -127; reads the rule's requantization."""
    return np.maximum(quantize(call, rule), _LOWEST_WEIGHT)


# Functions of one code as tables --------------------------------------------------------------------------------------


def by_table(operand: Operand, function: Callable[[Array], Array]) -> Array:
    """The function of every element, of the operand's shape.

    Args:
        operand: INT8, UINT8 or INT16.
        function: of distances from the zero point, int32: those of all 256 codes, or of INT16 those of the elements.
    """
    if operand.values.dtype.itemsize > 1:
        return np.asarray(function(operand.distances))
    codes = np.arange(256, dtype=np.uint8).view(operand.values.dtype)
    table = function(codes.astype(np.int32) - np.int32(operand.one_zero_point))
    return np.asarray(table[operand.values.view(np.uint8)])


def exponential(values: Array) -> Array:
    """`float32` of `exp`, computed in FP64; infinity where FP32 ends."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(np.asarray(values, np.float64)).astype(np.float32)
