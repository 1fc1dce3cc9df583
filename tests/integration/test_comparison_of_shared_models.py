"""In real networks a comparison finds the one layer whose weights were tampered with, and names no other."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

from dryfit.answers.comparison.compare import compare, declared_types
from dryfit.answers.comparison.sides import DefinitionSide, EngineSide
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.engine.plan import Plan
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.reference.executor import run_reference


def int8_plan(network: Network, feeds: dict[str, np.ndarray]) -> Plan:
    """For the DLA, with the ranges that the tensors have on one sample."""
    largest: dict[str, float] = {}
    run_reference(network, feeds, lambda tensor, array: largest.update({tensor.name: float(np.abs(array).max())}))
    for tensor in network.tensors:
        is_constant = tensor.producer is not None and tensor.producer.kind == "constant"
        if tensor.dtype.is_floating_point and not is_constant and largest.get(tensor.name):
            tensor.set_dynamic_range(-largest[tensor.name], largest[tensor.name])
    builder = Builder()
    config = builder.create_builder_config()
    config.default_device_type = "DLA"
    config.allow_fallback("GPU")
    config.builder_optimization_level = 0
    for flag in (BuilderFlag.INT8, BuilderFlag.FP16):
        config.set_flag(flag)
    return builder.build_plan(network, config)


def tampered(plan: Plan) -> tuple[Plan, str]:
    """The plan with one bit of one packed weight of its third convolution in INT8 turned, and that layer's name."""
    chosen = [one for one in plan.operations if one.kernel == "cpu.integer_convolution"][2]
    name = max(chosen.weights, key=lambda one: chosen.weights[one].size)
    array = chosen.weights[name].copy()
    flat = array.reshape(-1).view(np.uint8)
    flat[np.flatnonzero(flat)[0]] ^= 0x40
    other = attrs.evolve(chosen, weights={**chosen.weights, name: array})
    return attrs.evolve(plan, operations=[other if one is chosen else one for one in plan.operations]), chosen.name


@pytest.mark.parametrize("model", ["resnet20_cifar10", "mnist_lrn_fp32"])
def test_a_weight_that_was_tampered_with_is_found_at_its_layer(shared_models: Path, model: str) -> None:
    network = network_from_onnx(shared_models / f"{model}.onnx")
    (image,) = network.inputs
    image.shape = tuple(max(1, extent) for extent in image.shape)
    feeds = {image.name: np.random.default_rng(0).random(image.shape, np.float32)}
    plan = int8_plan(network, feeds)
    wrong, layer = tampered(plan)
    declared = declared_types(network)
    sound = EngineSide("sound", plan, declared, 1)
    sides = [sound, DefinitionSide(network)]
    found = compare(EngineSide("wrong", wrong, declared, 1), sides, [("sample", feeds)])
    own = {one.operation.name: one.differences["sound"].own for one in found.tensors}
    assert [name for name, error in own.items() if error] == [layer]
    assert found.first_error("sound").operation.name == layer
    names = [one.operation.name for one in found.tensors]
    before = [one.differences["sound"] for one in found.tensors[: names.index(layer)]]
    after = [one.differences["sound"] for one in found.tensors[names.index(layer) + 1 :]]
    assert all(one.error == 0 for one in before)
    assert any(one.inherited for one in after)
    # Against the definition, every layer adds something, and that one more than it does in the sound engine.
    (exact,) = (one for one in compare(sound, sides[1:], [("sample", feeds)]).tensors if one.operation.name == layer)
    (worse,) = (one for one in found.tensors if one.operation.name == layer)
    assert worse.differences["fp32"].own > exact.differences["fp32"].own > 0
