"""`dryfit.annotate`: what each node says of itself, and that the model stays what it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.schemas import validate

import dryfit
from dryfit.answers.annotate import AnnotateAnswer
from dryfit.errors import ConfigError, UnknownNameError

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

ORIN: Any = {"platform": "agx-orin-64"}


def metadata(place: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in place.metadata_props}


def of_node(model: onnx.ModelProto, name: str) -> dict[str, str]:
    return next(metadata(node) for node in model.graph.node if node.name == name)


def outputs(model: Any, **feeds: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    return onnxruntime.InferenceSession(content, options).run(None, feeds)


def model_of(nodes: list[Any], initializers: dict[str, Any], shape: Any = (1, 4), **more: Any) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in initializers.items()]
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))],
        tensors,
    )
    return helper.make_model(graph, **{"ir_version": 8, "opset_imports": [helper.make_opsetid("", 17)], **more})


def linear_model() -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"], "product"), helper.make_node("Relu", ["t"], ["y"], "relu")]
    return model_of(nodes, {"w": np.eye(4, dtype=np.float32)})


def test_each_node_says_where_and_how_it_runs(digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, shape={"image": (2, 1, 8, 8)}, **ORIN)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version >= 10
    conv = of_node(model, "conv1")
    assert (conv["dryfit.device"], conv["dryfit.segment"], conv["dryfit.precision"]) == ("DLA", "0", "FP16")
    assert conv["dryfit.layers"] == "conv1"
    assert "bound by" in conv["dryfit.estimate"]
    elu = of_node(model, "elu2")
    assert elu["dryfit.device"] == "GPU"
    assert "dla.activation.type" in elu["dryfit.cause"]
    assert "FP16 LINEAR on GPU" in elu["dryfit.format"]
    facts = metadata(model)
    assert (facts["dryfit.platform"], facts["dryfit.device"]) == ("agx-orin-64", "DLA")
    assert "--precision fp16" in facts["dryfit.options"]
    assert "--shape" in facts["dryfit.options"]
    assert "nothing was measured" in facts["dryfit.note"]
    assert facts["dryfit.estimate"].startswith("latency ")
    placed = dryfit.check(digits_model, shape={"image": (2, 1, 8, 8)}, **ORIN)
    assert {name: one.device for one in placed.layers for name in one.onnx_nodes}["elu2"] == "GPU"
    for layer in placed.layers:
        for name in layer.onnx_nodes:
            assert layer.name in answer.node(name).layers
            assert layer.device in (answer.node(name).device or "")
    image = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
    for before, after in zip(outputs(digits_model, image=image), outputs(path, image=image), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_answer_fits_its_schema(digits_model: Path) -> None:
    answer = dryfit.annotate(digits_model, **ORIN)
    validate(answer.to_dict(), AnnotateAnswer.schema())
    assert "annotated_model" not in answer.to_dict()
    with pytest.raises(UnknownNameError, match="Did you mean 'conv1'"):
        answer.node("conv_1")


def test_an_unknown_extent_leaves_the_estimate_out(digits_model: Path) -> None:
    answer = dryfit.annotate(digits_model, **ORIN)
    assert answer.facts["dryfit.estimate"].startswith("none")
    assert all(one.estimate is None for one in answer.nodes)


def test_calibrated_scales_are_written(tmp_path: Path) -> None:
    ranges = tmp_path / "ranges.json"
    ranges.write_text('{"x": [-1.27, 1.27], "t": [-2.54, 2.54], "y": [-2.54, 2.54]}', encoding="utf-8")
    model = model_of(
        [helper.make_node("Conv", ["x", "w"], ["t"], "conv"), helper.make_node("Relu", ["t"], ["y"], "relu")],
        {"w": np.ones((8, 4, 1, 1), np.float32)},
        (1, 4, 8, 8),
    )
    answer = dryfit.annotate(model, precision="int8,fp16", ranges=ranges, **ORIN)
    assert answer.node("relu").precision == "INT8"
    assert answer.node("relu").scale == f"{np.float32(2.54) / np.float32(127):.9g} (by hand)"
    assert answer.node("conv").format == "inside a step"


def test_scales_of_quantization_nodes_are_written(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], "dequantize"),
        helper.make_node("Relu", ["d"], ["y"], "relu"),
    ]
    answer = dryfit.annotate(model_of(nodes, {"s": np.float32(0.5), "z": np.int8(0)}), device="GPU", precision="int8")
    assert answer.node("quantize").scale == "0.5 (Q/DQ)"


def test_nodes_without_a_layer_say_why() -> None:
    nodes = [
        helper.make_node("Constant", [], ["two"], "two", value=numpy_helper.from_array(np.float32(2))),
        helper.make_node("Mul", ["w", "two"], ["scaled"], "scaled"),
        helper.make_node("Identity", ["x"], ["same"], "same"),
        helper.make_node("MatMul", ["same", "scaled"], ["y"], "product"),
        helper.make_node("Relu", ["x"], ["unused"], "unused"),
    ]
    answer = dryfit.annotate(model_of(nodes, {"w": np.eye(4, dtype=np.float32)}), device="GPU")
    assert [answer.node(name).became for name in ("two", "scaled", "product")] == ["folded", "folded", "layers"]
    assert answer.node("unused").became == "no layer"
    written = of_node(answer.annotated_model, "scaled")
    assert written == {"dryfit.became": "folded into constants at build time"}
    assert "no output needs it" in of_node(answer.annotated_model, "unused")["dryfit.became"]


def test_nodes_that_share_a_name_have_their_own_layers() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["t"], "same"), helper.make_node("Elu", ["t"], ["y"], "same")]
    answer = dryfit.annotate(model_of(nodes, {}, (1, 4, 8, 8)), **ORIN)
    assert [(one.operator, one.device, len(one.layers)) for one in answer.nodes] == [
        ("Relu", "DLA", 1),
        ("Elu", "GPU", 1),
    ]


def test_a_node_that_is_a_function_names_all_of_its_layers() -> None:
    body = [helper.make_node("Mul", ["a", "a"], ["b"], "square"), helper.make_node("Relu", ["b"], ["c"], "clip")]
    function = helper.make_function("own", "SquareRelu", ["a"], ["c"], body, [helper.make_opsetid("", 17)])
    model = model_of(
        [helper.make_node("SquareRelu", ["x"], ["y"], "call", domain="own")],
        {},
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
        functions=[function],
    )
    answer = dryfit.annotate(model, device="GPU")
    assert answer.node("call").layers == ["call/square", "call/clip"]
    onnx.checker.check_model(answer.annotated_model)


def test_nodes_inside_a_loop_are_part_of_its_layer() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["goes_on"], "go_on"),
            helper.make_node("Relu", ["state"], ["next"], "step"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, (1, 4)),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, (1, 4)),
        ],
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], "sum", keepdims=0),
        helper.make_node("Cast", ["sum"], ["count"], "count", to=TensorProto.INT64),
        helper.make_node("Loop", ["count", "", "x"], ["y"], "loop", body=body),
    ]
    answer = dryfit.annotate(model_of(nodes, {}), device="GPU", fallback="none")
    assert answer.node("loop").became == "layers"
    inner = answer.node("loop/step")
    assert inner.became == "inside"
    assert (inner.device, inner.layers) == (answer.node("loop").device, answer.node("loop").layers)
    onnx.checker.check_model(answer.annotated_model)


def test_an_old_model_keeps_its_constants_when_its_version_is_raised() -> None:
    model = linear_model()
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (4, 4)))
    answer = dryfit.annotate(model, device="GPU")
    assert model.ir_version == 3  # the caller's stays as it is
    assert not model.graph.node[0].metadata_props
    assert [info.name for info in answer.annotated_model.graph.input] == ["x"]
    onnx.checker.check_model(answer.annotated_model)
    x = np.arange(4, dtype=np.float32)[None]
    np.testing.assert_array_equal(outputs(model, x=x)[0], outputs(answer.annotated_model, x=x)[0])


def test_a_second_annotation_replaces_the_first_and_keeps_foreign_metadata() -> None:
    model = linear_model()
    model.graph.node[0].metadata_props.add(key="author", value="somebody")
    first = dryfit.annotate(model, **ORIN).annotated_model
    second = dryfit.annotate(first, device="GPU").annotated_model
    assert of_node(first, "product")["author"] == of_node(second, "product")["author"] == "somebody"
    assert of_node(second, "product")["dryfit.device"] == "GPU"
    keys = [entry.key for entry in second.graph.node[0].metadata_props]
    assert len(keys) == len(set(keys))
    assert "dryfit.platform" in metadata(first)
    assert metadata(second)["dryfit.device"] == "GPU"


def external_model(folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(linear_model(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_external_data_stay_where_they_are(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    before = (tmp_path / "weights.bin").stat()
    beside = tmp_path / "annotated.onnx"
    dryfit.annotate(path, beside, device="GPU")
    assert (tmp_path / "weights.bin").stat() == before
    (weights,) = onnx.load(beside, load_external_data=False).graph.initializer
    assert weights.data_location == TensorProto.EXTERNAL
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    dryfit.annotate(path, elsewhere / "annotated.onnx", device="GPU")
    x = np.arange(4, dtype=np.float32)[None]
    for copy in (beside, elsewhere / "annotated.onnx"):
        onnx.checker.check_model(copy)
        np.testing.assert_array_equal(outputs(path, x=x)[0], outputs(copy, x=x)[0])


def test_a_model_past_two_gigabytes_is_annotated_beside_its_weights(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    model = onnx.load(path, load_external_data=False)
    rows = 2**29 + 1024
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([4, rows // 4])
    for entry in model.graph.initializer[0].external_data:
        entry.value = str(4 * (rows // 4) * 4) if entry.key == "length" else entry.value
    path.write_bytes(model.SerializeToString())
    os.truncate(tmp_path / "weights.bin", 4 * rows)  # a hole: it takes no space
    annotated = tmp_path / "annotated.onnx"
    dryfit.annotate(path, annotated, device="GPU")
    assert annotated.stat().st_size < 10_000
    assert of_node(onnx.load(annotated, load_external_data=False), "product")["dryfit.device"] == "GPU"


def test_marks_by_names_leave_a_model_that_runs(digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, color="names", shape={"image": (1, 1, 8, 8)}, **ORIN)
    assert answer.can_run
    names = [node.name for node in onnx.load(path).graph.node]
    assert "DLA:0 conv1" in names
    assert any(name.startswith("GPU:1 ") for name in names)
    assert of_node(onnx.load(path), "DLA:0 conv1")["dryfit.name"] == "conv1"
    image = np.ones((1, 1, 8, 8), np.float32)
    np.testing.assert_array_equal(outputs(digits_model, image=image)[0], outputs(path, image=image)[0])


def test_marks_by_domains_and_operators_are_for_viewing_only(digits_model: Path) -> None:
    shape = {"image": (1, 1, 8, 8)}
    domains = dryfit.annotate(digits_model, color="domains", shape=shape, **ORIN)
    assert not domains.can_run
    assert "For viewing only" in str(domains)
    nodes = {node.name: node for node in domains.annotated_model.graph.node}
    assert (nodes["conv1"].domain, nodes["conv1"].op_type) == ("dryfit.DLA", "Conv")
    assert metadata(nodes["conv1"])["dryfit.domain"] == "ai.onnx"
    assert nodes["elu2"].domain == ""  # it left the device, and keeps its color
    assert "does not run" in metadata(domains.annotated_model)["dryfit.use"]
    operators = dryfit.annotate(digits_model, color="operators", shape=shape, **ORIN)
    marked = {metadata(node).get("dryfit.device"): node.op_type for node in operators.annotated_model.graph.node}
    assert marked["DLA"] != marked["GPU"]
    conv = next(node for node in operators.annotated_model.graph.node if node.name == "Conv conv1")
    assert metadata(conv)["dryfit.operator"] == "Conv"
    with pytest.raises(UnknownNameError, match="Did you mean 'names'"):
        dryfit.annotate(digits_model, color="name", **ORIN)


def test_what_cannot_be_annotated_is_refused(digits_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Annotating requires an ONNX model"):
        dryfit.annotate(dryfit.network_from_onnx(digits_model))
    with pytest.raises(ConfigError, match="must not be the model itself"):
        dryfit.annotate(digits_model, digits_model, force=True)
    taken = tmp_path / "taken.onnx"
    taken.write_bytes(b"")
    with pytest.raises(ConfigError, match="already exists"):
        dryfit.annotate(digits_model, taken)
    assert dryfit.annotate(digits_model, taken, force=True, device="GPU").output == taken


@pytest.mark.parametrize(
    "name",
    [
        "mnist-8",
        "mnist_resnet_qat_qdq",
        "mnist_vit_fp32",
        "squeezenet1.1-fp16-opset7",
        "super-resolution-10",
        "yunet_n_320",
    ],
)
def test_annotated_models_stay_valid_and_compute_the_same(shared_models: Path, tmp_path: Path, name: str) -> None:
    original, path = shared_models / f"{name}.onnx", tmp_path / "annotated.onnx"
    answer = dryfit.annotate(original, path, color="names", **ORIN)
    onnx.checker.check_model(path)
    model = onnx.load(path)
    assert all(metadata(node) for node in model.graph.node)  # each node says something
    assert len(answer.nodes) >= len(model.graph.node)
    constants = {tensor.name for tensor in onnx.load(original).graph.initializer}
    generator, feeds = np.random.default_rng(1), {}
    for info in onnx.load(original).graph.input:
        if info.name not in constants:
            shape = [max(extent.dim_value, 1) for extent in info.type.tensor_type.shape.dim]
            dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            feeds[info.name] = generator.random(shape).astype(dtype)
    for before, after in zip(outputs(original, **feeds), outputs(path, **feeds), strict=True):
        np.testing.assert_array_equal(before, after)
