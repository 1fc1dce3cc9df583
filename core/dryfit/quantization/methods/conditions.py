"""What rules of quantize methods ask of a call: its types, weights, windows and grids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.resize import ResizeCoordinateTransformation, ResizeSelector
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import Operand, OperatorCall
from dryfit.quantization.methods.method import Requirement
from dryfit.quantization.methods.requantization import ScaleRule, effective_multiplier

Case = Callable[[OperatorCall], bool]


def has_one_type(call: OperatorCall) -> bool:
    """Whether weights, or a second operand, and the output have the first operand's type."""
    quantized = [one.dtype for one in call.present if one.scale is not None]
    return {*quantized, call.to_type} == {call.code_type}


def compares_one_type(call: OperatorCall) -> bool:
    """Whether both operands have one type, and the result is BOOL."""
    return call.to_type is DataType.BOOL and {one.dtype for one in call.present} == {call.code_type}


def has_int8_weights(call: OperatorCall) -> bool:
    """Whether the output has the input's type, and the weights are INT8."""
    return call.to_type is call.code_type and call.operand(1).dtype is DataType.INT8


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
    return _bias_type(call) in (None, DataType.INT32)


def has_wide_bias(call: OperatorCall) -> bool:
    """Whether there is no bias, or one of INT64."""
    return _bias_type(call) in (None, DataType.INT64)


def _bias_type(call: OperatorCall) -> DataType | None:
    bias = call.operands[2] if len(call.operands) > 2 else None
    return None if bias is None else bias.dtype


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


_TENSORRT = (
    ResizeCoordinateTransformation.ALIGN_CORNERS,
    ResizeCoordinateTransformation.ASYMMETRIC,
    ResizeCoordinateTransformation.HALF_PIXEL,
)
_SIX = 6.0


def _is_on_output_grid(call: OperatorCall, operand: Operand) -> bool:
    return (operand.one_scale, operand.one_zero_point) == call.output_grid


def has_one_grid(call: OperatorCall) -> bool:
    """Whether every input has the scale and the zero point of the output."""
    return all(_is_on_output_grid(call, one) for one in call.present if one.scale is not None)


def _is_of_256ths(call: OperatorCall) -> bool:
    scale, zero_point = call.output_grid
    return float(scale) == 1 / 256 and zero_point == call.code_range[0]


def ratios(low: float, high: float, text: str) -> Requirement:
    """That input scale / output scale of every input is at least `low` and below `high`."""

    def holds(call: OperatorCall) -> bool:
        scale, _ = call.output_grid
        return all(low <= one.one_scale / scale < high for one in call.present if one.scale is not None)

    return Requirement(text=text, holds=holds)


ONE_GRID = Requirement(text="input and output have one scale and one zero point", holds=has_one_grid)
FIRST_GRID = Requirement(
    text="the output has the first input's scale and zero point",
    holds=lambda call: _is_on_output_grid(call, call.operand(0)),
)
OF_256THS = Requirement(text="the output's scale is 1/256 and its zero point the lowest code", holds=_is_of_256ths)


def is_relu(call: OperatorCall) -> bool:
    """Whether it is max(x, 0)."""
    return getattr(call.layer, "activation_type", None) is ActivationType.RELU


def is_relu_or_relu6(call: OperatorCall) -> bool:
    """Whether it is max(x, 0), or that with an upper limit of 6."""
    layer = call.layer
    return is_relu(call) or (getattr(layer, "alpha", None), getattr(layer, "beta", None)) == (0.0, _SIX)


def is_over_space(call: OperatorCall) -> bool:
    """Whether a mean is over all axes behind the channels."""
    mask: int = getattr(call.layer, "axes", 0)
    return mask == (1 << call.operand(0).values.ndim) - 0b100


def is_undilated(call: OperatorCall) -> bool:
    """Whether the elements of a window lie side by side."""
    return set(getattr(call.layer, "dilation_nd", (1,))) == {1}


def counts_inside(call: OperatorCall) -> bool:
    """Whether an average divides by the elements inside the input."""
    layer = call.layer
    is_padded = any(map(any, getattr(layer, "paddings")(call.operand(0).values.shape[2:])))  # noqa: B009
    return bool(getattr(layer, "average_count_excludes_padding", True)) or not is_padded


def resizes_images(call: OperatorCall) -> bool:
    """Whether it resizes two spatial axes, and takes places as TensorRT has them, with ONNX's defaults beside."""
    layer, shape = call.layer, call.operand(0).values.shape
    is_plain = not (getattr(layer, "antialias", False) or getattr(layer, "exclude_outside", False))
    return bool(
        len(shape) == 4
        and shape[:2] == call.output_shape[:2]
        and is_plain
        and getattr(layer, "coordinate_transformation", None) in _TENSORRT
        and getattr(layer, "selector_for_single_pixel", None) is ResizeSelector.FORMULA
    )


def resizes_by_extents(call: OperatorCall) -> bool:
    """The same, by the extents of the output alone: no scales are given beside or in place of them."""
    scales = np.asarray(getattr(call.layer, "scales", ()))
    return resizes_images(call) and (scales.size == 0 or _are_quotients(call, scales))


def _are_quotients(call: OperatorCall, scales: np.ndarray) -> bool:
    """Whether scales are what the extents' quotients are."""
    extents = np.asarray(call.operand(0).values.shape, np.float32)
    return bool(np.array_equal(scales.astype(np.float32), np.asarray(call.output_shape, np.float32) / extents))


def counts_all(call: OperatorCall) -> bool:
    """Whether an average divides by all cells of its window, or all lie inside the input."""
    layer = call.layer
    is_padded = any(map(any, getattr(layer, "paddings")(call.operand(0).values.shape[2:])))  # noqa: B009
    return not (is_padded and getattr(layer, "average_count_excludes_padding", True))


def _keeps_powers_in_float(call: OperatorCall) -> bool:
    scale, _ = call.output_grid
    extent = call.operand(0).values.shape[getattr(call.layer, "axis", 0)]
    return bool(np.floor(np.float32(1) / scale) <= _RESERVE * extent)


_RESERVE = 148  # exp(5), which the powers are below the largest FP32 number by
POWERS_IN_FLOAT = Requirement(
    text="floor(1 / output scale) is at most 148 times the axis' extent: beyond it the library's powers leave FP32",
    holds=_keeps_powers_in_float,
)


def has_ratio_of_leaky_shift(call: OperatorCall) -> bool:
    """Whether XNNPACK has a leaky ReLU for both ratios: from 1/256 to 128 in magnitude."""
    scale, _ = call.output_grid
    ratio = call.operand(0).one_scale / scale
    below = ratio * np.float32(getattr(call.layer, "alpha", 0))
    return bool(2**-8 <= ratio <= 2**7 and abs(below) >= 2**-8 and -127.99609375 <= below <= 2**7)


def sum_bits(call: OperatorCall) -> int:
    """How many bits behind the point TensorFlow Lite's sums have: 20, or 15 of INT16 values."""
    return 15 if call.code_type is DataType.INT16 else 20


def _has_sum_below_one(call: OperatorCall) -> bool:
    scale, _ = call.output_grid
    return bool(2 * max(float(one.one_scale) for one in call.present) < 2.0 ** sum_bits(call) * float(scale))


SUM_BELOW_ONE = Requirement(
    text="2 * the larger input scale must be less than 2**20 * the output scale (INT16: 2**15)",
    holds=_has_sum_below_one,
)


def _ratios(call: OperatorCall) -> list[float]:
    scale, _ = call.output_grid
    return [float(one.one_scale / scale) for one in call.present if one.scale is not None]


def has_ratios_of_sum_shift(call: OperatorCall) -> bool:
    """Whether XNNPACK has a sum for both input scales: from 2**-10 to below 2**8 output scales."""
    return all(2.0**-10 <= ratio < 2.0**8 for ratio in _ratios(call))


LARGER_RATIO = Requirement(
    text="the larger input scale is 2**-10 output scales or more: the library's shifts end there",
    holds=lambda call: max(_ratios(call)) >= 2.0**-10,
)
SUMS_IN_INT16 = Requirement(
    text="both input scales together are at most 128 output scales: vector kernels hold sums in INT16",
    holds=lambda call: sum(_ratios(call)) <= 128,
)
