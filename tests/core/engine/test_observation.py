"""Plugins follow runs: times of layers where they want them, nothing where nobody watches."""

import sys
import threading

import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network

from dryfit.engine.binding import BoundEngine
from dryfit.engine.engine import Engine
from dryfit.engine.profiler import LayerTimes
from dryfit.errors import ExecutionError
from dryfit.plugins import registry

WATCHER = """
from dryfit import hookimpl
from dryfit.plugins.contributions import RunObserver

TOLD = []

class Watcher(RunObserver):
    wants_layer_times = {times}

    def __init__(self):
        self.told = []
        TOLD.append(self.told)

    def run_started(self, input_shapes):
        self.told.append(("started", input_shapes))

    def layer_finished(self, layer, milliseconds):
        self.told.append(("layer", layer, milliseconds))

    def run_finished(self, milliseconds):
        self.told.append(("finished", milliseconds))

@hookimpl
def observe_run(engine, devices):
    watcher = Watcher()
    watcher.told.append((engine, devices))
    return watcher
"""

X = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def engine():
    return Engine(plan_of(convolution_network(2)))


@pytest.fixture
def observed(monkeypatch):
    """What runs of bindings were given as their observer."""
    given = []
    run = BoundEngine.run

    def noting(self, inputs, observe=None):
        given.append(observe)
        return run(self, inputs, observe)

    monkeypatch.setattr(BoundEngine, "run", noting)
    return given


def told():
    return sys.modules["acme"].TOLD


def test_an_observer_is_told_of_each_run_with_the_times_of_its_layers(install, engine):
    install("acme", WATCHER.format(times=True))
    context = engine.create_execution_context(1)
    context.run(X)
    context.run(X)
    (events,) = told()
    assert events[0] == ("tiny", sorted({segment.device for segment in engine.plan.segments}))
    assert [event[:2] if event[0] == "layer" else event[0] for event in events[1:]] == [
        "started",
        ("layer", "conv"),
        ("layer", "relu"),
        "finished",
    ] * 2
    assert events[1] == ("started", {"x": (2, 3, 8, 8)})
    layers = [event[2] for event in events[1:5] if event[0] == "layer"]
    assert 0 <= sum(layers) <= events[4][1]


def test_layers_are_timed_only_for_those_who_want_it(install, engine, observed):
    install("acme", WATCHER.format(times=False))
    context = engine.create_execution_context(1)
    context.run(X)
    assert [event[0] for event in told()[0][1:]] == ["started", "finished"]
    assert observed == [None]
    context.profiler = LayerTimes()
    context.run(X)
    assert [event[0] for event in told()[0][3:]] == ["started", "finished"]
    assert list(context.profiler.milliseconds) == ["conv", "relu"]


def test_a_run_that_nobody_watches_measures_nothing(engine, observed, monkeypatch):
    context = engine.create_execution_context(1)
    monkeypatch.setattr("time.perf_counter", None)
    context.run(X)
    assert observed == [None]


def test_an_observer_changes_no_bit(install, engine):
    without = engine.create_execution_context(1).run(X)["y"]
    install("acme", WATCHER.format(times=True))
    np.testing.assert_array_equal(engine.create_execution_context(1).run(X)["y"], without)


def test_inputs_that_do_not_fit_are_no_run(install, engine):
    install("acme", WATCHER.format(times=False))
    context = engine.create_execution_context(1)
    with pytest.raises(ExecutionError):
        context.run(X.astype(np.float64))
    assert len(told()[0]) == 1


def test_a_run_that_raises_is_over_too(install, engine):
    install("acme", WATCHER.format(times=False))
    context = engine.create_execution_context(1)
    with pytest.raises(ExecutionError, match="The output must fit the array that was given for it"):
        context.run(X, out={"y": np.empty((1, 4, 8, 8), np.float32)})
    assert [event[0] for event in told()[0][1:]] == ["started", "finished"]


@pytest.mark.parametrize(
    "moment", ["run_started(self, input_shapes)", "layer_finished(self, layer, ms)", "run_finished(self, ms)"]
)
def test_an_observer_that_raises_is_recorded_once_and_the_runs_go_on(install, engine, moment):
    install("acme", WATCHER.format(times=True))
    source = f"""
from dryfit import hookimpl
from dryfit.plugins.contributions import RunObserver

class Raising(RunObserver):
    wants_layer_times = True

    def {moment}:
        raise ValueError("odd")

@hookimpl
def observe_run():
    return Raising()
"""
    install("boards", source)
    context = engine.create_execution_context(1)
    expected = context.run(X)["y"]
    np.testing.assert_array_equal(context.run(X)["y"], expected)
    assert [event[0] for event in told()[0]].count("finished") == 2
    (failure,) = registry.failures()
    assert (failure.distribution, failure.hook) == ("boards", "observe_run")
    assert "ValueError: odd" in failure.message


def test_contexts_in_several_threads_each_tell_an_observer_of_their_own(install, engine):
    install("acme", WATCHER.format(times=True))
    contexts = [engine.create_execution_context(1) for _ in range(4)]
    threads = [threading.Thread(target=lambda one=one: [one.run(X) for _ in range(20)]) for one in contexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one_run = ["started", "layer", "layer", "finished"]
    assert [[event[0] for event in events[1:]] for events in told()] == [one_run * 20] * 4
    assert registry.failures() == []


def test_one_context_tells_of_whole_runs_though_several_threads_run_it(install, engine):
    slow = 'self.told.append(("started", input_shapes))'
    install("acme", WATCHER.format(times=True).replace(slow, f"{slow}; __import__('time').sleep(0.001)"))
    context = engine.create_execution_context(1)
    threads = [threading.Thread(target=lambda: [context.run(X) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (events,) = told()
    assert [event[0] for event in events[1:]] == ["started", "layer", "layer", "finished"] * 80
