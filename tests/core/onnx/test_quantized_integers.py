"""Operators on quantized integers: refused for devices, and imported as real ones between Q/DQ for quantize methods."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from dryfit.errors import OnnxImportError
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.parser import OnnxParser
from dryfit.reference.executor import run_reference

MICROSOFT = "com.microsoft"
X = np.arange(32, dtype=np.uint8).reshape(1, 2, 4, 4) * 7


def model(
    op_type, inputs, *, domain="", dtype=TensorProto.UINT8, shape=X.shape, x_type=TensorProto.UINT8, **attributes
):
    """A model of one node; inputs are names of graph inputs, arrays, or "" for absent ones."""
    names, constants = [], []
    for index, one in enumerate(inputs):
        names.append(one if isinstance(one, str) else f"c{index}")
        if not isinstance(one, str):
            constants.append(numpy_helper.from_array(np.asarray(one), f"c{index}"))
    node = helper.make_node(op_type, names, ["y"], name="node", domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", x_type, shape)],
        [helper.make_tensor_value_info("y", dtype, None)],
        constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def f(value):
    return np.asarray(value, np.float32)


def u(value):
    return np.asarray(value, np.uint8)


def i(value, dtype=np.int8):
    return np.asarray(value, dtype)


WEIGHTS = i(np.arange(-9, 9).reshape(1, 2, 3, 3))
IN = ("x", f(0.5), u(3))
OUT = (f(2.0), u(10))
CASES = {
    "QLinearConv": ("", [*IN, WEIGHTS, f([0.25]), i([0]), *OUT, i([7], np.int32)], {}),
    "QLinearMatMul": ("", [*IN, i(np.arange(8).reshape(4, 2)), f([0.25, 0.5]), i([0, 0]), *OUT], {}),
    "QLinearAdd": (MICROSOFT, [*IN, "x", f(0.25), u(1), *OUT], {}),
    "QLinearMul": (MICROSOFT, [*IN, "x", f(0.25), u(1), *OUT], {}),
    "QLinearAveragePool": (MICROSOFT, [*IN, *OUT], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "QLinearGlobalAveragePool": (MICROSOFT, [*IN, *OUT], {}),
    "QLinearConcat": (MICROSOFT, [*OUT, *IN, "x", f(1.0), u(0)], {"axis": 1}),
    "QLinearLeakyRelu": (MICROSOFT, [*IN, *OUT], {"alpha": 0.25}),
    "QLinearSigmoid": (MICROSOFT, [*IN, f(1 / 256), ""], {}),
    "QLinearSoftmax": (MICROSOFT, [*IN, f(1 / 256), u(0)], {"axis": -1, "opset": 13}),
}


@pytest.mark.parametrize("op_type", CASES)
def test_it_means_the_real_operator_between_dequantizations_and_a_quantization(op_type):
    ort = pytest.importorskip("onnxruntime")
    domain, inputs, attributes = CASES[op_type]
    made = model(op_type, inputs, domain=domain, **attributes)
    network = network_from_onnx(made, quantize_method="none")
    kinds = [layer.kind for layer in network.layers if layer.kind not in ("constant", "shuffle")]
    assert kinds[-1] == "quantize"
    assert kinds.count("dequantize") in (1, 2, 3)
    assert network.layer("node").kind not in ("quantize", "dequantize")
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": X})
    found = run_reference(network, {"x": X})["y"]
    assert found.dtype == expected.dtype
    # Real numbers are rounded elsewhere than integers: a code at most.
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize("has_scale", [True, False])
def test_a_qgemm_gives_codes_or_without_an_output_scale_real_numbers(has_scale):
    ort = pytest.importorskip("onnxruntime")
    weights, bias = i(np.arange(-6, 6).reshape(4, 3)), i([5, -7, 1000], np.int32)
    inputs = ["x", f(0.5), u(3), weights, f([0.25, 0.5, 1.0]), i([0, 0, 0]), bias, *(OUT if has_scale else ())]
    dtype = TensorProto.UINT8 if has_scale else TensorProto.FLOAT
    made = model("QGemm", inputs, domain=MICROSOFT, shape=(2, 4), dtype=dtype)
    x = np.arange(8, dtype=np.uint8).reshape(2, 4)
    network = network_from_onnx(made, quantize_method="onnx")
    assert network.layer("node").kind in ("fully_connected", "shuffle")
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    found = run_reference(network, {"x": x})["y"]
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=1 if has_scale else 1e-3)


@pytest.mark.parametrize("op_type", CASES)
def test_without_a_method_it_is_refused_with_a_pointer_to_methods(op_type):
    domain, inputs, attributes = CASES[op_type]
    with pytest.raises(OnnxImportError, match=r"--quantize-method NAME, or network.quantize_method before parsing"):
        network_from_onnx(model(op_type, inputs, domain=domain, **attributes))


def test_the_parser_takes_it_into_a_network_with_a_method_only():
    domain, inputs, attributes = CASES["QLinearConv"]
    data = model("QLinearConv", inputs, domain=domain, **attributes).SerializeToString()
    refusing, taking = Network(), Network()
    taking.quantize_method = "tflite"
    parser = OnnxParser(refusing)
    assert not parser.parse(data)
    assert not parser.supports_operator("QLinearConv")
    assert "quantized integers" in str(parser.get_error(0))
    assert OnnxParser(taking).parse(data)
    assert OnnxParser(taking).supports_operator("QLinearConv")


@pytest.mark.parametrize(
    ("op_type", "attributes", "words"),
    [
        ("QLinearAveragePool", {"kernel_shape": [2, 2], "channels_last": 1}, "channel axis must come before"),
        ("QLinearSoftmax", {"axis": 1, "opset": 11}, "softmax over several axes is not supported"),
    ],
)
def test_what_no_layer_can_say_is_refused(op_type, attributes, words):
    with pytest.raises(OnnxImportError, match=words):
        network_from_onnx(model(op_type, [*IN, *OUT], domain=MICROSOFT, **attributes), quantize_method="onnx")


def test_a_scale_that_is_not_positive_is_refused():
    inputs = ["x", f(0.0), u(3), WEIGHTS, f([0.25]), i([0]), *OUT]
    with pytest.raises(OnnxImportError, match="Scales must be finite and positive"):
        network_from_onnx(model("QLinearConv", inputs), quantize_method="onnx")


def test_a_dequantized_integer_bias_stays_integer_in_a_network_with_a_method():
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xr"], name="dx"),
        helper.make_node("DequantizeLinear", ["b", "s"], ["br"], name="db"),
        helper.make_node("Conv", ["xr", "w", "br"], ["y"], name="conv"),
    ]
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in {
            "s": f(0.5),
            "z": u(3),
            "b": i([2**28 + 1], np.int32),
            "w": np.ones((1, 2, 3, 3), np.float32),
        }.items()
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    plain, kept = network_from_onnx(made), network_from_onnx(made, quantize_method="tflite")
    assert plain.layer("conv").bias.dtype == np.float32
    assert kept.layer("conv").bias is None
    source = kept.layer("conv").inputs[2].producer
    assert source.kind == "dequantize"
    np.testing.assert_array_equal(source.inputs[0].spec.value, [2**28 + 1])
