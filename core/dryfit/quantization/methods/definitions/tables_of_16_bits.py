"""Functions of INT16 codes by tables with linear interpolation: sigmoid, TANH, softmax, and functions of real numbers.

Zero points are 0, as TensorFlow Lite requires of INT16: a code is its distance from the zero point.

Source: TensorFlow Lite's description of its INT16 activations (256 values of the sigmoid, 24 per unit; tables of 513
values of other functions, each moved by half of what a straight line misses the middle of its step by); measured
against it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import cast

import numpy as np

from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import UnaryOperation
from dryfit.network.layers.normalization import Softmax
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.functions_of_codes import FUNCTIONS, function_of
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import fixed_point, two_step
from dryfit.quantization.rounding import RoundingMode, round_values

_LOW, _HIGH = -(2**15), 2**15 - 1
_AWAY = RoundingMode.HALF_AWAY_FROM_ZERO


# Sigmoid and TANH -----------------------------------------------------------------------------------------------------

_ENTRIES = 256
_PER_UNIT = 24


@functools.cache
def _sigmoid_table() -> Array:
    """The sigmoid of i / 24 in 65,536ths: int64[256], moved as the other tables are, and 65,535 at the end."""

    def sigmoid(index: Array) -> Array:
        return np.asarray(2.0**16 / (1 + np.exp(-index / _PER_UNIT)))

    index = np.arange(_ENTRIES)
    missed = (sigmoid(index) + sigmoid(index + 1)) / 2 - sigmoid(index + 0.5)
    table = np.rint(sigmoid(index) - missed / 2).astype(np.int64)
    table[-1] = 2**16 - 1
    return table


def sigmoid_of_16_bits(call: OperatorCall, rule: MethodRule) -> Array:
    """The sigmoid in 32,768ths: the table with 9 bits between its entries."""
    del rule
    places = _places(call, (-12,))
    values = _looked_up(places, 9, (2**15 - 1) << 10)
    values = np.where(places >= 0, values + 2**9, 2**25 - values + 2**9 - 1)
    return (values >> 10).astype(np.int16)


def tanh_of_16_bits(call: OperatorCall, rule: MethodRule) -> Array:
    """`2 sigmoid(2 x) - 1` in 32,768ths: the table with 8 bits between its entries."""
    del rule
    places = _places(call, (-12, -11))
    values = _looked_up(places, 8, (2**16 - 1) << 8) - 2**23
    values = np.where(places >= 0, values + 2**7, -values + 2**7 - 1)
    return (values >> 8).astype(np.int16)


def _places(call: OperatorCall, exponents: tuple[int, ...]) -> Array:
    """The codes in 3 * 4096ths: times 3 and a power of two, or times a whole number of 15 bits and shifted half up.

    Args:
        call: of INT16 codes.
        exponents: scales that are these powers of two take the first way.
    """
    scale = float(call.operand(0).one_scale)
    exponent = np.rint(np.log2(scale))
    if abs(np.log2(scale) - exponent) < _NEAR_POWER and int(exponent) in exponents:
        return call.operand(0).distances.astype(np.int64) * (3 << (int(exponent) + 12))
    factor, shift = scale * 3 * 2.0**12, 0
    while factor <= _HIGH / 2 and shift <= _LARGEST_SHIFT:
        factor, shift = factor * 2, shift + 1
    half = (1 << shift) >> 1
    return (call.operand(0).distances.astype(np.int64) * int(factor) + half) >> shift


_NEAR_POWER = 1e-3
_LARGEST_SHIFT = 30


def _looked_up(places: Array, bits: int, highest: int) -> Array:
    """The table at magnitudes with so many bits between entries; `highest` from its end on."""
    magnitudes = np.abs(places)
    whole, rest = magnitudes >> bits, magnitudes & ((1 << bits) - 1)
    at = np.minimum(whole, _ENTRIES - 2)
    table = _sigmoid_table()
    between = (table[at] << bits) + rest * (table[at + 1] - table[at])
    return np.where(whole >= _ENTRIES - 1, highest, between)


# Tables of 513 values -------------------------------------------------------------------------------------------------

_STEPS = 512


def interpolated_table(function: Callable[[Array], Array], low: Array, high: Array, steps_per_unit: Array) -> Array:
    """A function at 513 places from `low` to `high`, as INT16 codes in int64[513].

    All but the last are moved by half of what a straight line between two of them misses the middle by. Everything is
    computed in the type of `low`, one operation at a time.

    Args:
        function: of numbers in that type.
        low: the first place, float32 or float64 of shape ().
        high: the last one.
        steps_per_unit: codes per unit of the result.
    """
    real = low.dtype.type
    step = (high - low) / real(_STEPS)
    index = np.arange(_STEPS, dtype=low.dtype)
    values = function(low + index * step) * steps_per_unit
    following = function(low + (index + real(1)) * step) * steps_per_unit
    middle = round_values(function(low + index * step + step / real(2)) * steps_per_unit, _AWAY)
    samples = round_values(values, _AWAY)
    straight = round_values((following + samples) / real(2), _AWAY)
    moved = samples - round_values((straight - middle) / real(2), _AWAY)
    last = round_values(np.reshape(function(np.reshape(high, 1)) * steps_per_unit, 1), _AWAY)
    return np.asarray(np.clip(np.concatenate([moved, last]), _LOW, _HIGH).astype(np.int64))


def looked_up(table: Array, codes: Array) -> Array:
    """A table of `interpolated_table` at INT16 codes: the high 9 bits are the place, the low 7 lie between."""
    index = (codes >> 7) + _STEPS // 2
    base = table[index]
    return np.asarray(base + (((table[index + 1] - base) * (codes & 127) + 64) >> 7))


def function_by_interpolation(call: OperatorCall, rule: MethodRule) -> Array:
    """A function of real numbers by a table over all codes, made in FP32."""
    del rule
    function = _function(call)
    operand, (scale, _) = call.operand(0), call.output_grid
    low, high = (np.asarray(np.float32(end) * operand.one_scale) for end in (_LOW, _HIGH))
    span = scale * np.float32(_HIGH) - scale * np.float32(_LOW)

    def in_single(values: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(values).astype(np.float32)

    table = interpolated_table(in_single, low, high, np.asarray(np.float32(2**16) / span))
    return np.asarray(looked_up(table, operand.distances).astype(np.int16))


def _function(call: OperatorCall) -> Callable[[Array], Array]:
    """The function of FP32 numbers; where it is not defined, the library's own choice of a value."""
    kind, (scale, _) = function_of(call), call.output_grid
    if kind is UnaryOperation.LOG:
        return lambda x: np.where(x > 0, np.log(x.astype(np.float64)), np.float32(_LOW) * scale)
    if kind is UnaryOperation.RSQRT:
        return lambda x: np.where(x > 0, np.float32(1) / np.sqrt(x), np.float32(_HIGH) * scale)
    found = FUNCTIONS[cast("ActivationType", kind)]
    return lambda x: found(x.astype(np.float64))


# Softmax --------------------------------------------------------------------------------------------------------------

_REACH = 10.0
"""Powers of numbers below -10 count as exp(-10)."""


@functools.cache
def _softmax_tables() -> tuple[Array, Array]:
    """exp(x) from -10 to 0, and 1 / (1 + x) from 0 to 1, in 32,768ths."""
    units = np.asarray(2.0**15)
    powers = interpolated_table(np.exp, np.asarray(-_REACH), np.asarray(0.0), units)
    return powers, interpolated_table(lambda x: 1 / (1 + x), np.asarray(0.0), np.asarray(1.0), units)


def softmax_of_16_bits(call: OperatorCall, rule: MethodRule) -> Array:
    """The power of the distance from the largest element times the reciprocal of the sum of all, by two tables.

    Distances are in 65,535ths of -10 to 0; the sum is an INT32 in 32,768ths, whose 17 highest bits are looked up.
    """
    axis, operand = cast("Softmax", call.layer).axis, call.operand(0)
    powers_table, reciprocals = _softmax_tables()
    codes = operand.values.astype(np.int64)
    distances = codes - codes.max(axis=axis, keepdims=True)
    multiplier = fixed_point(float(operand.one_scale) / (_REACH / (2**16 - 1)))
    scaled = two_step(distances, multiplier, rule.record.rounding) + _HIGH
    powers = looked_up(powers_table, np.clip(scaled, _LOW, _HIGH))
    total = powers.sum(axis=axis, keepdims=True)
    bits = np.frexp(total.astype(np.float64))[1].astype(np.int64)  # the sum is below 2**bits
    highest = ((total << (31 - bits)) + 2**13) >> 14
    factors = looked_up(reciprocals, np.clip(highest - 2**15 - 2**16, _LOW, _HIGH))
    shift = bits - 1
    products = (powers * factors + ((1 << shift) >> 1)) >> shift
    return np.asarray(np.clip(products, 0, _HIGH).astype(np.int16))
