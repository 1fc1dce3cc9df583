"""A comparison finds the layer that computes otherwise, and tells what it adds from what is inherited."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from dryfit.answers.comparison.compare import compare, declared_types
from dryfit.answers.comparison.sides import DefinitionSide, EngineSide, compared_sides
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.engine import operation_runner
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.errors import ConfigError, ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.quantization.rounding import RoundingMode, round_values

SHAPE = (1, 32, 8, 8)
EVEN, AWAY = RoundingMode.HALF_TO_EVEN, RoundingMode.HALF_AWAY_FROM_ZERO


def averages() -> Network:
    """Averages of two codes, one after another: each has ties, and is computed exactly."""
    network = Network("averages")
    tensor = network.add_input("x", DataType.FLOAT, SHAPE)
    tensor.set_dynamic_range(-127.0, 127.0)
    for name, window in (("first", (1, 2)), ("second", (2, 1)), ("third", (1, 2))):
        layer = network.add_pooling_nd(tensor, PoolingType.AVERAGE, window)
        layer.name, layer.stride_nd, layer.precision = name, window, DataType.INT8
        tensor = layer.get_output(0)
        network.rename_tensor(tensor, f"{name}_out")
        tensor.set_dynamic_range(-127.0, 127.0)
    network.mark_output(tensor)
    return network


def plan_of(network, device="DLA", software=None):
    builder = Builder()
    config = builder.create_builder_config()
    config.default_device_type = device
    config.allow_fallback("GPU")
    for flag in (BuilderFlag.INT8, BuilderFlag.FP16, BuilderFlag.REFIT):
        config.set_flag(flag)
    if software is not None:
        config.set_software(device, software)
    return builder.build_plan(network, config)


def compared(plan, *names, samples=None, tolerance=0.0):
    network = plan.refit.network
    declared = declared_types(network)
    engine = EngineSide("engine", plan, declared, 1)
    sides = compared_sides(names, network, plan, declared, 1)
    return compare(engine, sides, samples or [("sample", {"x": codes()})], tolerance)


def codes():
    return np.random.default_rng(2).integers(-127, 128, SHAPE).astype(np.float32)


def by_layer(found, side):
    return {one.operation.name: one.differences[side] for one in found.tensors if not one.is_conversion}


def test_a_planted_rounding_is_found_at_its_layer_and_inherited_by_all_that_follow(monkeypatch):
    plan = plan_of(averages())

    def with_wrong_rounding(resolving):
        return [
            attrs.evolve(one, rounding=AWAY) if resolving is plan and one.operation.name == "second" else one
            for one in resolve_operations(resolving)
        ]

    monkeypatch.setattr(operation_runner, "resolve_operations", with_wrong_rounding)
    found = compared(plan, "DLA@10.3")
    layers = by_layer(found, "DLA@10.3")
    assert list(layers) == ["first", "second", "third"]
    assert (layers["first"].differing, layers["first"].error) == (0, 0.0)
    assert layers["second"].differing > 0
    assert layers["second"].own == layers["second"].error > 0
    assert layers["second"].inherited == 0
    assert layers["third"].own == 0
    assert layers["third"].inherited == layers["third"].error > 0
    assert found.first_error("DLA@10.3").operation.name == "second"
    assert [one.operation.name for one in found.largest_errors("DLA@10.3")] == ["second"]
    halves = averaged(averaged(codes(), 3, EVEN), 2, None)
    index = tuple(np.argwhere(round_values(halves, EVEN) != round_values(halves, AWAY))[0])
    first = layers["second"].first
    assert (first.sample, first.index) == ("sample", index)
    assert (first.value, first.other) == (round_values(halves, AWAY)[index], round_values(halves, EVEN)[index])


def averaged(x, axis, mode):
    start, end = (np.take(x, np.arange(offset, x.shape[axis], 2), axis) for offset in (0, 1))
    mean = (start + end) / 2
    return mean if mode is None else round_values(mean, mode)


def test_software_versions_are_told_apart_by_their_rounding():
    found = by_layer(compared(plan_of(averages()), "dla@8.6"), "dla@8.6")
    x = {mode: codes() for mode in (EVEN, AWAY)}
    for name, axis in (("first", 3), ("second", 2), ("third", 3)):
        new, old = averaged(x[EVEN], axis, EVEN), averaged(x[AWAY], axis, AWAY)
        fed = averaged(x[AWAY], axis, EVEN)
        assert found[name].signal == np.sum(old**2)
        assert found[name].error == np.sum((new - old) ** 2) > 0
        assert found[name].own == np.sum((fed - old) ** 2) > 0
        assert found[name].inherited == np.sum((new - fed) ** 2)
        x = {EVEN: new, AWAY: old}


def test_against_the_definition_errors_are_those_of_the_real_numbers():
    found = by_layer(compared(plan_of(averages()), "fp32"), "fp32")
    exact = code = codes()
    for name, axis in (("first", 3), ("second", 2), ("third", 3)):
        fed = averaged(np.clip(round_values(exact, EVEN), -128, 127), axis, EVEN)
        exact, code = averaged(exact, axis, None), averaged(code, axis, EVEN)
        assert found[name].error == pytest.approx(np.sum((code - exact) ** 2))
        assert found[name].own == pytest.approx(np.sum((fed - exact) ** 2))


def test_saturation_is_the_share_of_elements_at_the_ends():
    x = codes()
    x[0, :8] = 127.0
    (tensor,) = (
        one
        for one in compared(plan_of(averages()), "fp32", samples=[("s", {"x": x})]).tensors
        if one.tensor == "first_out"
    )
    ends = averaged(x, 3, EVEN)
    assert tensor.saturation == np.mean((ends == 127) | (ends == -128)) > 0.2


def test_samples_are_counted_and_a_tolerance_hides_small_differences():
    samples = [(str(seed), {"x": codes() / (seed + 1)}) for seed in range(2)]
    found = compared(plan_of(averages()), "fp32", samples=samples, tolerance=3.0)
    assert found.samples == ["0", "1"]
    layers = by_layer(found, "fp32")
    assert layers["first"].elements == 2 * codes().size // 2
    assert layers["first"].differing == 0
    assert layers["first"].error > 0
    assert layers["first"].first is None


def test_a_tensor_that_the_other_side_does_not_store_is_not_compared():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, SHAPE)
    kernel = np.random.default_rng(0).standard_normal((32, 32, 1, 1)).astype(np.float32)
    middle = network.add_convolution_nd(x, 32, (1, 1), kernel).get_output(0)
    network.rename_tensor(middle, "middle")
    last = network.add_activation(middle, ActivationType.RELU).get_output(0)
    network.rename_tensor(last, "last")
    network.mark_output(last)
    network.mark_output(middle)
    plan = plan_of(network, "GPU")
    found = compared(plan, "fp32", "gpu")
    assert all(one.differences["gpu"].error == 0 for one in found.tensors)
    declared = declared_types(network)
    hidden = EngineSide("hidden", plan_of(_without_output(network)), declared, 1)
    engine = EngineSide("engine", plan, declared, 1)
    given = [one for one in compare(engine, [hidden], [("s", {"x": codes()})]).tensors if not one.is_conversion]
    layers = {one.tensor: one.differences["hidden"] for one in given}
    assert layers["middle"] is None
    assert (layers["last"].error, layers["last"].own, layers["last"].inherited) == (0, None, None)
    assert {one.tensor: dict(one.unfed) for one in given} == {"middle": {}, "last": {"hidden": ["middle"]}}


def _without_output(network):
    network.unmark_output(network.tensor("middle"))
    return network


def test_the_definition_reads_int8_inputs_as_the_numbers_that_they_stand_for():
    network = averages()
    network.tensor("x").dtype = DataType.INT8
    network.tensor("x").set_dynamic_range(-254.0, 254.0)
    side = DefinitionSide(network)
    found = compare(
        EngineSide("engine", plan_of(network), declared_types(network), 1),
        [side],
        [("s", {"x": codes().astype(np.int8)})],
    )
    assert by_layer(found, "fp32")["first"].signal == np.sum((2 * averaged(codes(), 3, None)) ** 2)


def test_weights_that_the_engine_dequantizes_in_the_run_are_inputs_like_any_other():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 64, 4, 4))
    # As many that no build computes them beforehand.
    kernel = np.random.default_rng(0).standard_normal((64, 32, 2, 2)).astype(np.float32)
    layer = network.add_deconvolution_nd(x, 32, (2, 2), kernel)
    layer.precision = DataType.INT8
    for tensor in (x, layer.get_output(0)):
        tensor.set_dynamic_range(-4.0, 4.0)
    network.mark_output(layer.get_output(0))
    plan = plan_of(network, "GPU")
    engine = EngineSide("engine", plan, declared_types(network), 1)
    dequantized = [
        one.name for one in plan.network.tensors if one.name in engine.fixed and one.producer.kind != "constant"
    ]
    assert dequantized
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 64, 4, 4)).astype(np.float32)}
    found = compared(plan, "fp32", samples=[("s", feeds)])
    assert found.left_out == []
    assert all(one.differences["fp32"].own is not None for one in found.tensors)


def test_formats_that_only_the_engines_device_has_do_not_bind_another():
    network = averages()
    network.tensor("x").allowed_formats = frozenset({"CHW32"})
    network.tensor("x").dtype = DataType.INT8
    plan = plan_of(network)
    samples = [("s", {"x": codes().astype(np.int8)})]
    assert [one.error for one in by_layer(compared(plan, "cpu", samples=samples), "cpu").values()][:2] == [0, 0]
    assert plan.refit.network.tensor("x").allowed_formats == {"CHW32"}


@pytest.mark.parametrize("names", [(), ("fp32", "fp32")])
def test_sides_are_named_once_and_at_least_one(names):
    with pytest.raises(ConfigError, match="At least one side to compare with is required, and each must be named once"):
        compared(plan_of(averages()), *names)


def test_an_unknown_device_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownNameError, match="gpux"):
        compared(plan_of(averages()), "gpux")


def test_without_samples_there_is_nothing_to_compare():
    plan = plan_of(averages())
    with pytest.raises(ExecutionError, match="At least one sample is required"):
        compare(EngineSide("engine", plan, declared_types(averages()), 1), [DefinitionSide(averages())], [])
