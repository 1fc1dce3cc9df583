"""ONNX Runtime as an oracle: QLinear operators, QGemm, Resize, groups of DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from tests.oracles.oracle import NoCounterpartError, Oracle, Translation
from tests.oracles.windows import matrices, require, two_axes
from tests.oracles.worker_process import Job

from dryfit.network.layers.window_layer import PaddingMode, WindowLayer
from dryfit.quantization.methods.call import Operand, OperatorCall
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]
_CONTRIBUTED = "com.microsoft"
_OPSETS = [helper.make_opsetid("", 19), helper.make_opsetid(_CONTRIBUTED, 1)]
_IR_VERSION = 9


class OnnxRuntimeOracle(Oracle):
    """ONNX Runtime on the CPU; its elementwise kernels differ with the CPU's instruction set (AVX2 or not)."""

    library = "onnx_runtime"

    def __init__(self, python: str = sys.executable) -> None:
        super().__init__(python)

    def translation(self, case: OperatorCase) -> Translation:
        """A model of one operator, and its inputs."""
        call = case.call
        if call.operator not in _AUTHORS:
            raise NoCounterpartError(f"ONNX Runtime has no quantized kernel of {call.operator}")
        require(call.limits == (-np.inf, np.inf), "the QLinear operators fuse no activation")
        graph = _Graph(call)
        _AUTHORS[call.operator](graph)
        shape = call.output_shape
        model = np.frombuffer(graph.model(), np.uint8)
        return Translation(Job({}, [model, *graph.inputs.values()]), lambda output: output.reshape(shape))


class _Graph:
    """A model in the making: its nodes, constants and inputs.

    Attributes:
        call: what it is for.
        inputs: name to values.
    """

    def __init__(self, call: OperatorCall) -> None:
        self.call = call
        self.inputs: dict[str, Array] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def input(self, values: Array) -> str:
        """An input of the model."""
        name = f"input{len(self.inputs)}"
        self.inputs[name] = np.ascontiguousarray(values)
        return name

    def constant(self, values: Any) -> str:
        """A constant."""
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(np.shape(values)), name))
        return name

    def grid(self, operand: Operand) -> list[str]:
        """Scale and zero point of an operand, as constants."""
        assert operand.scale is not None and operand.zero_point is not None  # noqa: PT018  # codes have both
        return [
            self.constant(np.asarray(operand.scale, np.float32)),
            self.constant(np.asarray(operand.zero_point).astype(operand.values.dtype)),
        ]

    def operand(self, operand: Operand, values: Array | None = None, *, is_constant: bool = False) -> list[str]:
        """An operand with its grid."""
        values = operand.values if values is None else values
        return [self.constant(values) if is_constant else self.input(values), *self.grid(operand)]

    @property
    def output_grid(self) -> list[str]:
        """The output's scale and zero point, as constants."""
        scale, zero_point = np.float32(self.call.output_scale or 0), self.call.output_zero_point
        return [
            self.constant(np.asarray(scale)),
            self.constant(np.asarray(zero_point, self.call.to_type.numpy)),
        ]

    def node(self, operator: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        """Add a node; its output's name, which is the graph's output if no node follows."""
        name = f"value{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def model(self) -> bytes:
        """The model."""
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
            for name, one in self.inputs.items()
        ]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.call.to_type.numpy))
        output = helper.make_tensor_value_info(self._nodes[-1].output[0], kind, None)
        graph = helper.make_graph(self._nodes, "operator", values, [output], self._constants)
        model = helper.make_model(graph, opset_imports=_OPSETS)
        model.ir_version = _IR_VERSION
        return bytes(model.SerializeToString())


def _window(layer: WindowLayer, spatial: Sequence[int]) -> dict[str, Any]:
    """The attributes of a window, its paddings resolved."""
    paddings = layer.paddings(spatial)
    return {
        "kernel_shape": list(layer.window),
        "strides": list(layer.stride_nd),
        "pads": [pre for pre, _ in paddings] + [post for _, post in paddings],
    }


def _bias(call: OperatorCall) -> Array | None:
    bias = call.operands[2] if len(call.operands) > 2 else None
    return None if bias is None else bias.values


def _convolution(graph: _Graph) -> None:
    call, layer = graph.call, graph.call.layer
    bias = _bias(call)
    inputs = [*graph.operand(call.operand(0)), *graph.operand(call.operand(1), is_constant=True), *graph.output_grid]
    inputs += [] if bias is None else [graph.constant(bias)]
    assert isinstance(layer, WindowLayer)  # a convolution is one
    attributes = _window(layer, call.operand(0).values.shape[2:])
    groups = layer.num_groups  # type: ignore[attr-defined]  # a convolution has them
    graph.node("QLinearConv", inputs, **attributes, dilations=list(layer.dilation_nd), group=groups)


def _inner_product(graph: _Graph) -> None:
    call = graph.call
    bias = _bias(call)
    if call.layer.kind == "matrix_multiply" and bias is None:
        one, other = matrices(call)
        second = graph.operand(call.operand(1), other, is_constant=True)
        graph.node("QLinearMatMul", [*graph.operand(call.operand(0), one), *second, *graph.output_grid])
        return
    x, weights = two_axes(call)
    first = graph.operand(call.operand(0), x)
    second = graph.operand(call.operand(1), weights, is_constant=True)
    third = "" if bias is None else graph.constant(bias)
    graph.node("QGemm", [*first, *second, third, *graph.output_grid], _CONTRIBUTED, transB=1)


def _sum(graph: _Graph) -> None:
    first, second = graph.call.present
    inputs = [*graph.operand(first), *graph.operand(second), *graph.output_grid]
    graph.node("QLinearAdd", inputs, _CONTRIBUTED)


def _average_pool(graph: _Graph) -> None:
    call, layer = graph.call, graph.call.layer
    assert isinstance(layer, WindowLayer)  # a pooling is one
    attributes = _window(layer, call.operand(0).values.shape[2:])
    attributes["ceil_mode"] = int(layer.padding_mode is PaddingMode.EXPLICIT_ROUND_UP)
    attributes["count_include_pad"] = int(not layer.average_count_excludes_padding)  # type: ignore[attr-defined]
    require(set(layer.dilation_nd) == {1}, "QLinearAveragePool has no dilation")
    inputs = [*graph.operand(call.operand(0)), *graph.output_grid]
    graph.node("QLinearAveragePool", inputs, _CONTRIBUTED, **attributes)


def _global_average_pool(graph: _Graph) -> None:
    x, axes = graph.call.operand(0), graph.call.layer.axes  # type: ignore[attr-defined]  # a reduction has them
    require(axes == (1 << x.values.ndim) - 4, "QLinearGlobalAveragePool is over all spatial axes")
    graph.node("QLinearGlobalAveragePool", [*graph.operand(x), *graph.output_grid], _CONTRIBUTED)


def _concat(graph: _Graph) -> None:
    inputs = list(graph.output_grid)
    for operand in graph.call.present:
        inputs += graph.operand(operand)
    graph.node("QLinearConcat", inputs, _CONTRIBUTED, axis=graph.call.layer.axis)  # type: ignore[attr-defined]


def _unary(operator: str, attribute: str = "") -> Callable[[_Graph], None]:
    def author(graph: _Graph) -> None:
        attributes = {attribute: float(getattr(graph.call.layer, attribute))} if attribute else {}
        inputs = [*graph.operand(graph.call.operand(0)), *graph.output_grid]
        graph.node(operator, inputs, _CONTRIBUTED, **attributes)

    return author


def _softmax(graph: _Graph) -> None:
    inputs = [*graph.operand(graph.call.operand(0)), *graph.output_grid]
    axis = graph.call.layer.axis  # type: ignore[attr-defined]  # a softmax has it
    graph.node("QLinearSoftmax", inputs, _CONTRIBUTED, axis=axis, opset=13)


def _relu(graph: _Graph) -> None:
    layer = graph.call.layer
    real = graph.node("DequantizeLinear", graph.operand(graph.call.operand(0)))
    if layer.activation_type.name == "RELU":  # type: ignore[attr-defined]  # an activation has it
        real = graph.node("Relu", [real])
    else:
        limits = (layer.alpha, layer.beta)  # type: ignore[attr-defined]
        real = graph.node("Clip", [real, *(graph.constant(np.float32(limit)) for limit in limits)])
    graph.node("QuantizeLinear", [real, *graph.output_grid])


def _requantize(graph: _Graph) -> None:
    real = graph.node("DequantizeLinear", graph.operand(graph.call.operand(0)))
    graph.node("QuantizeLinear", [real, *graph.output_grid])


def _quantize(graph: _Graph) -> None:
    graph.node("QuantizeLinear", [graph.input(graph.call.operand(0).values), *graph.output_grid])


def _dequantize(graph: _Graph) -> None:
    graph.node("DequantizeLinear", graph.operand(graph.call.operand(0)))


def _resize(graph: _Graph) -> None:
    call = graph.call
    x, mode = call.operand(0), call.layer.coordinate_transformation.value  # type: ignore[attr-defined]
    is_same = (x.one_scale, x.one_zero_point) == (call.output_scale, call.output_zero_point)
    require(is_same, "Resize keeps scale and zero point")
    sizes = graph.constant(np.asarray(call.output_shape, np.int64))
    names = [graph.input(x.values), "", "", sizes]
    graph.node("Resize", names, mode="linear", coordinate_transformation_mode=mode)


_AUTHORS: dict[str, Callable[[_Graph], None]] = {
    "average_pool": _average_pool,
    "bias_add": _sum,
    "concat": _concat,
    "convolution": _convolution,
    "dequantize": _dequantize,
    "eltwise_sum": _sum,
    "global_average_pool": _global_average_pool,
    "inner_product": _inner_product,
    "leaky_relu": _unary("QLinearLeakyRelu", "alpha"),
    "quantize": _quantize,
    "relu": _relu,
    "requantize": _requantize,
    "resize_bilinear": _resize,
    "sigmoid": _unary("QLinearSigmoid"),
    "softmax": _softmax,
}
