"""Engines with loops and conditionals: devices, precisions, refits, plugins, calibration and reports."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dryfit
from dryfit import DataType, ElementWiseOperation, Network
from dryfit.errors import NetworkError, PlacementError, PluginError
from dryfit.network import plugin_table
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.tensor import TensorSpec
from dryfit.network.weights_role import WeightsRole
from dryfit.reference.executor import run_reference

F, I, B = DataType.FLOAT, DataType.INT64, DataType.BOOL
WEIGHTS = np.array([[0.5, 0.25]], np.float32)


def body_with_weights(dtype: DataType = F) -> Network:
    body = Network("body")
    body.add_input("i", I, ())
    state = body.add_input("s", dtype, (1, 2))
    factor = body.add_constant((1, 2), WEIGHTS.astype(dtype.numpy))
    body.rename_layer(factor, "factor")
    body.mark_output(body.add_elementwise(state, factor.get_output(0), ElementWiseOperation.SUM).get_output(0))
    return body


def loop_network(body: Network | None = None, *, trips: int | None = None, dtype: DataType = F) -> Network:
    """x + 1, and then the loop."""
    network = Network("network")
    x = network.add_input("x", dtype, (1, 2))
    one = network.add_constant((1, 2), np.ones((1, 2), dtype.numpy))
    network.rename_layer(one, "one")
    start = network.add_elementwise(x, one.get_output(0), ElementWiseOperation.SUM).get_output(0)
    known = network.add_constant((), np.array(trips or 0)).get_output(0)
    count = network.add_input("n", I, ()) if trips is None else known
    layer = LoopLayer(name="loop", onnx_nodes=("Loop_7",), body=body or body_with_weights(dtype), num_states=1)
    network.add_layer(layer, [count, start])
    network.mark_output(layer.outputs[0])
    return network


def built(
    network: Network, *flags: dryfit.BuilderFlag, device: str = "GPU", fallback: str | None = None
) -> dryfit.Engine:
    config = dryfit.BuilderConfig()
    config.default_device_type = device
    config.allow_fallback(fallback)
    for flag in flags:
        config.set_flag(flag)
    return dryfit.Builder().build_engine(network, config)


def output(engine: dryfit.Engine, **feeds: np.ndarray) -> np.ndarray:
    (found,) = engine.create_execution_context().run(feeds).values()
    return found


FEEDS = {"x": np.array([[1, 2]], np.float32), "n": np.array(3)}


@pytest.mark.parametrize("device", ["CPU", "GPU"])
@pytest.mark.parametrize("flags", [(), (dryfit.BuilderFlag.FP16,), (dryfit.BuilderFlag.INT8,)])
def test_a_loop_computes_in_the_types_of_the_network(device: str, flags: tuple[dryfit.BuilderFlag, ...]) -> None:
    network = loop_network()
    if dryfit.BuilderFlag.INT8 in flags:
        for tensor in network.tensors:
            if tensor.dtype is F:
                tensor.set_dynamic_range(-127, 127)
    engine = built(network, *flags, device=device)
    np.testing.assert_array_equal(output(engine, **FEEDS), [[3.5, 3.75]])
    (placed,) = [one for one in engine.plan.layers if one.layer == "loop"]
    assert (placed.device, placed.precision, placed.onnx_nodes) == (device, F, ("Loop_7",))


def test_the_dla_refuses_a_loop_and_its_fallback_takes_it() -> None:
    with pytest.raises(PlacementError, match=r"loop layers are not supported on DLA.*\[dla\.layer\.kind\]"):
        built(loop_network(), dryfit.BuilderFlag.FP16, device="DLA")
    engine = built(loop_network(), dryfit.BuilderFlag.FP16, device="DLA", fallback="GPU")
    assert {one.layer: one.device for one in engine.plan.layers}["loop"] == "GPU"
    np.testing.assert_array_equal(output(engine, **FEEDS), [[3.5, 3.75]])


def test_the_gpu_refuses_a_body_with_types_that_tensorrt_lacks() -> None:
    body = Network("body")
    body.add_input("i", I, ())
    state = body.add_input("s", F, (1, 2))
    wide = body.add_cast(state, DataType.DOUBLE).get_output(0)
    body.mark_output(body.add_cast(wide, F).get_output(0))
    with pytest.raises(PlacementError, match=r"a loop with a tensor of type FP64 .* in its body.*\[gpu\."):
        built(loop_network(body))
    engine = built(loop_network(body), fallback="CPU")
    np.testing.assert_array_equal(output(engine, **FEEDS), [[2, 3]])


def test_the_inspector_shows_the_body() -> None:
    inspector = built(loop_network()).create_engine_inspector()
    layers = json.loads(inspector.get_engine_information("json"))["Layers"]
    (loop,) = [layer for layer in layers if layer["Name"] == "loop"]
    assert (loop["LayerType"], loop["Metadata"], loop["NumStates"]) == ("LoopOutput", "[ONNX Layer: Loop_7]", 1)
    assert "factor" in loop["Body"]


def test_a_dynamic_trip_count_gives_late_shapes() -> None:
    body = Network("body")
    number = body.add_input("i", I, ())
    x = body.add_input("x", F, (-1, 2))
    value = body.add_cast(number, F).get_output(0)
    scalar = body.add_shuffle(value)
    scalar.reshape_dims = (1, 1)
    body.mark_output(body.add_elementwise(x, scalar.get_output(0), ElementWiseOperation.SUM).get_output(0))
    network = Network("network")
    data, n = network.add_input("x", F, (-1, 2)), network.add_input("n", DataType.INT32, (1,))
    layer = LoopLayer(body=body, output_axes=1, output_reverse=(True,))
    network.add_layer(layer, [n, None, data])
    relu = network.add_activation(layer.outputs[0], dryfit.ActivationType.RELU)
    network.mark_output(relu.get_output(0))
    config, profile = dryfit.BuilderConfig(), dryfit.OptimizationProfile()
    profile.set_shape("x", (1, 2), (2, 2), (4, 2))
    config.add_optimization_profile(profile)
    engine = dryfit.Runtime().deserialize_cuda_engine(dryfit.Builder().build_engine(network, config).serialize())
    context = engine.create_execution_context()
    for rows, count in ((1, 3), (4, 0), (3, 2)):
        feeds = {
            "x": np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32),
            "n": np.array([count], np.int32),
        }
        (found,) = context.run(feeds).values()
        assert found.shape == (rows, count, 2)
        np.testing.assert_array_equal(found, next(iter(run_reference(network, feeds).values())))


# Refit --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags", [(dryfit.BuilderFlag.REFIT,), (dryfit.BuilderFlag.REFIT, dryfit.BuilderFlag.STRIP_PLAN)]
)
@pytest.mark.parametrize("trips", [None, 3])
def test_weights_outside_of_a_loop_can_be_refitted(flags: tuple[dryfit.BuilderFlag, ...], trips: int | None) -> None:
    engine = dryfit.Runtime().deserialize_cuda_engine(built(loop_network(trips=trips), *flags).serialize())
    refitter = dryfit.Refitter(engine)
    assert list(refitter.get_all_weights()) == ["one CONSTANT"]
    refitter.set_weights("one", WeightsRole.CONSTANT, np.array([[10, 20]], np.float32))
    with pytest.raises(NetworkError, match="Weights inside loops and conditionals cannot be refitted"):
        refitter.set_weights("factor", WeightsRole.CONSTANT, WEIGHTS)
    assert refitter.refit_cuda_engine()
    feeds = FEEDS if trips is None else {"x": FEEDS["x"]}
    np.testing.assert_array_equal(output(engine, **feeds), [[12.5, 22.75]])


def test_weights_that_a_body_shares_cannot_be_refitted() -> None:
    network = loop_network()
    shared = network.layers[-1].body.layer("factor").weights  # type: ignore[union-attr]
    extra = network.add_constant((1, 2), shared)
    last = network.add_elementwise(network.outputs[0], extra.get_output(0), ElementWiseOperation.PROD)
    network.unmark_output(network.outputs[0])
    network.mark_output(last.get_output(0))
    refitter = dryfit.Refitter(built(network, dryfit.BuilderFlag.REFIT))
    assert list(refitter.get_all_weights()) == ["one CONSTANT"]


# Plugins ------------------------------------------------------------------------------------------------------------


class Halver(LayerPlugin):
    """Halves its input."""

    plugin_name = "Halver"

    def output_specs(self, fields: object, inputs: object) -> list[TensorSpec]:
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]  # type: ignore[index]

    def enqueue(self, fields: object, inputs: object) -> list[np.ndarray]:
        return [inputs[0] / 2]  # type: ignore[index]


def test_a_plugin_in_a_body_runs_and_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    body = Network("body")
    body.add_input("i", I, ())
    body.mark_output(body.add_plugin([body.add_input("s", F, (1, 2))], Halver()).get_output(0))
    data = built(loop_network(body)).serialize()
    np.testing.assert_array_equal(output(dryfit.Runtime().deserialize_cuda_engine(data), **FEEDS), [[0.25, 0.375]])
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    with pytest.raises(PluginError, match="Halver"):
        output(dryfit.Runtime().deserialize_cuda_engine(data), **FEEDS)


# Calibration --------------------------------------------------------------------------------------------------------


def test_a_network_with_a_loop_and_a_conditional_can_be_calibrated() -> None:
    network = Network("network")
    data, flag = network.add_input("x", F, (1, 4, 4, 4)), network.add_input("flag", B, ())
    rng = np.random.default_rng(0)
    conv = network.add_convolution_nd(data, 4, (1, 1), rng.normal(size=(4, 4, 1, 1)).astype(np.float32))
    conv.precision = DataType.INT8  # a single convolution gains nothing by it
    conditional = network.add_if_conditional()
    conditional.set_condition(flag)
    inside = conditional.add_input(conv.get_output(0)).get_output(0)
    relu = network.add_activation(inside, dryfit.ActivationType.RELU).get_output(0)
    network.mark_output(conditional.add_output(relu, inside).get_output(0))
    samples = [
        {"x": rng.normal(size=(1, 4, 4, 4)).astype(np.float32), "flag": np.array(index % 2 == 0)} for index in range(4)
    ]
    config = dryfit.BuilderConfig()
    config.set_flag(dryfit.BuilderFlag.INT8)
    config.calibrate_with("minmax", samples)
    engine = dryfit.Builder().build_engine(network, config)
    assert {one.precision for one in engine.plan.layers if one.kind == "convolution"} == {DataType.INT8}
    for sample in samples:
        expected = next(iter(run_reference(network, sample).values()))
        np.testing.assert_allclose(output(engine, **sample), expected, atol=0.1)


def test_conditionals_count_as_layers_of_the_users_names() -> None:
    network = Network("network")
    flag, x = network.add_input("flag", B, ()), network.add_input("x", F, (2,))
    conditional = network.add_if_conditional()
    conditional.name = "choice"
    conditional.set_condition(flag)
    inside = conditional.add_input(x).get_output(0)
    network.mark_output(conditional.add_output(inside, network.add_identity(inside).get_output(0)).get_output(0))
    answer = dryfit.check(network, device="GPU")
    assert [(layer.name, layer.device) for layer in answer.layers] == [("choice", "GPU")]
    assert isinstance(network.layers[0].conditional, dryfit.IfConditional)
    assert not any(isinstance(layer, ConditionalLayer) for layer in network)


def test_settings_of_layers_inside_have_no_effect_and_a_build_says_so() -> None:
    network = Network("network")
    flag, x = network.add_input("flag", B, ()), network.add_input("x", F, (2,))
    conditional = network.add_if_conditional()
    conditional.set_condition(flag)
    inside = conditional.add_input(x).get_output(0)
    relu = network.add_activation(inside, dryfit.ActivationType.RELU)
    network.rename_layer(relu, "inner")
    network.mark_output(conditional.add_output(inside, relu.get_output(0)).get_output(0))
    relu.precision = DataType.HALF
    config = dryfit.BuilderConfig()
    config.set_device_type(relu, "DLA")
    warnings = dryfit.Builder().build_plan(network, config).warnings
    assert [text.partition(":")[0] for text in warnings] == [
        "The precision of 'inner' has no effect",
        "The device of 'inner' has no effect",
    ]
