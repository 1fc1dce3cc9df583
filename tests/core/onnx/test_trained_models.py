"""Models from quantization-aware training, node for node as PyTorch's and TensorFlow's exporters write them.

PyTorch: `torch.onnx` on fake quantization at the inputs of layers: scales in Constant nodes, zero points cast to their
type, weights of linear layers turned by Gemm's `transB`, or by a Transpose behind the dequantization.
TensorFlow: tf2onnx on `quantize_and_dequantize`: on the outputs of layers, convolution weights transposed behind the
dequantization, and scales computed from the data where the range is not given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from tests.core.onnx.quantized_models import dequantize, model_of, quantize, reference_of, runtime_of

from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Quantize
from dryfit.onnx.importer import network_from_onnx

GENERATOR = np.random.default_rng(0)
IMAGE = GENERATOR.standard_normal((2, 3, 8, 8)).astype(np.float32)
KERNEL = (GENERATOR.standard_normal((4, 3, 3, 3)) / 4).astype(np.float32)
"""`[outputs, inputs, height, width]`."""
LINEAR = (GENERATOR.standard_normal((5, 64)) / 8).astype(np.float32)
"""`[outputs, inputs]`."""


def constant(name: str, value: Any) -> NodeProto:
    return helper.make_node("Constant", [], [name], name, value=numpy_helper.from_array(np.asarray(value)))


def torch_pair(x: str, y: str, scale: Any, **axis: int) -> list[NodeProto]:
    """What `torch.onnx` makes of one fake quantization: the quantized `x` is called `y`."""
    zeros = np.zeros(np.shape(scale), np.int32)
    return [
        constant(f"{y}_scale", scale),
        constant(f"{y}_int32", zeros),
        helper.make_node("Cast", [f"{y}_int32"], [f"{y}_zero"], to=TensorProto.INT8),
        quantize(x, f"{y}_scale", f"{y}_q", f"{y}_zero", **axis),
        dequantize(f"{y}_q", f"{y}_scale", y, f"{y}_zero", **axis),
    ]


def per_channel(weights: np.ndarray, axis: int) -> np.ndarray:
    others = tuple(index for index in range(weights.ndim) if index != axis)
    return (np.abs(weights).max(axis=others) / 127).astype(np.float32)


def torch_model() -> onnx.ModelProto:
    nodes = [
        *torch_pair("x", "xd", np.float32(0.03)),
        *torch_pair("conv.weight", "wd", per_channel(KERNEL, 0), axis=0),
        helper.make_node("Conv", ["xd", "wd", "conv.bias"], ["c"], "conv", kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Flatten", ["r"], ["f"], "flatten"),
        *torch_pair("f", "fd", np.float32(0.04)),
        *torch_pair("fc.weight", "ld", per_channel(LINEAR[:, :36], 0), axis=0),
        helper.make_node("Gemm", ["fd", "ld", "fc.bias"], ["y"], "fc", transB=1),
    ]
    weights = {"conv.weight": KERNEL, "fc.weight": LINEAR[:, :36]}
    biases = {"conv.bias": np.float32([0.1, -0.2, 0.3, 0]), "fc.bias": np.linspace(-1, 1, 5).astype(np.float32)}
    return model_of(nodes, {"x": IMAGE}, weights | biases, opset=13)


def torch_transformer_model() -> onnx.ModelProto:
    """A linear layer on three axes: MatMul by weights that are turned behind their dequantization."""
    nodes = [
        *torch_pair("x", "xd", np.float32(0.03)),
        *torch_pair("weight", "wd", per_channel(LINEAR, 0), axis=0),
        helper.make_node("Transpose", ["wd"], ["t"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["xd", "t"], ["m"], "matmul"),
        helper.make_node("Add", ["bias", "m"], ["y"], "add"),
    ]
    x = IMAGE.reshape(2, 3, 64)
    return model_of(nodes, {"x": x}, {"weight": LINEAR, "bias": np.float32([1, 2, 3, 4, 5])}, opset=13)


def tensorflow_pair(x: str, y: str, scale: str, zero: str, **axis: int) -> list[NodeProto]:
    return [quantize(x, scale, f"{y}_q", zero, **axis), dequantize(f"{y}_q", scale, y, zero, **axis)]


def tensorflow_model() -> onnx.ModelProto:
    """Channels last at the border; the range of the data is given, that of the kernel is not."""
    hwio = np.ascontiguousarray(KERNEL.transpose(2, 3, 1, 0))
    nodes = [
        helper.make_node("ReduceMax", ["kernel"], ["max"], axes=[0, 1, 2], keepdims=0),
        helper.make_node("ReduceMin", ["kernel"], ["min"], axes=[0, 1, 2], keepdims=0),
        helper.make_node("Div", ["max", "127"], ["from_max"]),
        helper.make_node("Div", ["min", "-127"], ["from_min"]),
        helper.make_node("Max", ["from_min", "from_max"], ["sk"]),
        helper.make_node("Shape", ["sk"], ["channels"]),
        helper.make_node(
            "ConstantOfShape", ["channels"], ["zk"], value=helper.make_tensor("value", TensorProto.INT8, [1], [0])
        ),
        *tensorflow_pair("kernel", "kd", "sk", "zk", axis=3),
        helper.make_node("Transpose", ["kd"], ["oihw"], perm=[3, 2, 0, 1]),
        helper.make_node("Transpose", ["x"], ["nchw"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["nchw", "oihw"], ["c"], "conv", auto_pad="SAME_UPPER", kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        *tensorflow_pair("r", "rd", "sr", "z"),
        helper.make_node("Transpose", ["rd"], ["nhwc"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["nhwc", "flat"], ["f"]),
        *tensorflow_pair("dense", "dd", "sd", "zd", axis=1),
        helper.make_node("MatMul", ["f", "dd"], ["m"], "dense_layer"),
        helper.make_node("Add", ["m", "bias"], ["a"], "bias_add"),
        *tensorflow_pair("a", "y", "sa", "z"),
    ]
    dense = np.tile(LINEAR.T, (4, 1))
    constants = {
        "kernel": hwio,
        "127": np.float32(127),
        "-127": np.float32(-127),
        "sr": np.float32(0.02),
        "z": np.int8(0),
        "flat": np.array([2, -1]),
        "dense": dense,
        "sd": per_channel(dense, 1),
        "zd": np.zeros(5, np.int8),
        "bias": np.linspace(-1, 1, 5).astype(np.float32),
        "sa": np.float32(0.05),
    }
    return model_of(nodes, {"x": np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))}, constants, opset=13)


MODELS = {
    "PyTorch": (torch_model, IMAGE, 0.02),
    "PyTorch, three axes": (torch_transformer_model, IMAGE.reshape(2, 3, 64), 1e-4),
    "TensorFlow": (tensorflow_model, np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1)), 0.0501),
}
"""Builder, input, and how far one code of one quantization moves an output."""


@pytest.mark.parametrize("name", MODELS)
def test_a_trained_model_computes_what_onnx_runtime_computes(name: str) -> None:
    builder, x, step = MODELS[name]
    (output,), (expected,) = reference_of(builder(), {"x": x}), runtime_of(builder(), {"x": x})
    difference = np.abs(output - expected)
    assert difference.max() <= step
    assert (difference > 1e-4).mean() < 0.05


def chain_above(layer: Layer, index: int) -> list[str]:
    """The kinds from an input of a layer up to where it comes from."""
    found = []
    tensor = layer.get_input(index)
    while tensor is not None and tensor.producer is not None:
        found.append(tensor.producer.kind)
        tensor = tensor.producer.get_input(0)
    return found


def test_pytorchs_pairs_stand_at_the_inputs_of_layers() -> None:
    network = network_from_onnx(torch_model())
    assert [layer.num_inputs for layer in network if layer.kind in ("quantize", "dequantize")] == [2] * 8
    assert chain_above(network.layer("conv"), 0) == ["dequantize", "quantize"]
    assert chain_above(network.layer("conv"), 1) == ["dequantize", "quantize", "constant"]
    (connected,) = (layer for layer in network if layer.kind == "fully_connected")
    assert chain_above(connected, 0)[:2] == ["dequantize", "quantize"]
    assert chain_above(connected, 1) == ["dequantize", "quantize", "constant"]
    weights = network.layer("wd_q")
    assert isinstance(weights, Quantize)
    assert weights.axis == 0
    np.testing.assert_array_equal(weights.get_input(1).spec.value, per_channel(KERNEL, 0))


def test_tensorflows_pairs_stand_at_the_outputs_of_layers() -> None:
    network = network_from_onnx(tensorflow_model())
    activation = network.layer("rd_q")
    assert chain_above(activation, 0)[:2] == ["activation", "convolution"]
    assert chain_above(network.layer("y_q"), 0)[0] == "elementwise"
    assert chain_above(network.layer("conv"), 1) == ["shuffle", "dequantize", "quantize", "constant"]
    kernel = network.layer("kd_q")
    assert isinstance(kernel, Quantize)
    assert (kernel.axis, kernel.num_inputs) == (3, 2)
    np.testing.assert_allclose(kernel.get_input(1).spec.value, per_channel(KERNEL, 0), rtol=1e-6)


def test_a_range_that_tensorflow_computes_from_the_data_is_a_scale_at_run_time() -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["max"], keepdims=0),
        helper.make_node("ReduceMin", ["x"], ["min"], keepdims=0),
        helper.make_node("Div", ["max", "127"], ["from_max"]),
        helper.make_node("Div", ["min", "-128"], ["from_min"]),
        helper.make_node("Max", ["from_min", "from_max"], ["s"]),
        *tensorflow_pair("x", "y", "s", "z"),
    ]
    constants = {"127": np.float32(127), "-128": np.float32(-128), "z": np.int8(0)}
    model = model_of(nodes, {"x": IMAGE}, constants, opset=13)
    np.testing.assert_array_equal(reference_of(model, {"x": IMAGE})[0], runtime_of(model, {"x": IMAGE})[0])
    assert network_from_onnx(model).layer("y_q").get_input(1).spec.value is None


def test_pytorchs_reduced_range_is_a_clip_of_codes() -> None:
    """Its observers for x86 use 7 bits of UINT8, which ONNX has no type for."""
    nodes = [
        quantize("x", "s", "q", "z"),
        helper.make_node("Clip", ["q", "", "127"], ["c"], "clip"),
        dequantize("c", "s", "y", "z"),
    ]
    constants = {"s": np.float32(0.02), "z": np.uint8(64), "127": np.uint8(127)}
    model = model_of(nodes, {"x": IMAGE}, constants, opset=13)
    np.testing.assert_array_equal(reference_of(model, {"x": IMAGE})[0], runtime_of(model, {"x": IMAGE})[0])


def test_an_fp16_model_quantizes_in_fp32_between_casts() -> None:
    """Before opset 19 Q and DQ are FP32 only, so that exporters put casts around them."""
    nodes = [
        helper.make_node("Cast", ["x"], ["x32"], to=TensorProto.FLOAT),
        *torch_pair("x32", "xd", np.float32(0.03)),
        helper.make_node("Cast", ["xd"], ["xh"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["w"], ["w32"], to=TensorProto.FLOAT),
        *torch_pair("w32", "wd", per_channel(KERNEL.astype(np.float16), 0), axis=0),
        helper.make_node("Cast", ["wd"], ["wh"], to=TensorProto.FLOAT16),
        helper.make_node("Conv", ["xh", "wh"], ["y"], "conv"),
    ]
    x = IMAGE.astype(np.float16)
    model = model_of(nodes, {"x": x}, {"w": KERNEL.astype(np.float16)}, opset=13)
    (output,), (expected,) = reference_of(model, {"x": x}), runtime_of(model, {"x": x})
    assert output.dtype == np.float16
    np.testing.assert_allclose(output, expected, rtol=5e-3, atol=5e-3)
    assert chain_above(network_from_onnx(model).layer("conv"), 1) == ["cast", "dequantize", "quantize", "constant"]
