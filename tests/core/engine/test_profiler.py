"""Times per engine layer."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, named

from dryfit.engine.engine import Engine
from dryfit.engine.profiler import LayerTimes, Profiler, percentile
from dryfit.network.data_types import DataType
from dryfit.network.network import Network


class Recorder(Profiler):
    def __init__(self):
        self.reports: list[tuple[str, float]] = []

    def report_layer_time(self, layer_name, ms):
        self.reports.append((layer_name, ms))


def test_each_engine_layer_is_reported_once_a_run_in_order():
    context = Engine(plan_of(convolution_network(2))).create_execution_context(2)
    context.profiler = recorder = Recorder()
    for _ in range(2):
        context.run(np.zeros((2, 3, 8, 8), np.float32))
    assert [name for name, _ in recorder.reports] == ["conv", "relu"] * 2
    assert all(ms >= 0 for _, ms in recorder.reports)


def test_a_fused_group_is_reported_under_its_joined_name():
    plan = plan_of(convolution_network(2), groups=[("conv", "relu")])
    plan = attrs.evolve(plan, operations=[attrs.evolve(plan.operations[0], name="user's conv + user's relu")])
    context = Engine(plan).create_execution_context(1)
    context.profiler = recorder = Recorder()
    context.run(np.zeros((2, 3, 8, 8), np.float32))
    assert [name for name, _ in recorder.reports] == ["user's conv + user's relu"]


def test_layers_whose_shapes_come_late_are_reported_and_known_ones_are_not():
    network = Network("late")
    x = network.add_input("x", DataType.FLOAT, (4,))
    network.mark_output(named(network, network.add_shape(x), "shape"))
    network.mark_output(named(network, network.add_non_zero(x), "places"))
    context = Engine(plan_of(network)).create_execution_context(1)
    context.profiler = recorder = Recorder()
    context.run(np.float32([0, 1, 0, 1]))
    assert [name for name, _ in recorder.reports] == ["places"]


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (1, 1.0), (1.5, 2.0), (50, 50.0), (99, 99.0), (99.1, 100.0), (100, 100.0)]
)
def test_a_percentile_is_the_nearest_rank(percent, expected):
    times = np.random.default_rng(0).permutation(np.arange(1.0, 101.0)).tolist()
    assert percentile(times, percent) == expected
    assert percentile([7.0], percent) == 7.0


def test_times_are_collected():
    times = LayerTimes()
    for ms in (3.0, 1.0, 2.0):
        times.report_layer_time("a", ms)
    times.report_layer_time("b", 0.5)
    assert times.medians() == {"a": 2.0, "b": 0.5}
    assert times.percentiles(99) == {"a": 3.0, "b": 0.5}
    assert times.total() == 2.5
    assert list(times.milliseconds) == ["a", "b"]


def test_the_profiler_changes_no_bit():
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    context = Engine(plan_of(convolution_network(2))).create_execution_context(1)
    without = context.run(x)["y"]
    context.profiler = LayerTimes()
    np.testing.assert_array_equal(context.run(x)["y"], without)
