"""Runs like the one before: what a context forgets to ask must not be what changed in between."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, relu_network

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.profiler import Profiler
from dryfit.engine.repeated_run import RepeatedRun
from dryfit.network.layers.activation import ActivationType

X = np.array([[-1, 2, -3], [4, -5, 6]], dtype=np.float32)


class Times(Profiler):
    def __init__(self):
        self.names: list[str] = []

    def report_layer_time(self, layer_name, ms):
        self.names.append(layer_name)


@pytest.fixture
def repeated(monkeypatch):
    """The runs that were recognized as like the one before."""
    seen, run = [], RepeatedRun.run
    monkeypatch.setattr(RepeatedRun, "run", lambda one, inputs: seen.append(one) or run(one, inputs))
    return seen


@pytest.fixture
def context():
    context = Engine(plan_of(relu_network((-1, 3)))).create_execution_context(num_threads=1)
    for _ in range(2):
        context.run({"x": X})
    return context


def test_the_second_run_asks_nothing_again_and_gives_arrays_of_its_own(repeated):
    context = Engine(plan_of(relu_network((-1, 3)))).create_execution_context(num_threads=1)
    results = [context.run({"x": sign * X})["y"] for sign in (1, -1, 1)]
    assert len(repeated) == 2
    for sign, result in zip((1, -1, 1), results, strict=True):
        np.testing.assert_array_equal(result, np.maximum(sign * X, 0))


def test_other_shapes_in_between_are_runs_of_their_own(context, repeated):
    for rows in (2, 1, 1, 2, 2):
        np.testing.assert_array_equal(context.run({"x": X[:rows]})["y"], np.maximum(X[:rows], 0))
    assert len(repeated) == 3


def test_an_input_of_any_strides_may_repeat_a_run(context, repeated):
    x = np.asfortranarray(X)[:, ::-1]
    np.testing.assert_array_equal(context.run({"x": x})["y"], np.maximum(x, 0))
    assert len(repeated) == 1


def test_arrays_for_outputs_are_written_after_other_runs_too(context):
    y = np.empty_like(X)
    assert context.run({"x": X}, out={"y": y})["y"] is y
    np.testing.assert_array_equal(y, np.maximum(X, 0))


def test_an_allocator_that_is_set_between_runs_is_asked(context):
    memory = np.zeros(X.nbytes, np.uint8)
    context.set_output_allocator("y", lambda *_: memory)
    assert np.shares_memory(context.run({"x": X})["y"], memory)
    context.set_output_allocator("y", None)
    assert not np.shares_memory(context.run({"x": X})["y"], memory)


def test_a_profiler_that_is_set_between_runs_gets_times(context):
    context.profiler = Times()
    context.run({"x": X})
    assert context.profiler.names == ["relu"]


def test_a_debug_listener_that_is_set_between_runs_receives_tensors():
    network = convolution_network(2)
    network.mark_unfused_tensors_as_debug_tensors()
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(num_threads=1)
    x, seen = np.ones((2, 3, 8, 8), np.float32), []
    for _ in range(2):
        context.run({"x": x})
    context.set_debug_listener(lambda name, *_: seen.append(name) or True)
    context.unfused_tensors_debug_state = True
    for _ in range(2):
        context.run({"x": x})
    assert seen
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]


def test_a_new_plan_of_the_engine_is_run(context):
    network = relu_network((-1, 3))
    network.layers[0].activation_type = ActivationType.TANH
    context.engine.adopt(plan_of(network))
    np.testing.assert_allclose(context.run({"x": X})["y"], np.tanh(X), rtol=1e-6)
