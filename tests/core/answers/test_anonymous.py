"""Nothing of a model's names, comments and weights is left in its anonymous copy, wherever ONNX has a place for it."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dryfit
from dryfit.answers.anonymous import KEPT, foreign_operators, without_names
from dryfit.answers.anonymous_weights import without_weights

RANDOM = np.random.default_rng(5)


def told(message: Any) -> Any:
    """Write a secret into the comments and metadata of a message."""
    fields = message.DESCRIPTOR.fields_by_name
    if "doc_string" in fields:
        message.doc_string = "secret comment"
    if "metadata_props" in fields:
        message.metadata_props.add(key="secret key", value="secret value")
    return message


def value(name: str, shape: list[Any]) -> onnx.ValueInfoProto:
    """A tensor of a graph, with names in each place that its type has."""
    found = told(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    found.type.denotation = "secret_type"
    for one in found.type.tensor_type.shape.dim:
        one.denotation = "secret_dimension"
    return found


def secret_function() -> onnx.FunctionProto:
    """A function with names of its own in each place."""
    scaled = helper.make_node("Mul", ["secret_in", "secret_factor"], ["secret_out"], name="secret_mul")
    factor = onnx.NodeProto(op_type="Constant", output=["secret_factor"], name="secret_constant")
    factor.attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="secret_attribute", type=1))
    made = helper.make_function(
        *("secret.functions", "SecretScale", ["secret_in"], ["secret_out"], [told(factor), told(scaled)]),
        [helper.make_opsetid("", 18)],
        ["secret_attribute"],
    )
    return told(made)  # type: ignore[no-any-return]


def secret_model() -> onnx.ModelProto:
    """A model with a secret in each place that ONNX has for texts."""
    weights = {
        "secret_w": RANDOM.normal(0, 0.3, (4, 2, 3, 3)).astype(np.float32),
        "secret_side": RANDOM.normal(0, 0.3, (1, 4, 1, 1)).astype(np.float32),
    }
    stored = [told(numpy_helper.from_array(array, name)) for name, array in weights.items()]
    conv = helper.make_node("Conv", ["secret_x", "secret_w"], ["secret_a"], name="secret_conv", pads=[1] * 4)
    then, other = (
        helper.make_graph(
            [told(helper.make_node(kind, ["secret_b", "secret_side"], [f"secret_{kind}"], name=f"secret_{kind}_node"))],
            "secret_branch",
            [],
            [value(f"secret_{kind}", [1, 4, "secret_rows", 8])],
        )
        for kind in ("Add", "Sub")
    )
    true = told(numpy_helper.from_array(np.array(True), "secret_true"))
    nodes = [
        conv,
        helper.make_node("SecretScale", ["secret_a"], ["secret_b"], "secret_call", domain="secret.functions"),
        helper.make_node("Constant", [], ["secret_flag"], name="secret_flag_node", value=true),
        helper.make_node(
            "If", ["secret_flag"], ["secret_y"], name="secret_if", then_branch=told(then), else_branch=told(other)
        ),
    ]
    nodes[1].attribute.append(helper.make_attribute("secret_attribute", 0.5))
    graph = helper.make_graph(
        [told(node) for node in nodes],
        "secret_graph",
        [value("secret_x", [1, 2, "secret_rows", 8])],
        [value("secret_y", [1, 4, "secret_rows", 8])],
        stored,
        value_info=[value("secret_a", [1, 4, "secret_rows", 8])],
    )
    graph.quantization_annotation.add(tensor_name="secret_a").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="secret_scale"
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("secret.functions", 1), helper.make_opsetid("secret", 1)]
    model = helper.make_model(told(graph), opset_imports=opsets, functions=[secret_function()], ir_version=10)
    model.producer_name, model.producer_version, model.domain = "secret producer", "secret 1.0", "secret.example.com"
    model.model_version = 20261123
    model.training_info.add().initialization.name = "secret training"
    if "configuration" in model.DESCRIPTOR.fields_by_name:  # ONNX 1.18
        model.configuration.add(name="secret cluster", device=["secret device"])
        model.graph.node[0].device_configurations.add(configuration_id="secret cluster")
    later = b"\xfa\x3f" + bytes([len(b"secret of a later version")]) + b"secret of a later version"  # field 1023
    return onnx.load_from_string(told(model).SerializeToString() + later)


def texts(message: Any) -> set[str]:
    """All texts of a message, by what contains them."""
    return {one.decode() for one in re.findall(rb"[\w. ]*secret[\w. ]*", message.SerializeToString(), re.IGNORECASE)}


def test_the_model_of_these_tests_is_sound_and_full_of_secrets() -> None:
    model = secret_model()
    onnx.checker.check_model(model)
    assert len(texts(model)) >= 40


def test_no_text_of_a_model_is_left_in_its_anonymous_copy() -> None:
    model = secret_model()
    # Some exporters leave attributes that an operator does not have.
    model.graph.node[0].attribute.append(helper.make_attribute("secret_unknown", "secret text"))
    before = model.SerializeToString()
    copy = without_names(model)
    assert texts(copy) == set()
    assert model.SerializeToString() == before
    onnx.checker.check_model(copy)
    assert (copy.model_version, [(one.domain, one.version) for one in copy.opset_import]) == (0, [("", 18)])
    assert [one.op_type for one in copy.graph.node] == ["Conv", "Constant", "Mul", "Constant", "If"]
    assert copy.graph.node[0].attribute[0].name == "pads"
    assert {one.dim_param for one in copy.graph.input[0].type.tensor_type.shape.dim if one.dim_param} == {"N1"}


def test_only_known_fields_are_kept() -> None:
    """Names of fields, so that a field of a later ONNX is removed until somebody has looked at it."""
    for name, fields in KEPT.items():
        found = getattr(onnx, name, None) or getattr(onnx.TypeProto, name, None) or onnx.TensorShapeProto.Dimension
        assert set(fields.split()) <= set(found.DESCRIPTOR.fields_by_name), name
        assert not {"doc_string", "metadata_props", "external_data", "denotation"} & set(fields.split())


def test_the_copy_computes_the_same() -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = secret_model()
    x = RANDOM.normal(size=(1, 2, 5, 8)).astype(np.float32)
    results = []
    for one in (model, without_names(model)):
        session = runtime.InferenceSession(one.SerializeToString(), providers=["CPUExecutionProvider"])
        results.append(session.run(None, {session.get_inputs()[0].name: x})[0])
    assert np.array_equal(*results)


def test_an_anonymous_kit_of_a_file_with_external_weights_has_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "secret-folder"
    folder.mkdir()
    path = folder / "secret-model.onnx"
    onnx.save_model(
        *(secret_model(), path),
        save_as_external_data=True,
        location="secret-weights.bin",
        size_threshold=0,
    )
    shape = {"secret_x": (1, 2, 8, 8)}
    kit = tmp_path / "kit.zip"
    dryfit.board_pack(path, output=kit, platform="orin-nx-16", anonymously=True, shape=shape)
    with zipfile.ZipFile(kit) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    private = [b"secret", str(tmp_path).encode(), b"20261123"]
    assert [name for name, data in contents.items() for one in private if one in (name.encode() + data).lower()] == []
    sent = onnx.load(io.BytesIO(contents["dryfit-kit/models/model-1.onnx"]))
    assert not any(one.data_location for one in sent.graph.initializer)


def test_weights_in_files_that_were_not_loaded_are_refused() -> None:
    model = secret_model()
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    model.graph.initializer[0].external_data.add(key="location", value="secret-weights.bin")
    with pytest.raises(dryfit.ConfigError, match="The weights of the model are in other files"):
        without_names(model)


def test_operators_that_onnx_does_not_define_are_named() -> None:
    node = helper.make_node("AcmeLayer", ["x"], ["y"], domain="com.acme", name="secret")
    graph = helper.make_graph([node], "g", [value("x", [1])], [value("y", [1])])
    copy = without_names(helper.make_model(graph, opset_imports=[helper.make_opsetid("com.acme", 2)]))
    assert foreign_operators(copy) == ["com.acme::AcmeLayer"]
    assert [(one.domain, one.version) for one in copy.opset_import] == [("com.acme", 2)]


# Weights --------------------------------------------------------------------------------------------------------------


def random_of(array: Any, node: onnx.NodeProto, name: str = "w") -> Any:
    """What becomes of a constant that a node reads."""
    graph = helper.make_graph([node], "g", [], [], [numpy_helper.from_array(array, name)])
    made = without_weights(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]))
    return numpy_helper.to_array(made.graph.initializer[0])


ADD = helper.make_node("Add", ["x", "w"], ["y"])


@pytest.mark.parametrize(
    "dtype",
    [
        *(np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.uint16),
        *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4),
    ],
    ids=lambda one: np.dtype(one).name,
)
def test_weights_of_each_type_are_replaced_within_their_range(dtype: Any) -> None:
    own = (RANDOM.integers(0, 8, 300) if np.dtype(dtype).name.endswith("4") else RANDOM.integers(0, 100, 300)).astype(
        dtype
    )
    new = random_of(own, ADD)
    assert new.dtype == own.dtype
    assert (new.astype(float).min(), new.astype(float).max()) == (own.astype(float).min(), own.astype(float).max())
    assert np.count_nonzero(new != own) > 100


def test_weights_behind_another_node_and_biases_of_integers_are_replaced() -> None:
    codes = RANDOM.integers(-100, 100, 64).astype(np.int8)
    assert not np.array_equal(random_of(codes, helper.make_node("Transpose", ["w"], ["t"])), codes)
    biases = RANDOM.integers(-1000, 1000, 64).astype(np.int32)
    assert not np.array_equal(random_of(biases, helper.make_node("DequantizeLinear", ["w", "s"], ["y"])), biases)
    convolution = helper.make_node("QLinearConv", [*"abcdefgh", "w"], ["y"])
    assert not np.array_equal(random_of(biases, convolution), biases)


def test_what_decides_the_layer_stays() -> None:
    shape = np.array([1, 2, 3, 4], np.int64)
    assert np.array_equal(random_of(shape, helper.make_node("Reshape", ["x", "w"], ["y"])), shape)
    scales = np.array([0.1, 0.2, 0.4], np.float32)
    for node in ("QuantizeLinear", "DequantizeLinear"):
        assert np.array_equal(random_of(scales, helper.make_node(node, ["x", "w"], ["y"])), scales)
    assert np.array_equal(random_of(np.array([0.5], np.float32), ADD), np.array([0.5], np.float32))


def test_infinities_stay_in_their_places_and_the_rest_is_replaced() -> None:
    own = RANDOM.normal(size=64).astype(np.float32)
    own[[3, 9]] = [-np.inf, np.nan]
    new = random_of(own, ADD)
    assert np.array_equal(np.isfinite(new), np.isfinite(own))
    assert np.count_nonzero(new[np.isfinite(new)] != own[np.isfinite(own)]) > 50


def test_constants_of_nodes_and_of_inner_graphs_are_replaced() -> None:
    own = RANDOM.normal(size=32).astype(np.float32)
    inner = helper.make_graph([ADD], "inner", [], [], [numpy_helper.from_array(own, "w")])
    nodes = [
        helper.make_node("Constant", [], ["a"], value=numpy_helper.from_array(own, "v")),
        helper.make_node("Constant", [], ["b"], value_floats=[float(one) for one in own]),
        helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    made = without_weights(helper.make_model(helper.make_graph(nodes, "g", [], [])))
    first, second, third = made.graph.node
    for found in (
        numpy_helper.to_array(first.attribute[0].t),
        np.array(second.attribute[0].floats, np.float32),
        *(numpy_helper.to_array(one.g.initializer[0]) for one in third.attribute),
    ):
        assert np.count_nonzero(found != own) >= 30
        assert (found.min(), found.max()) == (own.min(), own.max())
