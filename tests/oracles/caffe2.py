"""Caffe2 as an oracle: the Int8 operators (QNNPACK) of the PyTorch wheels up to 1.10, in a Python that can have those.

UINT8 only, one scale a tensor. Another grid is a group of Int8Dequantize and Int8Quantize. torch 1.10.2 needs Python
3.9 or older, numpy < 2 and protobuf < 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tests.oracles.oracle import NoCounterpartError, Oracle, Translation
from tests.oracles.windows import (
    channels_last,
    channels_second,
    kernel_layer,
    require,
    two_axes,
    window_layer,
)
from tests.oracles.worker_process import Job

from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PaddingMode, WindowLayer
from dryfit.quantization.methods.call import Operand, OperatorCall
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]
_RELU = (0.0, math.inf)
_NONE = (-math.inf, math.inf)
_Authored = tuple[str, dict[str, Any], Sequence[tuple[Operand, Array]], Callable[[Array], Array]]


class Caffe2Oracle(Oracle):
    """Caffe2's Int8 operators."""

    library = "caffe2"

    def translation(self, case: OperatorCase) -> Translation:
        """An operator with its arguments, and its inputs."""
        call = case.call
        if call.operator not in _AUTHORS:
            raise NoCounterpartError(f"Caffe2 has no quantized operator for {call.operator}")
        types = {one.dtype for one in call.present} | {call.to_type}
        require(not types & {DataType.INT8}, "Caffe2's activations and weights are UINT8")
        require(not call.is_per_channel, "Caffe2 has one scale a tensor")
        kind, arguments, inputs, restore = _AUTHORS[call.operator](call)
        if call.limits != _NONE:
            fused = {"Int8Conv", "Int8Add", "Int8AveragePool"}
            require(call.limits == _RELU and kind in fused, f"Caffe2 fuses no limits {call.limits} with {kind}")
            kind += "Relu"
        if call.output_scale is not None:
            arguments = {"Y_scale": float(call.output_scale), "Y_zero_point": call.output_zero_point, **arguments}
        document = {
            "operators": [*(("Int8Dequantize", {}) for _ in range(call.operator == "requantize")), (kind, arguments)],
            "grids": [None if one.scale is None else (float(one.one_scale), one.one_zero_point) for one, _ in inputs],
            "is_real": call.output_scale is None,
        }
        return Translation(Job(document, [np.ascontiguousarray(values) for _, values in inputs]), restore)


def _window(layer: WindowLayer, spatial: Sequence[int]) -> dict[str, Any]:
    (top, bottom), (left, right) = layer.paddings(spatial)
    return {
        "order": "NHWC",
        "kernel_h": layer.window[0],
        "kernel_w": layer.window[1],
        "stride_h": layer.stride_nd[0],
        "stride_w": layer.stride_nd[1],
        "pad_t": top,
        "pad_b": bottom,
        "pad_l": left,
        "pad_r": right,
    }


def _bias(call: OperatorCall) -> tuple[Operand, Array]:
    """The bias with the grid that it has; zeros where there is none, for the operators ask for one."""
    given = call.operands[2] if len(call.operands) > 2 else None
    maps = call.output_shape[1] if call.layer.kind != "fully_connected" else call.output_shape[-3]
    values = np.zeros(maps, np.int32) if given is None else given.values
    scale = call.operand(0).one_scale * call.operand(1).one_scale
    return Operand(values, np.asarray(scale), np.asarray(0)), values


def _convolution(call: OperatorCall) -> _Authored:
    layer, x, w = kernel_layer(call), call.operand(0), call.operand(1)
    arguments = _window(layer, x.values.shape[2:]) | {"group": layer.num_groups}
    arguments |= {"dilation_h": layer.dilation_nd[0], "dilation_w": layer.dilation_nd[1]}
    inputs = [(x, channels_last(x.values)), (w, channels_last(w.values)), _bias(call)]
    return "Int8Conv", arguments, inputs, channels_second


def _deconvolution(call: OperatorCall) -> _Authored:
    layer, x, w = kernel_layer(call), call.operand(0), call.operand(1)
    require(layer.num_groups == 1 and set(layer.dilation_nd) == {1}, "Int8ConvTranspose has no groups and no dilation")
    arguments = _window(layer, x.values.shape[2:])
    require(min(arguments["pad_b"], arguments["pad_r"]) >= 0, "Int8ConvTranspose adds nothing behind its output here")
    inputs = [(x, channels_last(x.values)), (w, channels_last(w.values)), _bias(call)]
    return "Int8ConvTranspose", arguments, inputs, channels_second


def _inner_product(call: OperatorCall) -> _Authored:
    x, weights = two_axes(call)
    shape = call.output_shape
    inputs = [(call.operand(0), x), (call.operand(1), weights), _bias(call)]
    return "Int8FC", {}, inputs, lambda output: output.reshape(shape)


def _average_pool(call: OperatorCall) -> _Authored:
    layer, x = window_layer(call), call.operand(0)
    is_padded = any(map(any, layer.paddings(x.values.shape[2:])))
    counts_padding = not layer.average_count_excludes_padding  # type: ignore[attr-defined]  # a pooling has it
    require(counts_padding or not is_padded, "Int8AveragePool counts padding")
    require(layer.padding_mode is not PaddingMode.EXPLICIT_ROUND_UP, "Int8AveragePool rounds its extents down")
    arguments = _window(layer, x.values.shape[2:])
    return "Int8AveragePool", arguments, [(x, channels_last(x.values))], channels_second


def _global_average_pool(call: OperatorCall) -> _Authored:
    x, axes = call.operand(0), call.layer.axes  # type: ignore[attr-defined]  # a reduction has them
    require(x.values.ndim == 4 and axes == 0b1100, "global pooling is over two spatial axes")
    shape = call.output_shape
    arguments = {"order": "NHWC", "global_pooling": 1}
    inputs = [(x, channels_last(x.values))]
    return "Int8AveragePool", arguments, inputs, lambda output: channels_second(output).reshape(shape)


def _sum(call: OperatorCall) -> _Authored:
    require(len({one.values.shape for one in call.present}) == 1, "Int8Add repeats no operand")
    return "Int8Add", {}, [(one, one.values) for one in call.present], lambda output: output


def _concat(call: OperatorCall) -> _Authored:
    """Operands moved so that the axis is the last: Int8Concat has no other in NHWC."""
    axis = call.layer.axis  # type: ignore[attr-defined]  # a concatenation has it
    require(call.operand(0).values.ndim == 4, "Int8Concat is over the channels of images")
    inputs = [(one, np.moveaxis(one.values, axis, -1)) for one in call.present]
    return "Int8Concat", {"order": "NHWC", "axis": 3}, inputs, lambda output: np.moveaxis(output, -1, axis)


def _unary(kind: str, *attributes: str) -> Callable[[OperatorCall], _Authored]:
    def author(call: OperatorCall) -> _Authored:
        x = call.operand(0)
        arguments = {name: float(getattr(call.layer, name)) for name in attributes}
        return kind, arguments, [(x, x.values)], lambda output: output

    return author


def _relu(call: OperatorCall) -> _Authored:
    require(call.layer.activation_type.name == "RELU", "Caffe2 clips to no other range")  # type: ignore[attr-defined]
    return _unary("Int8Relu")(call)


def _softmax(call: OperatorCall) -> _Authored:
    """The axis as the last of two, as Int8Softmax takes it."""
    x, axis = call.operand(0), call.layer.axis  # type: ignore[attr-defined]  # a softmax has it
    moved = np.moveaxis(x.values, axis, -1)

    def restore(output: Array) -> Array:
        return np.moveaxis(output.reshape(moved.shape), -1, axis)

    return "Int8Softmax", {}, [(x, moved.reshape(-1, moved.shape[-1]))], restore


_AUTHORS: dict[str, Callable[[OperatorCall], _Authored]] = {
    "average_pool": _average_pool,
    "concat": _concat,
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "dequantize": _unary("Int8Dequantize"),
    "eltwise_sum": _sum,
    "global_average_pool": _global_average_pool,
    "inner_product": _inner_product,
    "leaky_relu": _unary("Int8LeakyRelu", "alpha"),
    "quantize": _unary("Int8Quantize"),
    "relu": _relu,
    "requantize": _unary("Int8Quantize"),
    "sigmoid": _unary("Int8Sigmoid"),
    "softmax": _softmax,
}
