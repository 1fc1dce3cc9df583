"""Cases as TensorFlow Lite's operators: name, options, inputs, output, and the way back to the network's layout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.oracles.tflite_model import LiteTensor
from tests.oracles.windows import (
    channels_last,
    channels_second,
    kernel_layer,
    matrices,
    padded,
    require,
    two_axes,
    window_layer,
)

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.quantization.methods.call import Operand, OperatorCall
from dryfit.quantization.methods.conditions import has_integer_bias
from dryfit.quantization.methods.definitions.functions_of_codes import function_of

Array = np.ndarray[Any, Any]
_ACTIVATIONS = {(-math.inf, math.inf): 0, (0.0, math.inf): 1, (-1.0, 1.0): 2, (0.0, 6.0): 3}
"""Limits to the schema's ActivationFunctionType."""
_SAME, _VALID = 0, 1


def _unchanged(output: Array) -> Array:
    return output


_Input = tuple[LiteTensor, Array]
"""A tensor of the model and its values."""
_Authored = tuple[str, dict[str, Any], list[_Input], LiteTensor, Callable[[Array], Array]]


def _input(operand: Operand, values: Array) -> _Input:
    """An operand as an input of the model."""
    return LiteTensor(values.shape, values.dtype.name, operand.scale, operand.zero_point), values


def _constant(operand: Operand, values: Array, axis: int = 0) -> _Input:
    values = np.ascontiguousarray(values)
    grid = (operand.scale, operand.zero_point)
    return LiteTensor(values.shape, values.dtype.name, *grid, axis=axis, constant=values), values


def _bias(call: OperatorCall) -> list[_Input]:
    """The bias as an input, with the grid that the library checks; none where there is none."""
    bias = call.operands[2] if len(call.operands) > 2 else None
    if bias is None:
        return []
    scale = np.asarray(call.operand(0).scale, np.float32) * np.asarray(call.operand(1).scale, np.float32)
    return [_constant(Operand(bias.values, scale, np.zeros(scale.shape, np.int32)), bias.values)]


_INT32_OF_SCHEMA = 2
"""The schema's TensorType INT32."""


def _bias_options(call: OperatorCall) -> dict[str, int]:
    """What says that the sums of INT16 data are INT32, as their bias is; nothing for others."""
    is_narrow = call.code_type is DataType.INT16 and bool(_bias(call)) and has_integer_bias(call)
    return {"quantizedBiasType": _INT32_OF_SCHEMA} if is_narrow else {}


def _output(call: OperatorCall, shape: Any) -> LiteTensor:
    return LiteTensor(shape, call.to_type.numpy.name, call.output_scale, call.output_zero_point)


def _activation(call: OperatorCall) -> int:
    require(call.limits in _ACTIVATIONS, f"TensorFlow Lite fuses no activation with limits {call.limits}")
    return _ACTIVATIONS[call.limits]


def _no_activation(call: OperatorCall) -> None:
    require(_activation(call) == 0, f"TensorFlow Lite fuses no activation with {call.operator}")


def _convolution(call: OperatorCall) -> _Authored:
    layer, w = kernel_layer(call), call.operand(1)
    x = channels_last(padded(call))
    options: dict[str, Any] = {
        "padding": _VALID,
        "strideH": layer.stride_nd[0],
        "strideW": layer.stride_nd[1],
        "dilationHFactor": layer.dilation_nd[0],
        "dilationWFactor": layer.dilation_nd[1],
        "fusedActivationFunction": _activation(call),
    }
    if call.is_depthwise:
        weights = _constant(w, w.values[:, 0].transpose(1, 2, 0)[None], axis=3)
        options |= {"kind": "DepthwiseConv2DOptions", "depthMultiplier": layer.num_output_maps // layer.num_groups}
    else:
        weights = _constant(w, channels_last(w.values))
        options |= {"kind": "Conv2DOptions", **_bias_options(call)}
    batch, maps, *spatial = call.output_shape
    operator = "DEPTHWISE_CONV_2D" if call.is_depthwise else "CONV_2D"
    inputs = [_input(call.operand(0), x), weights, *_bias(call)]
    return operator, options, inputs, _output(call, (batch, *spatial, maps)), channels_second


def _deconvolution(call: OperatorCall) -> _Authored:
    """All of the output without padding; the padding cuts it."""
    layer, w, x = kernel_layer(call), call.operand(1), call.operand(0)
    require(layer.num_groups == 1 and set(layer.dilation_nd) == {1}, "TRANSPOSE_CONV has no groups and no dilation")
    paddings = layer.paddings(x.values.shape[2:])
    require(min(post for _, post in paddings) >= 0, "TRANSPOSE_CONV adds nothing behind its output")
    batch, maps, *spatial = call.output_shape
    whole = [extent + pre + post for extent, (pre, post) in zip(spatial, paddings, strict=True)]
    shape = np.asarray([batch, *whole, maps], np.int32)
    options = {
        "kind": "TransposeConvOptions",
        **_bias_options(call),
        "padding": _VALID,
        "strideH": layer.stride_nd[0],
        "strideW": layer.stride_nd[1],
        "fusedActivationFunction": _activation(call),
    }
    inputs = [
        (LiteTensor((4,), "int32", constant=shape), shape),
        _constant(w, np.moveaxis(w.values, 0, -1)),
        _input(x, channels_last(x.values)),
        *_bias(call),
    ]
    cut = tuple(slice(pre, pre + extent) for extent, (pre, _) in zip(spatial, paddings, strict=True))

    def restore(output: Array) -> Array:
        return np.ascontiguousarray(channels_second(output)[(slice(None), slice(None), *cut)])

    return "TRANSPOSE_CONV", options, inputs, _output(call, shape), restore


def _inner_product(call: OperatorCall) -> _Authored:
    if call.layer.kind == "matrix_multiply" and call.operand(1).values.ndim > 2:
        return _batched_product(call)
    x, weights = two_axes(call)
    options = {"kind": "FullyConnectedOptions", "fusedActivationFunction": _activation(call), **_bias_options(call)}
    inputs = [_input(call.operand(0), np.ascontiguousarray(x)), _constant(call.operand(1), weights), *_bias(call)]
    shape = call.output_shape
    output = _output(call, (x.shape[0], weights.shape[0]))
    return "FULLY_CONNECTED", options, inputs, output, lambda output: output.reshape(shape)


def _batched_product(call: OperatorCall) -> _Authored:
    _no_activation(call)
    operands = zip(call.present, matrices(call), strict=True)
    inputs = [_input(one, np.ascontiguousarray(values)) for one, values in operands]
    options = {"kind": "BatchMatMulOptions", "adjX": False, "adjY": False}
    return "BATCH_MATMUL", options, inputs, _output(call, call.output_shape), _unchanged


def _average_pool(call: OperatorCall) -> _Authored:
    layer, x = window_layer(call), call.operand(0)
    is_padded = any(map(any, layer.paddings(x.values.shape[2:])))
    is_same = layer.padding_mode is PaddingMode.SAME_UPPER
    require(
        not is_padded or (is_same and layer.average_count_excludes_padding),  # type: ignore[attr-defined]  # a pooling
        "AVERAGE_POOL_2D pads as SAME_UPPER only, and does not count padding",
    )
    require(layer.padding_mode is not PaddingMode.EXPLICIT_ROUND_UP, "AVERAGE_POOL_2D rounds its extents down")
    batch, channels, *spatial = call.output_shape
    options = {
        "kind": "Pool2DOptions",
        "padding": _SAME if is_same else _VALID,
        "strideH": layer.stride_nd[0],
        "strideW": layer.stride_nd[1],
        "filterHeight": layer.window[0],
        "filterWidth": layer.window[1],
        "fusedActivationFunction": _activation(call),
    }
    output = _output(call, (batch, *spatial, channels))
    return "AVERAGE_POOL_2D", options, [_input(x, channels_last(x.values))], output, channels_second


def _mean_over_axes(call: OperatorCall) -> _Authored:
    x, layer = call.operand(0), call.layer
    axes = np.asarray(axes_in(layer.axes), np.int32)  # type: ignore[attr-defined]  # a reduction
    inputs = [_input(x, x.values), (LiteTensor(axes.shape, "int32", constant=axes), axes)]
    options = {"kind": "ReducerOptions", "keepDims": layer.keep_dims}  # type: ignore[attr-defined]
    return "MEAN", options, inputs, _output(call, call.output_shape), _unchanged


def _mean(call: OperatorCall) -> _Authored:
    _no_activation(call)
    x, layer = call.operand(0), call.layer
    if not (x.values.ndim == 4 and layer.axes == 0b1100):  # type: ignore[attr-defined]  # a reduction
        return _mean_over_axes(call)
    axes = np.asarray([1, 2], np.int32)
    inputs = [_input(x, channels_last(x.values)), (LiteTensor((2,), "int32", constant=axes), axes)]
    batch, channels = x.values.shape[:2]
    shape = call.output_shape
    options = {"kind": "ReducerOptions", "keepDims": True}
    output = _output(call, (batch, 1, 1, channels))
    return "MEAN", options, inputs, output, lambda output: channels_second(output).reshape(shape)


def _add(call: OperatorCall) -> _Authored:
    options = {"kind": "AddOptions", "fusedActivationFunction": _activation(call), "potScaleInt16": False}
    is_image = all(one.values.ndim == 4 for one in call.present)
    to, back = (channels_last, channels_second) if is_image else (_unchanged, _unchanged)
    inputs = [_input(one, to(one.values)) for one in call.present]
    return "ADD", options, inputs, _output(call, to(np.empty(call.output_shape)).shape), back


_PAIRS = {
    ElementWiseOperation.SUB: ("SUB", "SubOptions"),
    ElementWiseOperation.PROD: ("MUL", "MulOptions"),
    ElementWiseOperation.MAX: ("MAXIMUM", "MaximumMinimumOptions"),
    ElementWiseOperation.MIN: ("MINIMUM", "MaximumMinimumOptions"),
    ElementWiseOperation.DIV: ("DIV", "DivOptions"),
    ElementWiseOperation.SQUARED_DIFFERENCE: ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions"),
    ElementWiseOperation.EQUAL: ("EQUAL", "EqualOptions"),
    ElementWiseOperation.GREATER: ("GREATER", "GreaterOptions"),
    ElementWiseOperation.GREATER_EQUAL: ("GREATER_EQUAL", "GreaterEqualOptions"),
    ElementWiseOperation.LESS: ("LESS", "LessOptions"),
    ElementWiseOperation.LESS_EQUAL: ("LESS_EQUAL", "LessEqualOptions"),
}
_WITH_ACTIVATIONS = frozenset({"SUB", "MUL", "DIV"})


def _pair(call: OperatorCall) -> _Authored:
    operator, kind = _PAIRS[call.layer.op]  # type: ignore[attr-defined]  # an elementwise layer
    options: dict[str, Any] = {"kind": kind}
    if operator in _WITH_ACTIVATIONS:
        options["fusedActivationFunction"] = _activation(call)
    else:
        _no_activation(call)
    if operator == "SUB":
        options["potScaleInt16"] = False
    inputs = [_input(one, one.values) for one in call.present]
    return operator, options, inputs, _output(call, call.output_shape), _unchanged


_FUNCTIONS: dict[Any, tuple[str, dict[str, Any]]] = {
    ActivationType.TANH: ("TANH", {}),
    ActivationType.GELU_ERF: ("GELU", {"kind": "GeluOptions"}),
    ActivationType.GELU_TANH: ("GELU", {"kind": "GeluOptions", "approximate": True}),
    ActivationType.HARD_SWISH: ("HARD_SWISH", {"kind": "HardSwishOptions"}),
    UnaryOperation.EXP: ("EXP", {"kind": "ExpOptions"}),
    UnaryOperation.ABS: ("ABS", {"kind": "AbsOptions"}),
    UnaryOperation.LOG: ("LOG", {}),
    UnaryOperation.SQRT: ("SQRT", {}),
    UnaryOperation.RSQRT: ("RSQRT", {}),
    UnaryOperation.NEG: ("NEG", {"kind": "NegOptions"}),
}


def _function(call: OperatorCall) -> _Authored:
    operator, options = _FUNCTIONS[function_of(call)]
    return _unary(operator, lambda _: options)(call)


def _parametric_relu(call: OperatorCall) -> _Authored:
    _no_activation(call)
    x, slopes = call.operand(0), call.operand(1)
    inputs = [_input(x, channels_last(x.values)), _constant(slopes, channels_last(slopes.values)[0])]
    shape = channels_last(np.empty(call.output_shape)).shape
    return "PRELU", {}, inputs, _output(call, shape), channels_second


def _reduce(call: OperatorCall) -> _Authored:
    _no_activation(call)
    x, layer = call.operand(0), call.layer
    axes = np.asarray(axes_in(layer.axes), np.int32)  # type: ignore[attr-defined]  # a reduction
    operator = "REDUCE_MAX" if layer.op is ReduceOperation.MAX else "REDUCE_MIN"  # type: ignore[attr-defined]
    inputs = [_input(x, x.values), (LiteTensor(axes.shape, "int32", constant=axes), axes)]
    options = {"kind": "ReducerOptions", "keepDims": layer.keep_dims}  # type: ignore[attr-defined]
    return operator, options, inputs, _output(call, call.output_shape), _unchanged


def _concat(call: OperatorCall) -> _Authored:
    _no_activation(call)
    axis = call.layer.axis  # type: ignore[attr-defined]  # a concatenation has it
    inputs = [_input(one, one.values) for one in call.present]
    options = {"kind": "ConcatenationOptions", "axis": axis, "fusedActivationFunction": 0}
    return "CONCATENATION", options, inputs, _output(call, call.output_shape), _unchanged


def _unary(operator: str, options: Callable[[OperatorCall], dict[str, Any]]) -> Callable[[OperatorCall], _Authored]:
    def author(call: OperatorCall) -> _Authored:
        _no_activation(call)
        x = call.operand(0)
        return operator, options(call), [_input(x, x.values)], _output(call, x.values.shape), _unchanged

    return author


_CLIPS = {(0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1", (0.0, 1.0): "RELU_0_TO_1"}


def _relu(call: OperatorCall) -> _Authored:
    activation = call.layer
    limits = (activation.alpha, activation.beta)  # type: ignore[attr-defined]  # an activation has them
    is_plain = activation.activation_type.name == "RELU"  # type: ignore[attr-defined]
    require(is_plain or limits in _CLIPS, f"TensorFlow Lite has no quantized activation that clips to {limits}")
    return _unary("RELU" if is_plain else _CLIPS[limits], lambda _: {})(call)


def _softmax(call: OperatorCall) -> _Authored:
    _no_activation(call)
    x, axis = call.operand(0), call.layer.axis  # type: ignore[attr-defined]  # a softmax has it
    values = np.ascontiguousarray(np.moveaxis(x.values, axis, -1))
    options = {"kind": "SoftmaxOptions", "beta": 1.0}
    output = _output(call, values.shape)
    return "SOFTMAX", options, [_input(x, values)], output, lambda output: np.moveaxis(output, -1, axis)


def _of_vectors(operator: str, kind: str) -> Callable[[OperatorCall], _Authored]:
    """A function of the vectors along the last axis."""
    return _unary(operator, lambda _: {"kind": kind})


def _resize(call: OperatorCall) -> _Authored:
    _no_activation(call)
    x, mode = call.operand(0), call.layer.coordinate_transformation.name  # type: ignore[attr-defined]
    batch, channels, *spatial = call.output_shape
    require(x.values.shape[:2] == (batch, channels) and len(spatial) == 2, "RESIZE_BILINEAR is over two spatial axes")
    require(mode in ("ASYMMETRIC", "ALIGN_CORNERS", "HALF_PIXEL"), f"RESIZE_BILINEAR has no {mode}")
    options = {
        "kind": "ResizeBilinearOptions",
        "alignCorners": mode == "ALIGN_CORNERS",
        "halfPixelCenters": mode == "HALF_PIXEL",
    }
    size = np.asarray(spatial, np.int32)
    inputs = [_input(x, channels_last(x.values)), (LiteTensor((2,), "int32", constant=size), size)]
    return "RESIZE_BILINEAR", options, inputs, _output(call, (batch, *spatial, channels)), channels_second


def _leaky_relu_options(call: OperatorCall) -> dict[str, Any]:
    return {"kind": "LeakyReluOptions", "alpha": float(call.layer.alpha)}  # type: ignore[attr-defined]


AUTHORS: dict[str, Callable[[OperatorCall], _Authored]] = {
    "average_pool": _average_pool,
    "bias_add": _add,
    "comparison": _pair,
    "concat": _concat,
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "dequantize": _unary("DEQUANTIZE", lambda _: {}),
    "eltwise_difference": _pair,
    "eltwise_extreme": _pair,
    "eltwise_product": _pair,
    "eltwise_quotient": _pair,
    "eltwise_squared_difference": _pair,
    "eltwise_sum": _add,
    "function": _function,
    "global_average_pool": _mean,
    "inner_product": _inner_product,
    "l2_normalization": _of_vectors("L2_NORMALIZATION", "L2NormOptions"),
    "leaky_relu": _unary("LEAKY_RELU", _leaky_relu_options),
    "log_softmax": _of_vectors("LOG_SOFTMAX", "LogSoftmaxOptions"),
    "parametric_relu": _parametric_relu,
    "quantize": _unary("QUANTIZE", lambda _: {}),
    "reduce": _reduce,
    "relu": _relu,
    "requantize": _unary("QUANTIZE", lambda _: {}),
    "resize_bilinear": _resize,
    "sigmoid": _unary("LOGISTIC", lambda _: {}),
    "softmax": _softmax,
}
"""Operator to what writes it."""
