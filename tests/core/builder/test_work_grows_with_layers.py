"""Four times as many layers are four times the work: lines of Python are counted, as no test asserts a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.formats.choice import choose_forms
from dryfit.builder.segments import device_memory
from dryfit.building import assess
from dryfit.engine.memory_planner import _place_in_time, plan_memory
from dryfit.network.data_types import DataType
from dryfit.network.layer import _checked as check_parameter
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.target.kernels import Kernel
from dryfit.target.limits import LimitTable, Rule

SHAPE = (1, 4, 8, 8)


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python some work runs, those of comprehensions once for each item."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        del frame, argument
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def calls_of(function: Any, work: Callable[[], object]) -> int:
    """How often some work calls a function that is written in Python."""
    calls = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        del argument
        calls += event == "call" and frame.f_code is function.__code__

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def chain(count: int) -> Network:
    network = Network("chain")
    x = network.add_input("x", DataType.FLOAT, SHAPE)
    for _ in range(count):
        x = network.add_activation(x, ActivationType.RELU).outputs[0]
    network.mark_output(x)
    return network


def convolutions(count: int) -> Network:
    """Each with weights of its own."""
    network = Network("convolutions")
    x = network.add_input("x", DataType.FLOAT, SHAPE)
    for index in range(count):
        kernel = np.full((4, 4, 1, 1), index, np.float32)
        x = network.add_convolution_nd(x, 4, (1, 1), kernel).outputs[0]
        x = network.add_activation(x, ActivationType.RELU).outputs[0]
    network.mark_output(x)
    return network


def sum_of_one_tensor(count: int) -> Network:
    network = Network("sum")
    x = network.add_input("x", DataType.FLOAT, SHAPE)
    total = read = network.add_activation(x, ActivationType.RELU).outputs[0]
    for _ in range(count):
        total = network.add_elementwise(total, read, ElementWiseOperation.SUM).outputs[0]
    network.mark_output(total)
    return network


def readers_of_one_tensor(count: int) -> Network:
    network = Network("readers")
    x = network.add_input("x", DataType.FLOAT, SHAPE)
    read = network.add_activation(x, ActivationType.RELU).outputs[0]
    parts = [network.add_activation(read, ActivationType.RELU).outputs[0] for _ in range(count)]
    network.mark_output(network.add_concatenation(parts).outputs[0])
    return network


def model_of_one_sum(count: int) -> onnx.ModelProto:
    value, helper = onnx.helper.make_tensor_value_info, onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"], "relu"), helper.make_node("Sum", ["r"] * count, ["y"], "sum")],
        "sum",
        [value("x", onnx.TensorProto.FLOAT, SHAPE)],
        [value("y", onnx.TensorProto.FLOAT, SHAPE)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def assessed(network: Network) -> None:
    config = BuilderConfig()
    config.default_device_type = "DLA"
    config.set_flag(BuilderFlag.FP16)
    config.allow_fallback("GPU")
    assess(network, config)


@pytest.mark.parametrize("draw", [chain, convolutions, sum_of_one_tensor, readers_of_one_tensor])
def test_a_network_is_assessed_in_work_that_grows_with_its_layers(draw: Callable[[int], Network]) -> None:
    assessed(draw(5))  # loads modules and tables
    small, large = (lines_run(lambda count=count: assessed(draw(count))) for count in (150, 600))
    assert large < 4.1 * small


def test_what_a_device_is_is_looked_up_for_each_device_and_not_for_each_layer() -> None:
    small, large = (calls_of(BuilderConfig.platform, lambda count=count: assessed(chain(count))) for count in (10, 40))
    assert small == large


def test_a_rule_whose_scope_is_known_is_not_asked_for_it_again() -> None:
    assessed(chain(1))
    assert calls_of(Rule.may_apply, lambda: assessed(chain(40))) == 0


def test_rules_and_kernels_are_asked_about_equal_layers_once() -> None:
    for asked in (Rule.finding_in_scope, Kernel.refusal):
        for draw in (chain, convolutions):
            small, large = (calls_of(asked, lambda count=count: assessed(draw(count))) for count in (10, 40))  # noqa: B023
            assert small == large > 0


def test_verdicts_and_forms_are_found_once_for_equal_layers() -> None:
    for found in (LimitTable._verdict, choose_forms):
        small, large = (calls_of(found, lambda count=count: assessed(chain(count))) for count in (10, 40))
        assert small == large > 0


def test_only_parameters_that_are_given_are_checked() -> None:
    checks_of_activations, checks_of_types = calls_of(check_parameter, lambda: chain(5)), 2 * 5
    assert checks_of_activations <= checks_of_types


def test_parameters_are_checked_when_they_are_set_and_not_when_a_layer_is_copied() -> None:
    network = chain(5)
    assert calls_of(check_parameter, lambda: [copy_layer(layer) for layer in network.layers]) == 0


def test_the_same_buffers_are_placed_once() -> None:
    buffers = [(64 + index, index, index + 2) for index in range(20)]
    first = plan_memory(buffers, 32)
    first.offsets.append(1)  # a plan is the caller's own
    again: list[object] = []
    assert calls_of(_place_in_time, lambda: again.append(plan_memory(list(buffers), 32))) == 0
    assert again == [(first.offsets[:-1], first.total)]


def test_while_cuts_are_tried_only_memory_that_has_a_limit_a_segment_is_laid_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laid_out: list[str] = []
    planned = device_memory._planned
    monkeypatch.setattr(
        device_memory, "_planned", lambda pool, members: laid_out.append(pool.per) or planned(pool, members)
    )
    network, config = chain(8), BuilderConfig()
    config.default_device_type = "DLA"
    config.set_flag(BuilderFlag.FP16)
    config.allow_fallback("GPU")
    for layer in network.layers[4:]:
        config.set_device_type(layer, "GPU")
    assert {segment.device for segment in assess(network, config).segments} == {"DLA", "GPU"}
    assert set(laid_out) == {"segment"}


def test_a_sum_is_imported_in_work_that_grows_with_its_inputs() -> None:
    network_from_onnx(model_of_one_sum(5))
    small, large = (lines_run(lambda count=count: network_from_onnx(model_of_one_sum(count))) for count in (150, 600))
    assert large < 4.1 * small


def test_layers_of_one_name_get_the_smallest_number_that_is_free() -> None:
    network = chain(0)
    x = network.inputs[0]
    layers = [network.add_activation(x, ActivationType.RELU) for _ in range(4)]
    for layer in layers:
        network.rename_layer(layer, "relu")
    assert [layer.name for layer in layers] == ["relu", "relu_1", "relu_2", "relu_3"]
    network.remove_layers(layers[1:3])
    added = network.add_activation(x, ActivationType.RELU)
    network.rename_layer(added, "relu")
    assert added.name == "relu_1"
