"""Codes to codes of another scale, zero point or type."""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.activations import FRACTION_BITS
from dryfit.quantization.methods.definitions.code_tables import by_table
from dryfit.quantization.methods.definitions.output_codes import output_range, with_tail
from dryfit.quantization.methods.fixed_point import shifted_right
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Requantization, multipliers, requantize

Array = np.ndarray[Any, Any]


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
