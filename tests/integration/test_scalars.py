"""Tensors of rank 0 through every kind of layer that admits them: ONNX Runtime's numbers and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import dryfit

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

Feeds = dict[str, Any]
FLOAT = np.float32
X, Z = FLOAT(0.43), FLOAT(1.5)

ACTIVATIONS = ["Elu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softplus", "Tanh"]
FUNCTIONS = ["Abs", "Erf", "Exp", "Floor", "IsNaN", "Log", "Neg", "Reciprocal", "Round", "Sign", "Sin", "Sqrt"]
UNARY = [*ACTIVATIONS, *FUNCTIONS, "Identity", "ReduceL2", "ReduceMax", "ReduceSum", "Shape", "Size", "Transpose"]
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Greater", "Less", "Equal", "Max", "Min"]
CODES = (np.int8, np.uint8, np.int16, np.uint16)
IN_BETWEEN = ("none", "Relu", "Sigmoid", "Identity", "Add", "Mul")


def model(nodes: list[Any], inputs: Feeds, constants: Feeds) -> bytes:
    graph = helper.make_graph(
        nodes,
        "scalars",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(one).dtype), np.shape(one))
            for name, one in inputs.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(np.asarray(one), name) for name, one in constants.items()],
    )
    graph.output[0].ClearField("type")
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)
    return found.SerializeToString()


def assert_like_onnx_runtime(nodes: list[Any], inputs: Feeds, constants: Feeds, device: str = "CPU") -> None:
    data = model(nodes, inputs, constants)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = session.run(None, {name: np.asarray(one) for name, one in inputs.items()})[0]
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType[device]
    config.allow_fallback("CPU")
    engine = dryfit.Builder().build_engine(dryfit.network_from_onnx(data), config)
    engine = dryfit.Engine.load(engine.serialize())
    outputs = engine.create_execution_context(2).run({name: np.asarray(one) for name, one in inputs.items()})
    assert outputs["y"].shape == expected.shape
    assert outputs["y"].dtype == expected.dtype
    np.testing.assert_allclose(outputs["y"], expected, rtol=1e-5)


node = helper.make_node


@pytest.mark.parametrize("operator", UNARY)
def test_a_scalar_through_one_operator(operator: str) -> None:
    assert_like_onnx_runtime([node(operator, ["x"], ["y"])], {"x": X}, {})


@pytest.mark.parametrize("operator", BINARY)
def test_two_scalars_a_constant_one_and_a_vector(operator: str) -> None:
    nodes = [node(operator, ["x", "z"], ["y"])]
    assert_like_onnx_runtime(nodes, {"x": X, "z": Z}, {})
    assert_like_onnx_runtime(nodes, {"x": X}, {"z": Z})
    if operator != "PRelu":
        assert_like_onnx_runtime(nodes, {"x": X, "z": FLOAT([1.5, 2, 0.1])}, {})


@pytest.mark.parametrize("device", ["CPU", "GPU"])
@pytest.mark.parametrize("zero_point", [0, 10])
@pytest.mark.parametrize("codes", CODES)
def test_dequantized_scalars(codes: Any, zero_point: int, device: str) -> None:
    parameters = {"s": FLOAT(0.1), "z": codes(zero_point)}
    alone = [node("DequantizeLinear", ["c", "s", "z"], ["y"])]
    assert_like_onnx_runtime(alone, {"c": codes(30)}, parameters, device)
    nodes = [node("DequantizeLinear", ["c", "s", "z"], ["d"]), node("Mul", ["x", "d"], ["y"])]
    x = FLOAT([1, 2, 3, 4])
    assert_like_onnx_runtime(nodes, {"x": x, "c": codes(30)}, parameters, device)
    assert_like_onnx_runtime(nodes, {"x": x}, {**parameters, "c": codes(30)}, device)


@pytest.mark.parametrize("between", IN_BETWEEN)
@pytest.mark.parametrize("zero_point", [0, 10])
@pytest.mark.parametrize("codes", CODES)
def test_quantized_scalars(codes: Any, zero_point: int, between: str) -> None:
    parameters = {"s": FLOAT(0.1), "z": codes(zero_point)}
    if between == "none":
        assert_like_onnx_runtime([node("QuantizeLinear", ["x", "s", "z"], ["y"])], {"x": X}, parameters)
        return

    def pair(name: str, output: str) -> list[Any]:
        return [
            node("QuantizeLinear", [name, "s", "z"], [f"{name}_q"]),
            node("DequantizeLinear", [f"{name}_q", "s", "z"], [output]),
        ]

    read = ["xd", "wd"] if between in {"Add", "Mul"} else ["xd"]
    nodes = [
        *pair("x", "xd"),
        *(pair("w", "wd") if len(read) == 2 else []),
        node(between, read, ["o"]),
        *pair("o", "y"),
    ]
    feeds = {"x": X, "w": FLOAT(0.77)} if len(read) == 2 else {"x": X}
    assert_like_onnx_runtime(nodes, feeds, parameters)


@pytest.mark.parametrize(
    ("nodes", "inputs", "constants"),
    [
        ([node("Reshape", ["x", "s"], ["y"])], {"x": FLOAT([3])}, {"s": np.zeros(0, np.int64)}),
        ([node("Unsqueeze", ["x", "a"], ["y"])], {"x": X}, {"a": np.int64([0, 1])}),
        ([node("Expand", ["x", "s"], ["y"])], {"x": X}, {"s": np.int64([2, 3])}),
        ([node("Where", ["b", "x", "z"], ["y"])], {"b": np.bool_(True), "x": X, "z": Z}, {}),
        ([node("Clip", ["x", "l", "u"], ["y"])], {"x": FLOAT(5), "l": FLOAT(0), "u": FLOAT(1)}, {}),
        ([node("Gather", ["x", "i"], ["y"])], {"x": FLOAT([1, 2, 3]), "i": np.int64(1)}, {}),
        ([node("Einsum", ["x", "z"], ["y"], equation="i,i->")], {"x": FLOAT([1, 2]), "z": FLOAT([3, 4])}, {}),
        ([node("MatMul", ["x", "z"], ["y"])], {"x": FLOAT([1, 2]), "z": FLOAT([3, 4])}, {}),
        ([node("Cast", ["x"], ["y"], to=TensorProto.INT32)], {"x": FLOAT(3.6)}, {}),
        (
            [
                node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
                node("DequantizeLinear", ["q", "s", "z"], ["y"]),
            ],
            {"x": X},
            {},
        ),
        (
            [
                node("ReduceMean", ["x"], ["r"], keepdims=0),
                node("Mul", ["r", "r"], ["m"]),
                node("Sub", ["x", "m"], ["y"]),
            ],
            {"x": FLOAT([[0.4, 2], [3, 1]])},
            {},
        ),
    ],
    ids=lambda one: one[0].op_type if isinstance(one, list) else "",
)
def test_scalars_among_other_tensors(nodes: list[Any], inputs: Feeds, constants: Feeds) -> None:
    assert_like_onnx_runtime(nodes, inputs, constants)
