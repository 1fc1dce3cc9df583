"""Conditions on uses of operators that rules of several methods share: cases, and what libraries require."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.method import Requirement
from dryfit.quantization.methods.requantization import ScaleRule
from dryfit.quantization.methods.requantize import effective_multiplier

Array = np.ndarray[Any, Any]
Case = Callable[[OperatorCall], bool]


def has_one_type(call: OperatorCall) -> bool:
    """Whether weights, or a second operand, and the output have the first operand's type."""
    quantized = [one.dtype for one in call.present if one.scale is not None]
    return {*quantized, call.to_type} == {call.code_type}


def has_no_uint8_weights_of_int8(call: OperatorCall) -> bool:
    """Whether the output has the input's type, and so have the weights, which may also be INT8 of a UINT8 input."""
    weights = call.operand(1).dtype
    return call.to_type is call.code_type and weights in (call.code_type, DataType.INT8)


def is_depthwise(call: OperatorCall) -> bool:
    """Whether each input channel is a group of its own."""
    return call.is_depthwise


def is_grouped(call: OperatorCall) -> bool:
    """Whether there are groups of several input channels."""
    return getattr(call.layer, "num_groups", 1) > 1 and not call.is_depthwise


def both(first: Case, second: Case) -> Case:
    """Whether two conditions hold."""
    return lambda call: first(call) and second(call)


def negated(condition: Case) -> Case:
    """Whether a condition does not hold."""
    return lambda call: not condition(call)


def has_one_matrix(call: OperatorCall) -> bool:
    """Whether the weights are one matrix for all samples, as those of a fully connected layer are."""
    return call.layer.kind != "matrix_multiply" or call.operand(1).values.ndim <= 2


def has_symmetric_weights(call: OperatorCall) -> bool:
    """Whether every zero point of the weights is 0."""
    return not np.any(call.operand(1).zero_point)


def has_zero_points_of_zero(call: OperatorCall) -> bool:
    """Whether every zero point is 0: the output's, too."""
    return not call.output_zero_point and not any(
        np.any(one.zero_point) for one in call.present if one.scale is not None
    )


def has_integer_bias(call: OperatorCall) -> bool:
    """Whether there is no bias, or one of INT32."""
    bias = call.operands[2] if len(call.operands) > 2 else None
    return bias is None or bias.dtype is DataType.INT32


def float_multipliers(call: OperatorCall) -> Array:
    """`f32(f32(sx * sw) / sy)` of each output channel."""
    scale, _ = call.output_grid
    weights = np.ravel(np.asarray(call.operand(1).scale, np.float32))
    return effective_multiplier(ScaleRule.FLOAT, call.operand(0).one_scale, weights, scale)


SYMMETRIC = Requirement(text="zero points are 0", holds=has_zero_points_of_zero)
INTEGER_BIAS = Requirement(text="a bias is INT32, in units of input scale * weight scale", holds=has_integer_bias)
SYMMETRIC_WEIGHTS = Requirement(
    text="the zero point of INT8 weights is 0: the kernels do not read it", holds=has_symmetric_weights
)
