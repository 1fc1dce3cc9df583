"""Functions of one code other than activations' simplest forms: tables of real functions, and hard swish in INT16.

`v` is the distance `q - zx` of a code from its zero point, `x` is f32(sx * v).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Unary, UnaryOperation
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.real_numbers import by_table, quantized
from dryfit.quantization.methods.definitions.weighted import output_range
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import encoded, fixed_point, requantize, shifted_right
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.registry import evaluate

Function = Callable[[Array], Array]


def _erf(values: Array) -> Array:
    return np.asarray([math.erf(one) for one in values.ravel().tolist()]).reshape(values.shape)


_ROOT_OF_HALF = 1 / math.sqrt(2)


def _gelu(x: Array) -> Array:
    """`f32(f32(x / 2) * f32(1 + e))`, e = f32(erf(f32(x / sqrt(2)))): one FP32 operation after the other."""
    error = _erf((x * _ROOT_OF_HALF).astype(np.float32).astype(np.float64)).astype(np.float32)
    return np.asarray(x.astype(np.float32) * np.float32(0.5) * (np.float32(1) + error))


def _gelu_by_tanh(x: Array) -> Array:
    """`x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`."""
    return np.asarray(x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


FUNCTIONS: Mapping[ActivationType | UnaryOperation, Function] = {
    ActivationType.TANH: np.tanh,
    ActivationType.GELU_ERF: _gelu,
    ActivationType.GELU_TANH: _gelu_by_tanh,
    UnaryOperation.EXP: np.exp,
    UnaryOperation.LOG: np.log,
}
"""Of numbers in FP64; what they give is rounded to FP32 once."""


def function_of(call: OperatorCall) -> ActivationType | UnaryOperation | None:
    """Return which function of one number a call is; None for another operator."""
    if isinstance(call.layer, Activation):
        return call.layer.activation_type
    return call.layer.op if isinstance(call.layer, Unary) else None


def function_by_table(call: OperatorCall, rule: MethodRule) -> Array:
    """`f32(function(x))` quantized by the rule's requantization, and its option `times_reciprocal`."""
    operand, kind = call.operand(0), function_of(call)
    function = None if kind is None else FUNCTIONS.get(kind)

    def values(distances: Array) -> Array:
        x = distances.astype(np.float32) * operand.one_scale
        with np.errstate(all="ignore"):
            found = evaluate(call.layer, [x])[0] if function is None else function(x.astype(np.float64))
        return quantized(call, rule, np.asarray(found, np.float32))

    return by_table(operand, values)


def square_root(call: OperatorCall, rule: MethodRule) -> Array:
    """`trunc(f32(f32(sqrt(x)) / sy))`, rounded down as LiteRT's kernel converts it."""
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    low, high = output_range(call, rule)

    def values(distances: Array) -> Array:
        x = np.maximum(distances, 0).astype(np.float32) * operand.one_scale
        return np.asarray(np.clip(np.trunc(np.sqrt(x) / scale).astype(np.int64) + zero_point, low, high))

    return by_table(operand, values).astype(call.to_type.numpy)


def negated_codes(call: OperatorCall, rule: MethodRule) -> Array:
    """`-q` of the codes, of which the lowest wraps around; scales and zero points are not looked at."""
    del rule
    return -call.operand(0).values


def absolute(call: OperatorCall, rule: MethodRule) -> Array:
    """`requantize(|v|)` with the ratio f32(sx / sy)."""
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    factors = encoded(rule.record, float(operand.one_scale / scale))
    codes = output_range(call, rule)
    table = by_table(operand, lambda v: requantize(rule.record, np.abs(v), factors, zero_point, codes))
    return table.astype(call.to_type.numpy)


# Hard swish in INT16 --------------------------------------------------------------------------------------------------

_SHORT = (-(2**15), 2**15 - 1)


def hard_swish(call: OperatorCall, rule: MethodRule) -> Array:
    """`x * min(max(x + 3, 0), 6) / 6` with 7 bits behind the code's point, each product the high half of INT16 ones.

    The factor's scale is 3 / 2**15, so that INT16 saturates it where it is 0 or 6 / 6.

    Source: TensorFlow Lite's description of its hard swish; measured against it.
    """
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    fine = np.float32(1 / 128) * operand.one_scale
    to_output, output_shift = _short_factor(fine / scale)
    to_factor, factor_shift = _short_factor(fine / (np.float32(3) / np.float32(32768)))
    codes = output_range(call, rule)

    def function(v: Array) -> Array:
        high = np.asarray(v, np.int64) << 7
        on_output = _rounded_high(high, to_output)
        factor = high
        if factor_shift > 0:
            factor = np.clip(factor << (factor_shift - 1), *_SHORT)
        factor = _rounded_high(factor, to_factor)
        if factor_shift > 0:
            factor = np.clip(factor << 1, *_SHORT)
        if factor_shift < 0:
            factor = shifted_right(factor, -factor_shift, RoundingMode.HALF_AWAY_FROM_ZERO)
        factor = (factor + (1 << 15)) >> 1
        whole = np.trunc(factor * on_output / 2.0**15).astype(np.int64)
        found = shifted_right(whole, -output_shift, rule.record.rounding) if output_shift < 0 else whole << output_shift
        return np.asarray(np.clip(found + zero_point, *codes))

    return by_table(operand, function).astype(call.to_type.numpy)


def _short_factor(number: np.float32) -> tuple[int, int]:
    """A number as a mantissa of 15 bits and a power of two."""
    found = fixed_point(float(number))
    mantissa = int(found.mantissa)
    largest = 2**31 - 1
    short = 2**15 - 1 if mantissa >= largest - 2**15 else (mantissa + 2**15) >> 16
    return short, int(found.shift)


def _rounded_high(values: Array, factor: int) -> Array:
    """`values * factor / 2**15` of INT16 values, rounded half up (negative halves toward zero), saturated."""
    product = values * factor
    nudge = np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return np.clip(np.trunc((product + nudge) / 2.0**15).astype(np.int64), *_SHORT)
