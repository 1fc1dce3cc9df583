"""The network that is made of an engine computes what the engine does, with weights found in what kernels packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import ml_dtypes
import numpy as np
import pytest

import dryfit
from dryfit.answers.comparison.packed_places import Slot, unpack_places
from dryfit.answers.comparison.sides import definition_of
from dryfit.answers.comparison.stored_network import MODEL_WEIGHTS, compared_network, stored_network
from dryfit.answers.comparison.stored_weights import stored_weights_of
from dryfit.builder.config.settings import config_from_settings
from dryfit.building import Builder
from dryfit.engine.plan import Plan
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.network.packed_elements import is_stand_in
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_weights import int8_weights
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.executor import run_reference

FLOAT = DataType.FLOAT
Make = Callable[[Network, Tensor], Tensor]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def convolution(network: Network, x: Tensor) -> Tensor:
    layer = network.add_convolution_nd(x, 20, (3, 2), numbers(20, x.shape[1], 3, 2), numbers(20))
    layer.name = "weighted"
    return layer.get_output(0)


def grouped(network: Network, x: Tensor) -> Tensor:
    layer = network.add_convolution_nd(x, 8, (3, 3), numbers(8, x.shape[1] // 2, 3, 3))
    layer.name, layer.num_groups = "weighted", 2
    return layer.get_output(0)


def depthwise(network: Network, x: Tensor) -> Tensor:
    channels = x.shape[1]
    layer = network.add_convolution_nd(x, channels, (3, 3), numbers(channels, 1, 3, 3), numbers(channels))
    layer.name, layer.num_groups = "weighted", channels
    return layer.get_output(0)


def deconvolution(network: Network, x: Tensor) -> Tensor:
    layer = network.add_deconvolution_nd(x, 6, (3, 3), numbers(x.shape[1], 6, 3, 3), numbers(6))
    layer.name, layer.stride_nd = "weighted", (2, 2)
    return layer.get_output(0)


def depthwise_deconvolution(network: Network, x: Tensor) -> Tensor:
    channels = x.shape[1]
    layer = network.add_deconvolution_nd(x, channels, (2, 2), numbers(channels, 1, 2, 2))
    layer.name, layer.num_groups, layer.stride_nd = "weighted", channels, (2, 2)
    return layer.get_output(0)


def fully_connected(network: Network, x: Tensor) -> Tensor:
    count = int(np.prod(x.shape[1:]))
    layer = network.add_fully_connected(x, 10, numbers(10, count), numbers(10))
    layer.name = "weighted"
    return layer.get_output(0)


def product(network: Network, x: Tensor) -> Tensor:
    weights = network.add_constant((1, 1, x.shape[3], 5), numbers(1, 1, x.shape[3], 5)).get_output(0)
    layer = network.add_matrix_multiply(x, MatrixOperation.NONE, weights, MatrixOperation.NONE)
    layer.name = "weighted"
    return layer.get_output(0)


def normalized(network: Network, x: Tensor) -> Tensor:
    """A convolution without a bias, scaled and shifted: what a batch normalization is."""
    layer = network.add_convolution_nd(x, 20, (1, 1), numbers(20, x.shape[1], 1, 1))
    layer.name = "weighted"
    scaled = network.add_scale(layer.get_output(0), ScaleMode.CHANNEL, numbers(20), numbers(20) / 2)
    scaled.name = "normalization"
    return scaled.get_output(0)


def scale(network: Network, x: Tensor) -> Tensor:
    layer = network.add_scale(x, ScaleMode.CHANNEL, numbers(x.shape[1]), numbers(x.shape[1]) + 1)
    layer.name = "weighted"
    return layer.get_output(0)


KINDS: Sequence[Make] = (
    convolution,
    grouped,
    depthwise,
    deconvolution,
    depthwise_deconvolution,
    fully_connected,
    product,
    normalized,
    scale,
)


def network_of(make: Make, shape: tuple[int, ...] = (2, 8, 8, 8)) -> Network:
    """A layer between two activations, every tensor with a range."""
    network = Network("one")
    x = network.add_input("x", FLOAT, shape)
    before = network.add_activation(x, ActivationType.RELU)
    before.name = "before"
    after = network.add_activation(make(network, before.get_output(0)), ActivationType.RELU)
    after.name = "after"
    network.mark_output(after.get_output(0))
    network.rename_tensor(after.get_output(0), "y")
    for tensor in network.tensors:
        if tensor.producer is None or tensor.producer.kind != "constant":
            tensor.set_dynamic_range(-6.0, 6.0)
    return network


def config_of(*precisions: str, device: str = "GPU") -> dryfit.BuilderConfig:
    config = dryfit.BuilderConfig()
    config.default_device_type = device
    for name in precisions:
        config.set_flag(dryfit.BuilderFlag[name])
    if device == "DLA":
        config.allow_gpu_fallback(True)
    return config


def loaded_plan(network: Network, config: dryfit.BuilderConfig) -> Plan:
    """The plan as an engine file has it."""
    return dryfit.Engine.load(Builder().build_serialized_network(network, config)).plan


def run(plan: Plan, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    (result,) = dryfit.Engine(plan).create_execution_context(1).run(feeds).values()
    return result


def feeds_of(network: Network) -> dict[str, np.ndarray]:
    return {"x": 3 * np.random.default_rng(5).random(network.inputs[0].shape, np.float32)}


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("precisions", [(), ("FP16",), ("INT8",)], ids="-".join)
def test_an_engine_built_again_of_what_an_engine_stores_gives_the_same_numbers(make: Make, precisions: tuple[str, ...]):
    network, config = network_of(make), config_of(*precisions)
    plan = loaded_plan(network, config)
    stored = stored_network(plan)
    assert (dict(stored.unknown), list(stored.rounded)) == ({}, [])
    assert [tensor.name for tensor in stored.network.outputs] == ["y"]
    settings = {**plan.settings, "device_types": {}, "kernels": {}}
    again = Builder().build_plan(stored.network, config_from_settings(settings, stored.network))
    feeds = feeds_of(network)
    found, expected = run(again, feeds), run(plan, feeds)
    if make is normalized and "FP16" in precisions:
        # What was folded is FP32 in the engine, and is rounded to FP16 when another one is built of it.
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=4e-3)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("make", KINDS)
def test_an_fp32_engine_stores_the_network_that_it_was_built_from(make: Make):
    network = network_of(make)
    feeds = feeds_of(network)
    stored = stored_network(loaded_plan(network, config_of())).network
    assert {layer.name for layer in stored.layers} >= {"before", "weighted", "after"}
    found, expected = (run_reference(one, feeds)["y"] for one in (stored, network))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("software", "rounding"), [("10.3", RoundingMode.HALF_TO_EVEN), ("8.6", RoundingMode.HALF_AWAY_FROM_ZERO)]
)
def test_weights_of_int8_layers_are_the_codes_times_their_scales(software: str, rounding: RoundingMode):
    network, config = network_of(convolution), config_of("INT8", "FP16", device="DLA")
    config.set_software("DLA", software)
    plan = loaded_plan(network, config)
    assert {one.layer: one.precision for one in plan.layers}["weighted"] is DataType.INT8
    found = stored_network(plan).network.layer("weighted").kernel
    layer = network.layer("weighted")
    expected = int8_weights(layer, layer.kernel, rounding)
    np.testing.assert_array_equal(found, expected.values.astype(np.float32) * expected.scales.reshape(-1, 1, 1, 1))
    assert stored_network(plan).network.tensor("x").dynamic_range == (-6.0, 6.0)


@pytest.mark.parametrize("dtype", ["int4", "float8_e4m3fn", "float4_e2m1fn"])
def test_codes_narrower_than_int8_are_found_to_the_last_bit(dtype: str):
    network = Network("narrow")
    x = network.add_input("x", FLOAT, (3, 64))
    codes = np.clip(4 * numbers(64, 40), -6, 6).astype(np.dtype(getattr(ml_dtypes, dtype)))
    constant = network.add_constant(codes.shape, codes)
    scales = network.add_constant((40,), np.abs(numbers(40)) + 0.1).get_output(0)
    weights = network.add_dequantize(constant.get_output(0), scales)
    weights.axis = 1
    layer = network.add_matrix_multiply(x, MatrixOperation.NONE, weights.get_output(0), MatrixOperation.NONE)
    network.mark_output(layer.get_output(0))
    plan = loaded_plan(network, config_of(device="CPU"))
    assert is_stand_in(plan.network.layer(constant.name).weights)
    layers = {layer.name: layer for layer in stored_network(plan).network.layers}
    assert layers[constant.outputs[0].name].weights.tobytes() == codes.tobytes()


@pytest.mark.parametrize("size", [2, 4])
def test_winograds_transforms_are_undone_to_within_roundings(size: int):
    network = network_of(windows, (1, 16, 12, 12))
    config = config_of()
    config.set_kernel(network.layer("weighted"), f"cpu.winograd_{size}")
    plan = loaded_plan(network, config)
    assert plan.operations[-1].kernel == f"cpu.winograd_{size}"
    stored = stored_network(plan)
    assert list(stored.rounded) == ["weighted + after"]
    kernel = network.layer("weighted").kernel
    np.testing.assert_allclose(stored.network.layer("weighted").kernel, kernel, atol=2e-6 * np.abs(kernel).max())
    np.testing.assert_array_equal(stored.network.layer("weighted").bias, network.layer("weighted").bias)


def windows(network: Network, x: Tensor) -> Tensor:
    layer = network.add_convolution_nd(x, 32, (3, 3), numbers(32, x.shape[1], 3, 3), numbers(32))
    layer.name, layer.padding_nd = "weighted", (1, 1)
    return layer.get_output(0)


def test_an_explicitly_quantized_network_keeps_its_quantizations():
    network = Network("explicit")
    x = network.add_input("x", FLOAT, (1, 8, 8, 8))
    one = network.add_constant((), np.array(0.05, np.float32)).get_output(0)
    codes = network.add_quantize(x, one).get_output(0)
    real = network.add_dequantize(codes, one).get_output(0)
    stored_codes = np.clip(np.rint(40 * numbers(8, 8, 3, 3)), -127, 127).astype(np.int8)
    constant = network.add_constant(stored_codes.shape, stored_codes)
    weights = network.add_dequantize(constant.get_output(0), one).get_output(0)
    layer = network.add_convolution_nd(real, 8, (3, 3))
    layer.set_input(1, weights)
    network.mark_output(layer.get_output(0))
    plan = loaded_plan(network, config_of("INT8", "FP16"))
    stored = stored_network(plan).network
    assert [one.kind for one in stored.layers].count("quantize") == 1
    feeds = {"x": numbers(1, 8, 8, 8)}
    found, expected = (next(iter(run_reference(definition_of(one), feeds).values())) for one in (stored, network))
    np.testing.assert_array_equal(found, expected)


def test_an_input_in_int8_and_an_output_in_half_stay_what_they_are():
    network = network_of(convolution)
    network.inputs[0].dtype = DataType.INT8
    network.outputs[0].dtype = DataType.HALF
    stored = stored_network(loaded_plan(network, config_of("INT8", "FP16"))).network
    assert (stored.inputs[0].dtype, stored.inputs[0].dynamic_range) == (DataType.INT8, (-6.0, 6.0))
    assert stored.outputs[0].io_dtype is DataType.HALF
    codes = np.random.default_rng(3).integers(0, 100, network.inputs[0].shape).astype(np.int8)
    definition = definition_of(stored)
    found = run_reference(definition, {"x": codes * np.float32(6 / 127)})["y"]
    expected = run_reference(definition_of(network), {"x": codes * np.float32(6 / 127)})["y"]
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


def test_an_input_in_int8_has_the_range_of_the_scale_that_was_found_for_it():
    network = network_of(convolution)
    network.inputs[0].dtype = DataType.INT8
    plan = loaded_plan(network, config_of("INT8", "FP16"))
    plan.network.inputs[0].reset_dynamic_range()  # as where a calibration cache told it, not the user
    stored = stored_network(plan).network
    assert (stored.inputs[0].dtype, stored.inputs[0].spec.dtype) == (DataType.INT8, DataType.FLOAT)
    assert stored.inputs[0].dynamic_range == pytest.approx((-6.0, 6.0), rel=1e-6)
    assert not [one.name for one in stored.layers if one.kind in {"quantize", "dequantize"}]


def test_an_engine_that_keeps_the_users_network_gives_that_one():
    network, config = network_of(convolution), config_of("INT8")
    config.set_flag(dryfit.BuilderFlag.REFIT)
    known = compared_network(loaded_plan(network, config))
    assert known.weights == MODEL_WEIGHTS
    np.testing.assert_array_equal(known.network.layer("weighted").kernel, network.layer("weighted").kernel)


def with_opaque_packing(plan: Plan, monkeypatch: pytest.MonkeyPatch, layer: str) -> None:
    """Let the kernel of an engine layer pack squares of the weights, which tell no places."""
    from dryfit.answers.comparison import stored_weights

    def resolved(one: Plan):
        return [
            attrs.evolve(entry, kernel=attrs.evolve(entry.kernel, pack=squares(entry.kernel.pack)))
            if layer in entry.operation.layers
            else entry
            for entry in resolve_operations(one)
        ]

    resolve_operations = stored_weights.resolve_operations
    monkeypatch.setattr(stored_weights, "resolve_operations", resolved)


def squares(pack):
    return lambda group: {name: array * array for name, array in pack(group).items()}


def test_weights_that_cannot_be_found_are_refused_by_layer_and_what_is_before_them_stays(
    monkeypatch: pytest.MonkeyPatch,
):
    network = Network("two")
    tensor = network.add_input("x", FLOAT, (1, 4, 6, 6))
    for name in ("first", "second", "third"):
        layer = network.add_convolution_nd(tensor, 4, (1, 1), numbers(4, 4, 1, 1))
        layer.name, tensor = name, layer.get_output(0)
    network.mark_output(tensor)
    plan = loaded_plan(network, config_of())
    with_opaque_packing(plan, monkeypatch, "second")
    stored = stored_network(plan)
    assert stored.unknown == {
        "second": f"kernel {plan.operations[1].kernel!r} does more than move weights, and has no `unpack`"
    }
    assert [layer.name for layer in stored.network.layers] == ["first"]
    assert [tensor.producer.name for tensor in stored.network.outputs] == ["first"]
    with_opaque_packing(plan, monkeypatch, "first")
    with pytest.raises(ConfigError, match=r"'first': kernel .*; 'second': kernel .* Build it with --refit"):
        stored_network(plan)


def test_what_was_folded_into_weights_is_in_them_and_does_nothing_where_it_stood():
    network = network_of(normalized)
    stored = stored_weights_of(loaded_plan(network, config_of("FP16"))).network
    scale, kernel = network.layer("normalization").scale, network.layer("weighted").kernel
    halves = kernel.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(stored.layer("weighted").kernel, halves * scale.reshape(-1, 1, 1, 1))
    np.testing.assert_array_equal(stored.layer("weighted").bias, network.layer("normalization").shift)
    assert set(stored.layer("normalization").scale.ravel()) == {1.0}
    assert set(stored.layer("normalization").shift.ravel()) == {0.0}


def test_slots_are_told_apart_where_one_array_holds_each():
    network = Network("slots")
    layer = network.add_convolution_nd(network.add_input("x", FLOAT, (1, 2, 4, 4)), 600, (1, 1), numbers(600, 2, 1, 1))
    slots = [Slot(layer, "kernel", FLOAT, (600, 2, 1, 1)), Slot(layer, "bias", FLOAT, (600,))]

    def pack() -> dict[str, np.ndarray]:
        return {"w": np.pad(layer.kernel.reshape(600, 2).T[:, ::-1], 3).astype(np.float16), "b": layer.bias[::-1]}

    expected = numbers(600, 2, 1, 1).astype(np.float16), numbers(600)
    slots[0].put(expected[0])
    slots[1].put(expected[1])
    assert unpack_places(pack, slots, {name: array.copy() for name, array in pack().items()})
    np.testing.assert_array_equal(layer.kernel, expected[0])
    np.testing.assert_array_equal(layer.bias, expected[1])
