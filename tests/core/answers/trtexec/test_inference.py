"""The loop of trtexec: which queries run, in which order, and which of them are measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from dryfit.answers.build import build
from dryfit.answers.trtexec.inference import EngineRunner, InferenceSettings, QueryTimes, measure
from dryfit.engine.engine import Engine
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError, ExecutionError

INPUTS = {"x": np.arange(4, dtype=np.float32)}
ONCE = {"warm_up_ms": 0.0, "duration_s": 0.0}


class Doubler:
    """Returns twice its input; keeps what it was called with."""

    def __init__(self, before: Callable[[int], None] = lambda run: None):
        self.before = before
        self.runs = 0
        self.threads: set[int] = set()
        self.seen: list[np.ndarray] = []

    def run(self, inputs, profiler=None):
        self.before(self.runs)
        self.runs += 1
        self.threads.add(threading.get_ident())
        self.seen.append(inputs["x"])
        if profiler is not None:
            profiler.report_layer_time("double", 0.5)
        return {"y": inputs["x"] * 2}


def test_without_warm_up_and_duration_the_iterations_are_exact():
    runner = Doubler()
    times = measure(runner, INPUTS, InferenceSettings(iterations=7, **ONCE))
    assert runner.runs == len(times.queries) == len(times.measured) == 7
    assert times.warm_up_queries == 0
    assert np.array_equal(times.outputs["y"], INPUTS["x"] * 2)
    for one in times.queries:
        assert 0 <= one.start_h2d_ms <= one.start_compute_ms <= one.end_compute_ms <= one.end_d2h_ms
        assert one.latency_ms == pytest.approx(one.h2d_ms + one.compute_ms + one.d2h_ms)
        assert one.enqueue_ms == one.compute_ms
    starts = [one.start_h2d_ms for one in times.queries]
    assert starts == sorted(starts)
    assert times.wall_ms == times.queries[-1].end_d2h_ms - starts[0]


def test_the_duration_is_reached_if_the_iterations_end_earlier():
    times = measure(Doubler(), INPUTS, InferenceSettings(iterations=1, warm_up_ms=0, duration_s=0.05))
    assert times.queries[-1].start_compute_ms >= 50
    assert all(one.start_compute_ms < 50 for one in times.queries[:-1])


def test_queries_that_start_during_warm_up_are_not_measured_and_do_not_count():
    runner = Doubler(lambda run: time.sleep(0.002))
    times = measure(runner, INPUTS, InferenceSettings(iterations=5, warm_up_ms=20, duration_s=0))
    assert times.warm_up_queries > 0
    assert all(one.start_compute_ms < 20 for one in times.queries[: times.warm_up_queries])
    assert all(one.start_compute_ms >= 20 for one in times.measured)
    assert len(times.measured) >= 5


def test_zero_iterations_in_no_time_run_nothing():
    runner = Doubler()
    times = measure(runner, INPUTS, InferenceSettings(iterations=0, **ONCE))
    assert (runner.runs, list(times.queries), dict(times.outputs), times.wall_ms) == (0, [], {}, 0.0)


def test_zero_iterations_after_warm_up_measure_the_query_that_ends_it():
    times = measure(Doubler(), INPUTS, InferenceSettings(iterations=0, warm_up_ms=5, duration_s=0))
    assert len(times.measured) == 1


def test_streams_of_one_thread_take_turns():
    runners = [Doubler(), Doubler(), Doubler()]
    times = measure(runners, INPUTS, InferenceSettings(iterations=4, streams=3, **ONCE))
    assert [one.stream for one in times.queries] == [0, 1, 2] * 4
    assert {thread for one in runners for thread in one.threads} == {threading.get_ident()}
    assert all(
        one.end_d2h_ms <= other.start_h2d_ms for one, other in zip(times.queries, times.queries[1:], strict=False)
    )


def test_streams_with_threads_run_at_once():
    meeting = threading.Barrier(2, timeout=30)
    runners = [Doubler(lambda run: meeting.wait() and None), Doubler(lambda run: meeting.wait() and None)]
    times = measure(runners, INPUTS, InferenceSettings(iterations=3, streams=2, threads=True, **ONCE))
    assert [one.runs for one in runners] == [3, 3]
    assert len(set.union(*(one.threads for one in runners))) == 2
    assert sorted(one.stream for one in times.queries) == [0, 0, 0, 1, 1, 1]
    first, second = ([one for one in times.queries if one.stream == index] for index in (0, 1))
    assert all(
        max(one.start_compute_ms, other.start_compute_ms) < min(one.end_compute_ms, other.end_compute_ms)
        for one, other in zip(first, second, strict=True)
    )


def test_each_stream_reads_inputs_of_its_own():
    runners = [Doubler(), Doubler()]
    measure(runners, INPUTS, InferenceSettings(iterations=1, streams=2, **ONCE))
    assert runners[0].seen[0] is not runners[1].seen[0]
    assert not any(np.shares_memory(one.seen[0], INPUTS["x"]) for one in runners)


def test_data_transfers_renew_the_inputs_of_each_query():
    class Writer(Doubler):
        def run(self, inputs, profiler=None):
            outputs = super().run(inputs)
            inputs["x"][:] = -1
            return outputs

    with_copies = measure(Writer(), INPUTS, InferenceSettings(iterations=2, **ONCE))
    without = measure(Writer(), INPUTS, InferenceSettings(iterations=2, data_transfers=False, **ONCE))
    assert np.array_equal(with_copies.outputs["y"], [0, 2, 4, 6])
    assert np.array_equal(without.outputs["y"], [-2, -2, -2, -2])
    assert all((one.h2d_ms, one.d2h_ms) == (0, 0) for one in without.queries)
    assert np.array_equal(INPUTS["x"], [0, 1, 2, 3])


def test_outputs_whose_shape_changes_are_those_of_the_last_query():
    class Growing(Doubler):
        def run(self, inputs, profiler=None):
            self.runs += 1
            return {"y": np.arange(self.runs)}

    times = measure(Growing(), INPUTS, InferenceSettings(iterations=3, **ONCE))
    assert np.array_equal(times.outputs["y"], [0, 1, 2])


def test_layers_are_measured_in_the_same_run_or_in_a_second_one():
    runner = Doubler()
    same = measure(runner, INPUTS, InferenceSettings(iterations=3, profile=True, **ONCE))
    assert (runner.runs, same.is_profiled, same.layers.milliseconds) == (3, True, {"double": [0.5] * 3})
    runner = Doubler()
    settings = InferenceSettings(iterations=3, profile=True, separate_profile_run=True, **ONCE)
    separate = measure(runner, INPUTS, settings)
    assert (runner.runs, separate.is_profiled) == (6, False)
    assert separate.layers.milliseconds == {"double": [0.5] * 3}
    assert len(separate.queries) == 3


def test_only_the_first_stream_measures_its_layers():
    times = measure([Doubler(), Doubler()], INPUTS, InferenceSettings(iterations=2, streams=2, profile=True, **ONCE))
    assert times.layers.milliseconds == {"double": [0.5] * 2}


def test_idle_time_is_spent_between_iterations_after_warm_up():
    times = measure(Doubler(), INPUTS, InferenceSettings(iterations=3, idle_ms=20, **ONCE))
    gaps = [
        after.start_h2d_ms - before.end_d2h_ms for before, after in zip(times.queries, times.queries[1:], strict=False)
    ]
    assert len(gaps) == 2
    assert min(gaps) >= 19


def test_the_clock_begins_after_the_sleep(monkeypatch):
    waits: list[tuple[float, int]] = []
    runner = Doubler()
    monkeypatch.setattr(time, "sleep", lambda seconds: waits.append((seconds, runner.runs)))
    measure(runner, INPUTS, InferenceSettings(iterations=1, sleep_ms=30, **ONCE))
    assert waits == [(0.03, 0)]


@pytest.mark.parametrize("threads", [False, True])
def test_an_endless_inference_ends_with_an_interrupt(threads):
    def interrupt(run):
        if run == 5:
            raise KeyboardInterrupt

    runners = [Doubler(interrupt), Doubler()]
    settings = InferenceSettings(iterations=1, warm_up_ms=0, duration_s=-1, streams=2, threads=threads)
    with pytest.raises(KeyboardInterrupt):
        measure(runners, INPUTS, settings)
    assert runners[0].runs == 5


def test_the_error_of_a_stream_ends_all_streams():
    def fail(run):
        if run == 2:
            raise ExecutionError("A layer failed")

    runners = [Doubler(), Doubler(fail)]
    settings = InferenceSettings(iterations=10**9, duration_s=-1, streams=2, threads=True)
    with pytest.raises(ExecutionError, match="A layer failed"):
        measure(runners, INPUTS, settings)


class Steps(ProgressMonitor):
    def __init__(self, until: int):
        self.until = until
        self.events: list[object] = []

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.events.append((phase_name, parent_phase, num_steps))

    def step_complete(self, phase_name, step):
        self.events.append(step)
        return step < self.until

    def phase_finish(self, phase_name):
        self.events.append(phase_name)


def test_progress_is_reported_per_iteration_and_can_cancel():
    progress = Steps(100)
    measure([Doubler(), Doubler()], INPUTS, InferenceSettings(iterations=2, streams=2, **ONCE), progress=progress)
    assert progress.events == [("Inference", None, 0), 0, 1, "Inference"]
    progress = Steps(1)
    with pytest.raises(ExecutionError, match="canceled the inference"):
        measure(Doubler(), INPUTS, InferenceSettings(iterations=9, **ONCE), progress=progress)
    assert progress.events == [("Inference", None, 0), 0, 1, "Inference"]


def test_each_stream_needs_a_runner():
    with pytest.raises(ConfigError, match=r"found 1 runners; allowed: 2"):
        measure(Doubler(), INPUTS, InferenceSettings(streams=2))


@pytest.mark.parametrize(
    ("field", "value", "option"),
    [
        ("iterations", -1, "--iterations"),
        ("warm_up_ms", -0.5, "--warmUp"),
        ("warm_up_ms", float("nan"), "--warmUp"),
        ("duration_s", -2, "--duration"),
        ("duration_s", float("nan"), "--duration"),
        ("sleep_ms", -1, "--sleepTime"),
        ("idle_ms", -1, "--idleTime"),
        ("streams", 0, "--infStreams"),
        ("average_runs", 0, "--avgRuns"),
        ("percentiles", (50, 101), "--percentile"),
        ("percentiles", (float("nan"),), "--percentile"),
    ],
)
def test_settings_outside_their_range_are_refused(field, value, option):
    with pytest.raises(ConfigError) as raised:
        InferenceSettings(**{field: value})
    assert raised.value.where == option
    assert raised.value.remedy


def test_the_defaults_are_those_of_trtexec():
    settings = InferenceSettings()
    assert (settings.iterations, settings.warm_up_ms, settings.duration_s, settings.average_runs) == (10, 200, 3, 10)
    assert (settings.percentiles, settings.streams, settings.is_endless) == ((90, 95, 99), 1, False)


def test_an_engine_runs_in_streams_with_its_layers_measured(digits_model, tmp_path):
    build(digits_model, tmp_path / "digits.engine", shape={"image": (1, 1, 8, 8)})
    engine = Engine.load(tmp_path / "digits.engine")
    inputs = {"image": np.random.default_rng(0).random((1, 1, 8, 8), np.float32)}
    settings = InferenceSettings(iterations=3, streams=2, threads=True, profile=True, **ONCE)
    times = measure([EngineRunner(engine, num_threads=1) for _ in range(2)], inputs, settings)
    assert len(times.queries) == 6
    assert all(isinstance(one, QueryTimes) and one.compute_ms > 0 for one in times.queries)
    expected = engine.create_execution_context(1).run(inputs)
    assert {name: array.tolist() for name, array in times.outputs.items()} == {
        name: array.tolist() for name, array in expected.items()
    }
    assert all(len(milliseconds) == 3 for milliseconds in times.layers.milliseconds.values())
