"""A strongly typed network is computed in the types that it has, and nothing is converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.core.builder.designs import designed, lowered
from tests.core.builder.networks import named, weights

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.precision.chosen import PrecisionCause
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.errors import NetworkError
from dryfit.network import plugin_table
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.plugin_function import layer_plugin
from dryfit.onnx.parser import OnnxParser, network_from_onnx
from dryfit.reference.executor import run_reference

FLOAT, HALF, BF16, INT8 = DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT8
STRONGLY_TYPED = 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED


def mixed(dtype):
    """c in a narrow type, its result cast to FLOAT (wide), added to x (sum) and cast back (y)."""
    network = Network("mixed", STRONGLY_TYPED)
    x = network.add_input("x", FLOAT, (1, 4, 5, 5))
    narrow = named(network.add_cast(x, dtype), "narrow")
    layer = network.add_convolution_nd(narrow, 4, (1, 1), weights(4, 4, 1, 1).astype(dtype.numpy))
    relu = named(network.add_activation(named(layer, "c"), ActivationType.RELU), "r")
    wide = named(network.add_cast(relu, FLOAT), "wide")
    total = named(network.add_elementwise(wide, x, ElementWiseOperation.SUM), "sum")
    network.mark_output(named(network.add_cast(total, dtype), "y"))
    return network


@pytest.mark.parametrize("dtype", [HALF, BF16])
def test_each_layer_is_computed_in_the_type_of_its_tensors(dtype):
    precisions = designed(mixed(dtype), BuilderConfig()).precisions
    assert precisions.layers == {
        "narrow": dtype, "c": dtype, "r": dtype, "wide": FLOAT, "sum": FLOAT, "y": dtype
    }  # fmt: skip
    assert precisions.reasons["c"].cause is PrecisionCause.STRONGLY_TYPED
    assert precisions.converted == frozenset()


@pytest.mark.parametrize("dtype", [HALF, BF16])
def test_the_engine_has_the_networks_types_and_no_conversion_of_its_own(dtype):
    network = mixed(dtype)
    built = lowered(network, BuilderConfig())
    assert built.reformats == frozenset()
    assert {tensor.name: tensor.dtype for tensor in built.network.tensors if tensor.producer is None} == {"x": FLOAT}
    for tensor in network.tensors:
        if tensor.producer is None or tensor.producer.kind != "constant":
            assert built.network.tensor(tensor.name).dtype is tensor.dtype


def test_an_engine_computes_what_the_network_means():
    network = mixed(HALF)
    x = weights(1, 4, 5, 5, seed=1)
    engine = Builder().build_engine(network, BuilderConfig())
    assert engine.plan.warnings == []
    found = engine.create_execution_context().run({"x": x})["y"]
    expected = run_reference(network, {"x": x})["y"]
    assert found.dtype == np.float16
    # The convolution is rounded to FP16 once, from sums of different orders.
    np.testing.assert_allclose(found, expected, rtol=2**-9, atol=2**-9)


def test_a_half_network_is_asked_about_in_half_without_a_flag():
    network = Network("half", STRONGLY_TYPED)
    x = network.add_input("x", HALF, (1, 4, 5, 5))
    network.mark_output(named(network.add_activation(x, ActivationType.RELU), "r"))
    config = BuilderConfig()
    config.default_device_type = "DLA"
    assert config.can_run_on_DLA(network.layer("r"))
    weak = Network("weak")
    weak.mark_output(named(weak.add_activation(weak.add_input("x", HALF, (1, 4, 5, 5)), ActivationType.RELU), "r"))
    assert not config.can_run_on_DLA(weak.layer("r"))


def test_a_float_layer_on_the_dla_is_told_to_be_cast():
    config = BuilderConfig()
    config.default_device_type = "DLA"
    refused = " ".join(assess(mixed(HALF), config).refusals)
    assert "'sum' cannot run on DLA: precision must be one of FP16, INT8 (found FP32)" in refused
    assert "a strongly typed network needs casts to FP16" in refused


@pytest.fixture
def _empty_table(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})


@pytest.mark.usefixtures("_empty_table")
def test_a_plugin_gets_the_types_of_the_network_or_is_refused():
    def network_with(dtype):
        network = Network("plugin", STRONGLY_TYPED)
        x = network.add_input("x", dtype, (1, 4))
        network.mark_output(network.add_plugin([x], twice).get_output(0))
        return network

    @layer_plugin("Twice", formats=[[HALF, HALF], [FLOAT, FLOAT]])
    def twice(x):
        return 2 * x

    for dtype in (HALF, FLOAT):
        [layer] = Builder().build_plan(network_with(dtype), BuilderConfig()).network.layers
        assert (layer.inputs[0].dtype, layer.outputs[0].dtype) == (dtype, dtype)
    with pytest.raises(NetworkError, match="found BF16 in a strongly typed network"):
        Builder().build_plan(network_with(BF16), BuilderConfig())


def test_an_explicitly_quantized_network_is_strongly_typed_by_its_dequantizations():
    network = Network("explicit", STRONGLY_TYPED)
    x = network.add_input("x", HALF, (1, 4, 5, 5))
    scale = named(network.add_constant((), np.array(0.25, np.float16)), "scale")
    kernel = named(network.add_constant((4, 4, 1, 1), np.eye(4, dtype=np.int8).reshape(4, 4, 1, 1)), "kernel")
    data = named(network.add_dequantize(named(network.add_quantize(x, scale), "q"), scale), "dq")
    layer = network.add_convolution_nd(data, 4, (1, 1))
    layer.set_input(1, named(network.add_dequantize(kernel, scale), "w"))
    network.mark_output(named(layer, "c"))
    assert {network.tensor(name).dtype for name in ("dq", "w", "c")} == {HALF}
    x = (np.arange(100).reshape(1, 4, 5, 5) * 0.25).astype(np.float16)
    found = Builder().build_engine(network, BuilderConfig()).create_execution_context().run({"x": x})["c"]
    np.testing.assert_array_equal(found, run_reference(network, {"x": x})["c"])
    layer.set_input(1, named(network.add_dequantize(kernel, scale, FLOAT), "w32"))
    with pytest.raises(NetworkError, match="'dq' FP16, 'w32' FP32"):
        Builder().build_plan(network, BuilderConfig())


def half_model():
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv"),
        helper.make_node("Cast", ["c"], ["wide"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Softmax", ["wide"], ["s"], axis=1),
        helper.make_node("Cast", ["s"], ["y"], to=onnx.TensorProto.BFLOAT16),
    ]
    initializers = [
        numpy_helper.from_array(weights(*shape).astype(np.float16), name)
        for name, shape in (("w", (4, 4, 1, 1)), ("b", (4,)))
    ]
    info = [
        helper.make_tensor_value_info(name, dtype, [1, 4, 3, 3])
        for name, dtype in (("x", onnx.TensorProto.FLOAT16), ("y", onnx.TensorProto.BFLOAT16))
    ]
    graph = helper.make_graph(nodes, "half", info[:1], info[1:], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_an_imported_network_keeps_the_types_of_the_model():
    types = {"x": HALF, "c": HALF, "wide": FLOAT, "s": FLOAT, "y": BF16}
    imported = network_from_onnx(half_model(), flags=STRONGLY_TYPED)
    parsed = Builder().create_network(STRONGLY_TYPED)
    assert OnnxParser(parsed).parse(half_model().SerializeToString())
    for network in (imported, parsed):
        assert network.is_strongly_typed
        assert {name: network.tensor(name).dtype for name in types} == types
        engine = Builder().build_engine(network, BuilderConfig())
        built = {tensor.name: tensor.dtype for tensor in engine.plan.network.tensors}
        assert {name: built[name] for name in types} == types


def test_the_engines_file_keeps_the_types(tmp_path):
    Builder().build_engine(mixed(HALF), BuilderConfig()).save(tmp_path / "mixed.engine")
    loaded = Engine.load(tmp_path / "mixed.engine")
    assert [loaded.plan.network.tensor(name).dtype for name in ("c", "sum", "y")] == [HALF, FLOAT, HALF]
