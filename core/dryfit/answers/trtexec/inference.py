"""Timed inference on this machine, with the streams, the warm-up and the stop conditions of trtexec.

What the words of trtexec mean here:

* H2D and D2H are copies of the inputs and outputs inside the memory of this host.
* Compute is the time in which this host's CPU emulates the devices.
* Enqueue has no counterpart: the call that starts a query returns with its result, so its time is the compute time.
* Streams that share a thread run one after another, because a call returns with its result. With `threads`, each stream
  has a thread and they run at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.profiler import LayerTimes, Profiler
from dryfit.engine.tensorrt_layers import shown_names
from dryfit.errors import ConfigError, ExecutionError

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine
    from dryfit.engine.progress import ProgressMonitor

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]

ENDLESS = -1.0
"""The duration that runs inference until it is interrupted."""

PHASE = "Inference"
"""Name of the phase that a progress monitor receives, with one step per iteration of the first stream."""


class Runner(Protocol):
    """What runs a query: an engine, or a loadable."""

    def run(self, inputs: Arrays, profiler: Profiler | None = None) -> Arrays:
        """Return the outputs by name, and report the time of each layer to the profiler if there is one."""


class EngineRunner:
    """Runs an engine, or a loadable that was read back, with an execution context of its own.

    Args:
        engine: engine to run.
        profile_index: optimization profile to use.
        num_threads: number of host threads of the context; None for one per CPU.

    Example:
        >>> runners = [EngineRunner(engine) for _ in range(2)]
        >>> times = measure(runners, inputs, InferenceSettings(streams=2))
    """

    def __init__(self, engine: Engine, *, profile_index: int = 0, num_threads: int | None = None) -> None:
        self.context = engine.create_execution_context(num_threads)
        self.context.set_optimization_profile(profile_index)
        self._shown_names: Mapping[str, str] | None = None

    def run(self, inputs: Arrays, profiler: Profiler | None = None) -> Arrays:
        """Run the engine once. A DLA loadable is reported as one layer, as in TensorRT."""
        if profiler is None:
            self.context.profiler = None
            return self.context.run(inputs)
        if self._shown_names is None:
            self._shown_names = shown_names(self.context.engine)
        times = self.context.profiler = LayerTimes()
        outputs = self.context.run(inputs)
        shown = dict[str, float]()
        for layer, reported in times.milliseconds.items():
            name = self._shown_names.get(layer, layer)
            shown[name] = shown.get(name, 0.0) + sum(reported)
        for name, ms in shown.items():
            profiler.report_layer_time(name, ms)
        return outputs


# Settings -------------------------------------------------------------------------------------------------------------


def _at_least(minimum: float, option: str) -> Any:
    """Return a validator of a number that has a minimum; NaN is refused, too."""

    def check(_record: object, _field: object, value: float) -> None:
        if not value >= minimum:
            raise ConfigError(
                f"The value must be at least {minimum:g}",
                where=option,
                found=value,
                remedy=f"Set {option} to {minimum:g} or more",
            )

    return check


def _duration(_record: object, _field: object, value: float) -> None:
    if not (value >= 0 or value == ENDLESS):
        raise ConfigError(
            "The duration must not be negative",
            where="--duration",
            found=value,
            allowed="0 or more seconds, or -1 to run until interrupted",
            remedy="Set --duration to 0 or more, or to -1",
        )


def _percentiles(_record: object, _field: object, values: Sequence[float]) -> None:
    for value in values:
        if not 0 <= value <= 100:
            raise ConfigError(
                "A percentile must be between 0 and 100",
                where="--percentile",
                found=value,
                remedy="Use percentiles such as --percentile=90,95,99",
            )


@frozen(kw_only=True)
class InferenceSettings:
    """How a line of trtexec runs and measures inference. The defaults are those of trtexec.

    Attributes:
        iterations: minimum number of queries per stream after warm-up; `--iterations`.
        warm_up_ms: queries that start their computation earlier are not measured; `--warmUp`.
        duration_s: minimum time after warm-up in seconds; -1 to run until interrupted; `--duration`.
        sleep_ms: delay before the first query; `--sleepTime`.
        idle_ms: delay after each iteration that follows warm-up; `--idleTime`.
        streams: number of streams, each with a runner of its own; `--infStreams`.
        threads: whether each stream runs in a thread of its own; `--threads`.
        data_transfers: whether each query copies its inputs and outputs; False with `--noDataTransfers`.
        average_runs: number of queries per line of averages; `--avgRuns`.
        percentiles: percentiles of the summary, from 0 to 100; `--percentile`.
        profile: whether the first stream measures its layers; `--dumpProfile` or `--exportProfile`.
        separate_profile_run: whether layers are measured in a second run; `--separateProfileRun`.
    """

    iterations: int = attrs.field(default=10, validator=_at_least(0, "--iterations"))
    warm_up_ms: float = attrs.field(default=200.0, validator=_at_least(0, "--warmUp"))
    duration_s: float = attrs.field(default=3.0, validator=_duration)
    sleep_ms: float = attrs.field(default=0.0, validator=_at_least(0, "--sleepTime"))
    idle_ms: float = attrs.field(default=0.0, validator=_at_least(0, "--idleTime"))
    streams: int = attrs.field(default=1, validator=_at_least(1, "--infStreams"))
    threads: bool = False
    data_transfers: bool = True
    average_runs: int = attrs.field(default=10, validator=_at_least(1, "--avgRuns"))
    percentiles: Sequence[float] = attrs.field(default=(90.0, 95.0, 99.0), validator=_percentiles)
    profile: bool = False
    separate_profile_run: bool = False

    @property
    def is_endless(self) -> bool:
        """Whether inference runs until it is interrupted."""
        return self.duration_s == ENDLESS


# Results --------------------------------------------------------------------------------------------------------------


@frozen
class QueryTimes:
    """The times of one query on this host, in ms since the start of the inference.

    Attributes:
        stream: index of the stream.
        start_h2d_ms: start of the copies of the inputs.
        start_compute_ms: end of these copies, and start of the computation.
        end_compute_ms: end of the computation, and start of the copies of the outputs.
        end_d2h_ms: end of these copies.
    """

    stream: int
    start_h2d_ms: float
    start_compute_ms: float
    end_compute_ms: float
    end_d2h_ms: float

    @property
    def h2d_ms(self) -> float:
        """Time of the copies of the inputs."""
        return self.start_compute_ms - self.start_h2d_ms

    @property
    def compute_ms(self) -> float:
        """Time of the computation."""
        return self.end_compute_ms - self.start_compute_ms

    @property
    def d2h_ms(self) -> float:
        """Time of the copies of the outputs."""
        return self.end_d2h_ms - self.end_compute_ms

    @property
    def enqueue_ms(self) -> float:
        """Time of the call that starts the query: that of the computation, because the call returns with its result."""
        return self.compute_ms

    @property
    def latency_ms(self) -> float:
        """Time of the copies and the computation."""
        return self.end_d2h_ms - self.start_h2d_ms


@frozen
class InferenceTimes:
    """What an inference measured on this host.

    Attributes:
        queries: all queries in the order of their start, beginning with those of the warm-up.
        warm_up_queries: number of queries of the warm-up.
        outputs: outputs of the last query of the first stream, by name; empty if no query ran.
        layers: times of the layers of the first stream, including warm-up; None without a profile.
        is_profiled: whether the layers were measured during these queries, which makes them slower.
    """

    queries: Sequence[QueryTimes]
    warm_up_queries: int = 0
    outputs: Arrays = attrs.field(factory=dict, eq=False)
    layers: LayerTimes | None = attrs.field(default=None, eq=False)
    is_profiled: bool = False

    @property
    def measured(self) -> Sequence[QueryTimes]:
        """The queries after the warm-up."""
        return self.queries[self.warm_up_queries :]

    @property
    def wall_ms(self) -> float:
        """Time from the start of the first query after the warm-up to the end of the last one; 0 without queries."""
        measured = self.measured
        return max(one.end_d2h_ms for one in measured) - measured[0].start_h2d_ms if measured else 0.0


# Measurement ----------------------------------------------------------------------------------------------------------


def measure(
    runner: Runner | Sequence[Runner],
    inputs: Arrays,
    settings: InferenceSettings,
    *,
    progress: ProgressMonitor | None = None,
) -> InferenceTimes:
    """Run inference until the iterations, the duration and the warm-up of the settings are reached, and measure it.

    Args:
        runner: one runner per stream, or the runner of the only stream.
        inputs: arrays by input name, which every query reads.
        settings: how to run and measure.
        progress: monitor that receives the iterations of the first stream, and can cancel them.

    Raises:
        ConfigError: There are more or fewer runners than streams.
        ExecutionError: The inputs do not match the engine, or `progress` canceled the inference.
        KeyboardInterrupt: The user interrupted the inference, which is the end of an endless one.
    """
    runners = runner if isinstance(runner, Sequence) else [runner]
    if len(runners) != settings.streams:
        raise ConfigError(
            "Each stream must have a runner",
            where="--infStreams",
            found=f"{len(runners)} runners",
            allowed=str(settings.streams),
            remedy="Pass one runner per stream",
        )
    layers = LayerTimes() if settings.profile else None
    is_profiled = settings.profile and not settings.separate_profile_run
    streams = [
        _Stream(index, one, inputs, settings, layers if is_profiled and index == 0 else None)
        for index, one in enumerate(runners)
    ]
    queries = _Inference(streams, settings, progress).run()
    outputs = streams[0].fetched()
    if settings.profile and settings.separate_profile_run:
        streams[0].profiler = layers
        _Inference(streams, settings, progress).run()
    started = (one.start_compute_ms >= settings.warm_up_ms for one in queries)
    warm_up = next((index for index, is_warm in enumerate(started) if is_warm), len(queries))
    return InferenceTimes(queries, warm_up, outputs, layers, is_profiled)


class _Stream:
    """A stream: its runner, and its own copies of the inputs and outputs."""

    def __init__(
        self, index: int, runner: Runner, inputs: Arrays, settings: InferenceSettings, profiler: Profiler | None
    ) -> None:
        self.index = index
        self.profiler = profiler
        self._runner = runner
        self._transfers = settings.data_transfers
        self._host_inputs = {name: np.asarray(array) for name, array in inputs.items()}
        self._inputs = {name: np.array(array, order="C") for name, array in self._host_inputs.items()}
        self._outputs: Arrays = {}
        self._host_outputs: dict[str, Array] = {}

    def query(self, began: float) -> QueryTimes:
        """Run one query, and return its times since the start of the inference."""
        clock = time.perf_counter
        start_h2d = clock()
        if self._transfers:
            for name, array in self._host_inputs.items():
                np.copyto(self._inputs[name], array)
            start_compute = clock()
        else:
            start_compute = start_h2d
        self._outputs = self._runner.run(self._inputs, self.profiler)
        end_compute = clock()
        if self._transfers:
            self._fetch()
            end_d2h = clock()
        else:
            end_d2h = end_compute
        moments = (start_h2d, start_compute, end_compute, end_d2h)
        return QueryTimes(self.index, *((moment - began) * 1e3 for moment in moments))

    def fetched(self) -> Arrays:
        """Return the outputs of the last query."""
        self._fetch()
        return dict(self._host_outputs)

    def _fetch(self) -> None:
        for name, array in self._outputs.items():
            kept = self._host_outputs.get(name)
            if kept is None or kept.shape != array.shape or kept.dtype != array.dtype:
                kept = self._host_outputs[name] = np.empty_like(array, order="C", subok=False)
            np.copyto(kept, array)


class _Inference:
    """One run of all streams, in one thread or in a thread per stream."""

    def __init__(
        self, streams: Sequence[_Stream], settings: InferenceSettings, progress: ProgressMonitor | None
    ) -> None:
        self._streams = streams
        self._settings = settings
        self._progress = progress
        self._stopped = threading.Event()
        self._failures: list[BaseException] = []
        self._queries: list[list[QueryTimes]] = []
        self._began = 0.0

    def run(self) -> list[QueryTimes]:
        """Return the times of all queries, in the order of their start."""
        if self._settings.sleep_ms:
            time.sleep(self._settings.sleep_ms / 1e3)
        if self._progress is not None:
            self._progress.phase_start(PHASE, None, 0)
        try:
            self._began = time.perf_counter()
            if self._settings.threads and len(self._streams) > 1:
                self._in_threads()
            else:
                self._loop(self._streams)
        finally:
            if self._progress is not None:
                self._progress.phase_finish(PHASE)
        return sorted((one for queries in self._queries for one in queries), key=lambda one: one.start_h2d_ms)

    def _in_threads(self) -> None:
        def loop(stream: _Stream) -> None:
            try:
                self._loop([stream])
            except BaseException as error:  # noqa: BLE001  raised again in the thread of the caller
                self._failures.append(error)
                self._stopped.set()

        threads = [threading.Thread(target=loop, args=(stream,), daemon=True) for stream in self._streams]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self._stopped.set()
            for thread in threads:
                if thread.is_alive():
                    thread.join()
            raise
        if self._failures:
            raise self._failures[0]

    def _loop(self, streams: Sequence[_Stream]) -> None:
        """Run iterations of some streams until the iterations and the duration are reached, as trtexec counts them.

        Iterations of the warm-up do not count, and the duration begins after it.
        """
        settings = self._settings
        queries: list[QueryTimes] = []
        self._queries.append(queries)
        until_ms = float("inf") if settings.is_endless else settings.duration_s * 1e3 + settings.warm_up_ms
        needed, done, latest_ms = settings.iterations, 0, 0.0
        step = self._step if streams[0] is self._streams[0] else None
        while (done < needed or latest_ms < until_ms) and not self._stopped.is_set():
            for stream in streams:
                times = stream.query(self._began)
                latest_ms = max(latest_ms, times.start_compute_ms)
                if not settings.is_endless:  # nothing reports the times of a run that never ends
                    queries.append(times)
            if step is not None:
                step(done)
            done += 1
            if latest_ms < settings.warm_up_ms:
                needed += 1
            elif settings.idle_ms:
                self._stopped.wait(settings.idle_ms / 1e3)

    @property
    def _step(self) -> Callable[[int], None] | None:
        progress = self._progress
        if progress is None:
            return None

        def step(number: int) -> None:
            if not progress.step_complete(PHASE, number):
                raise ExecutionError(
                    "The progress monitor canceled the inference",
                    where=f"phase {PHASE!r}",
                    found=f"iteration {number}",
                    remedy="Run again, or let step_complete return True",
                )

        return step
