"""The form of a model that TensorRT asks for keeps one rounding for each layer that runs as one, and all scales."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dryfit
from measuring.quantized_models import quantized_forms
from measuring.tensorrt_form import tensorrt_form

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

SHAPE = (1, 4, 8, 8)


def network(nodes: Sequence[onnx.NodeProto], output: str, shape: tuple[int, ...] = SHAPE) -> onnx.ModelProto:
    """An FP32 network of 1 x 1 convolutions with weights `w1` to `w3`."""
    generator = np.random.default_rng(0)
    weights = {f"w{i}": generator.standard_normal((4, 4, 1, 1)).astype(np.float32) for i in (1, 2, 3)}
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(kind: str, inputs: str, output: str) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], name=output)


CHAIN = [node("Conv", "x w1", "a"), node("Relu", "a", "b"), node("Conv", "b w2", "y")]
RESIDUAL = [
    node("Conv", "x w1", "short"),
    node("Conv", "x w2", "long"),
    node("Sum", "short long", "sum"),
    node("Relu", "sum", "both"),
    node("Conv", "both w3", "y"),
]
SHARED = [node("Conv", "x w1", "a"), node("Relu", "a", "b"), node("Conv", "a w2", "c"), node("Sum", "b c", "y")]
SOFTMAX = [node("Conv", "x w1", "a"), node("Flatten", "a", "f"), node("Softmax", "f", "y")]


def images() -> list[np.ndarray]:
    return [np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32) for seed in range(4)]


def rounded_values(model: onnx.ModelProto) -> list[str]:
    """The nodes whose results are quantized, as they are called in the FP32 network; `x` is the input."""
    names = {name: node.name.removesuffix("_quant") for node in model.graph.node for name in node.output}
    found = [node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    return sorted(names.get(name, name) for name in found)


def scales(model: onnx.ModelProto) -> dict[str, float]:
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    used = {node.input[1] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    return {name: float(values[name]) for name in used}


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [(CHAIN, ["b", "x"]), (RESIDUAL, ["both", "short", "x"]), (SHARED, ["a", "b", "x"]), (SOFTMAX, ["x"])],
    ids=["convolution and RELU", "residual", "a result that two read", "softmax"],
)
def test_what_layers_that_run_in_integers_read_is_rounded_and_nothing_inside_of_one(nodes, kept):
    shape = (1, 256) if nodes is SOFTMAX else SHAPE
    forms = quantized_forms(network(nodes, "y", shape), "x", images())
    form, full = (onnx.load_from_string(forms[name]) for name in ("tensorrt", "s8"))
    onnx.checker.check_model(form, full_check=True)
    assert rounded_values(form) == kept
    assert len(rounded_values(full)) > len(kept)
    assert scales(form).items() <= scales(full).items()


def test_a_form_is_as_near_to_fp32_as_the_one_that_is_rounded_behind_every_node():
    model = network(RESIDUAL, "y")
    forms = quantized_forms(model, "x", images())
    x = np.random.default_rng(9).standard_normal(SHAPE).astype(np.float32)

    def run(data: bytes) -> np.ndarray:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": x})[0]

    real = run(model.SerializeToString())
    error = {name: np.abs(run(forms[name]) - real).mean() for name in ("tensorrt", "s8")}
    assert error["tensorrt"] < 1.05 * error["s8"]
    assert error["tensorrt"] < 0.02 * np.abs(real).max()


def test_dryfit_runs_the_form_with_one_layer_for_each_rounding(tmp_path):
    (tmp_path / "form.onnx").write_bytes(quantized_forms(network(RESIDUAL, "y"), "x", images())["tensorrt"])
    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    engine = builder.build_engine(dryfit.network_from_onnx(str(tmp_path / "form.onnx")), config)
    assert [operation.kernel for operation in engine.plan.operations] == [
        "cpu.quantization",
        *["cpu.integer_convolution"] * 3,
    ]


def test_a_model_without_pairs_stays_as_it_is():
    model = network(CHAIN, "y")
    before = model.SerializeToString()
    assert tensorrt_form(model).SerializeToString() == before
