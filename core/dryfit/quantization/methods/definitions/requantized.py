"""Codes to codes of another scale, zero point or type: of one tensor, or of the inputs of a concatenation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import Operand, OperatorCall
from dryfit.quantization.methods.definitions.activations import FRACTION_BITS
from dryfit.quantization.methods.definitions.real_numbers import by_table
from dryfit.quantization.methods.definitions.weighted import output_range, with_tail
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import (
    Requantization,
    codes_of_real,
    multipliers,
    requantize,
    shifted_right,
)


def requantized(call: OperatorCall, rule: MethodRule) -> Array:
    """The distances from the zero point through the rule's requantization, with weights of scale 1."""
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    codes = output_range(call, rule)

    def finish(record: Requantization) -> Array:
        factors = multipliers(record, operand.one_scale, np.float32(1), scale)
        return by_table(operand, lambda v: requantize(record, v, factors, zero_point, codes))

    return with_tail(rule, operand.values.shape, finish).astype(call.to_type.numpy)


def requantized_by_shift(call: OperatorCall, rule: MethodRule) -> Array:
    """`round(v * rte(2**bits * f32(sx / sy)) / 2**bits) + zy`; reads the option `fraction_bits` and the rounding."""
    operand, (scale, zero_point) = call.operand(0), call.output_grid
    bits, codes = int(rule.options[FRACTION_BITS]), output_range(call, rule)
    factor = int(np.rint(np.float32(2**bits) * (operand.one_scale / scale)))

    def function(v: Array) -> Array:
        products = shifted_right(v.astype(np.int64) * factor, bits, rule.record.rounding)
        return np.asarray(np.clip(products + zero_point, *codes))

    return by_table(operand, function).astype(call.to_type.numpy)


def concatenated(call: OperatorCall, rule: MethodRule) -> Array:
    """The codes as they are, whatever the grids of the inputs say."""
    del rule
    return _joined(call, [one.values for one in call.present])


def concatenated_by_line(call: OperatorCall, rule: MethodRule) -> Array:
    """`round(f32(f32(x * r) + b)) + zy` of the codes x, with r = f32(sx * f32(1 / sy)) and b = f32(-zx * r).

    An input on the output's grid is copied.
    """
    reciprocal = np.float32(1) / call.output_grid[0]

    def units(operand: Operand, distances: Array) -> Array:
        ratio, zero_point = operand.one_scale * reciprocal, np.float32(operand.one_zero_point)
        return (distances + operand.one_zero_point).astype(np.float32) * ratio + -zero_point * ratio

    return _joined(call, [_moved(call, rule, one, units) for one in call.present])


def concatenated_by_value(call: OperatorCall, rule: MethodRule) -> Array:
    """`round(f32(f32(sx * (x - zx)) / sy)) + zy` of each input; one on the output's grid is copied."""

    def units(operand: Operand, distances: Array) -> Array:
        return distances.astype(np.float32) * operand.one_scale / call.output_grid[0]

    return _joined(call, [_moved(call, rule, one, units) for one in call.present])


def _moved(call: OperatorCall, rule: MethodRule, operand: Operand, units: Callable[[Operand, Array], Array]) -> Array:
    scale, zero_point = call.output_grid
    if operand.one_scale == scale and operand.one_zero_point == zero_point:
        return operand.values
    codes = call.code_range
    table = by_table(operand, lambda v: codes_of_real(units(operand, v), rule.record, zero_point, codes))
    return table.astype(call.to_type.numpy)


def _joined(call: OperatorCall, arrays: list[Array]) -> Array:
    axis: int = getattr(call.layer, "axis", 0)
    return np.concatenate(arrays, axis=axis)
