"""The models that are measured compute something sensible, for any batch, in every form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from measuring import models
from measuring.layer_models import NODE, feeds, fp32_model, int8_model, layer_cases
from measuring.models import LIGHT, Model, images_of, model, shape_of, with_batch, with_weights

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)


def run(network: onnx.ModelProto | bytes, inputs=None):
    data = network if isinstance(network, bytes) else network.SerializeToString()
    options = onnxruntime.SessionOptions()
    # Else pairs of products saturate in 16 bits on processors without VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds(data) if inputs is None else inputs)[0]


@pytest.mark.parametrize(
    "name", ["resnet50", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("densenet121", "inception_v2"))]
)
def test_random_weights_keep_values_in_a_sensible_range(name):
    network = with_weights(onnx.load(LIGHT / f"light_{name}.onnx"))
    image = images_of(network)
    assert [shape_of(tensor) for tensor in image] == [(1, 3, 224, 224)]
    assert not [node for node in network.graph.node if node.op_type == "ConstantOfShape"]
    before = [node.input[0] for node in network.graph.node if node.op_type in {"Softmax", "GlobalAveragePool"}][-1]
    del network.graph.output[:]
    network.graph.output.append(helper.make_empty_tensor_value_info(before))
    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    values = run(network, {image[0].name: x})
    assert np.isfinite(values).all()
    assert 1e-3 < np.abs(values).max() < 1e4


def test_the_same_weights_are_drawn_every_time():
    first, second = (with_weights(onnx.load(LIGHT / "light_resnet50.onnx")) for _ in range(2))
    assert first.SerializeToString() == second.SerializeToString()


def small_network(batch=1) -> onnx.ModelProto:
    """A convolution, a reshape that names the batch, and a product."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3]),
        helper.make_node("Reshape", ["c", "shape"], ["r"]),
        helper.make_node("MatMul", ["r", "m"], ["y"]),
    ]
    generator = np.random.default_rng(0)
    constants = {
        "w": generator.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "shape": np.array([batch, 4 * 36]),
        "m": generator.standard_normal((4 * 36, 5)).astype(np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (batch, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (batch, 5))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_batch_is_that_many_images():
    images = np.random.default_rng(1).standard_normal((4, 3, 8, 8)).astype(np.float32)
    single = [run(with_batch(small_network(), 1), {"x": images[i : i + 1]}) for i in range(4)]
    np.testing.assert_allclose(run(with_batch(small_network(), 4), {"x": images}), np.concatenate(single), rtol=1e-5)


def test_a_model_is_made_once_in_every_form(tmp_path: Path, monkeypatch):
    onnx.save(small_network(), tmp_path / "small.onnx")
    monkeypatch.setattr(models, "NETWORKS", {"small": tmp_path / "small.onnx"})
    monkeypatch.setenv("DRYFIT_CACHE_DIR", str(tmp_path / "cache"))
    found: Model = model("small", "int8", 2)
    assert list(found.files) == ["tensorrt", "s8", "u8", "operators"]
    assert (found.input_name, found.shape) == ("x", (2, 3, 8, 8))
    real = run(with_batch(small_network(), 2), {"x": found.image()})
    for path in found.files.values():
        assert np.abs(run(path.read_bytes(), {"x": found.image()}) - real).max() < 0.1 * np.abs(real).max()
    monkeypatch.setattr(models, "with_weights", lambda network: pytest.fail("made again"))
    assert model("small", "int8", 2) == found


def test_a_network_that_is_not_there_is_known_to_be_absent(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(models, "NETWORKS", {"absent": tmp_path / "absent.onnx"})
    assert not models.is_there("absent")


@pytest.mark.parametrize("case", list(layer_cases()), ids=lambda case: f"{case.kind}: {case.name}")
def test_a_layer_has_one_node_that_is_called_so(case):
    data = [fp32_model(case)]
    if case.is_quantizable:
        data += [int8_model(case, is_signed=True), int8_model(case, is_signed=False)]
    for one in data:
        graph = onnx.load_from_string(one).graph
        assert [node.op_type for node in graph.node if node.name == NODE] == [case.operator]
        assert all(extent.dim_value for extent in graph.output[0].type.tensor_type.shape.dim)


@pytest.mark.parametrize(
    "case", [case for case in layer_cases() if case.is_quantizable and "7x7" in case.name], ids=lambda case: case.name
)
def test_a_quantized_layer_does_not_only_saturate(case):
    values = run(int8_model(case, is_signed=True))
    assert values.dtype == np.int8
    assert len(np.unique(values)) > 20
