"""Calibration in shards: consecutive samples, processed wherever an executor runs its work, and merged.

The merged state is, byte for byte, what one process would have collected, because states merge exactly and an FP32
calibration engine is built without measurements.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait

import attrs

from dryfit.attrs_classes import frozen
from dryfit.calibration.executor import EngineExecutor
from dryfit.calibration.task import CalibrationTask
from dryfit.errors import CalibrationError, DryfitError
from dryfit.network.network import Network
from dryfit.quantization.calibration import Show
from dryfit.quantization.calibration_data import NamedFeeds, image_count
from dryfit.quantization.calibration_state import CalibrationState, merge_states
from dryfit.quantization.collector import Collector, require_mergeable
from dryfit.target.tactics import processor_name

SAMPLES_PER_SHARD = 16
"""How much is lost with a worker. Our choice: a shard costs about what one picture takes, which is 6 %."""

ATTEMPTS = 3
"""How often a shard is tried whose workers die."""

_SECONDS_BETWEEN_LOOKS = 0.1


@frozen
class Shard:
    """Consecutive samples that one worker processes.

    Attributes:
        number: shard number, from 1.
        count: number of shards.
        names: names of the samples.
        attempt: attempt number, from 1; higher if workers have died.
    """

    number: int
    count: int
    names: tuple[str, ...]
    attempt: int = 1

    @property
    def text(self) -> str:
        """`shard 2 of 8, samples 'cat.png' to 'dog.png'`."""
        ends = dict.fromkeys((self.names[0], self.names[-1]))
        return f"shard {self.number} of {self.count}, samples {' to '.join(map(repr, ends))}"


@frozen
class ShardResult:
    """The result that a worker returns.

    Attributes:
        state: bytes of the `CalibrationState`.
        images: number of processed images, counted along the first axis of the first input.
        processor: name of the worker's processor.
    """

    state: bytes
    images: int
    processor: str


Watch = Callable[[Shard, CalibrationState, int], None]
"""Is told of each shard that is finished, of the state with all that are, and of the shard's number of images."""


def shards_of(names: Sequence[str], samples_per_shard: int = SAMPLES_PER_SHARD) -> list[Shard]:
    """Split samples into consecutive shards of equal size; the last may be smaller.

    Raises:
        CalibrationError: A shard would have no samples.
    """
    if samples_per_shard < 1:
        raise CalibrationError(
            "A shard must have at least one sample",
            where="samples_per_shard",
            found=samples_per_shard,
            allowed="1..",
            remedy="Set `samples_per_shard` to at least 1",
        )
    parts = [tuple(names[start : start + samples_per_shard]) for start in range(0, len(names), samples_per_shard)]
    return [Shard(number, len(parts), part) for number, part in enumerate(parts, 1)]


def collect_shards(
    task: CalibrationTask,
    names: Sequence[str],
    executor: Executor,
    *,
    before: CalibrationState | None = None,
    samples_per_shard: int = SAMPLES_PER_SHARD,
    mixes_processors: bool = False,
    watch: Watch = lambda shard, state, images: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> CalibrationState:
    """Return the state that one process would have collected, from workers that each process a part.

    Errors caused by a sample or the network are raised at once. A shard whose worker dies is retried, up to `ATTEMPTS`
    times in total; finished shards are kept.

    Args:
        task: calibration task. Workers load the network and open samples themselves.
        names: names of the samples; those that `before` contains are skipped.
        executor: executor of the work: `WorkerProcesses`, a pool of `concurrent.futures`, a dask client's. It is not
            shut down.
        before: state that an earlier run collected; the result includes it.
        samples_per_shard: number of samples that a worker processes before it returns its state.
        mixes_processors: whether to accept states from different kinds of processors, whose rounding may differ; the
            result then depends on which processor got which samples.
        watch: function that is called in this thread for each finished shard, to show progress or to save the state.
        is_stopped: function that is polled a few times per second; True ends the work with the finished shards.

    Returns:
        The state; without samples and tensors if stopped before anything was finished.

    Raises:
        CalibrationError: The collector does not support merging (raised before any work), there are no samples, values
            are not finite, processors differ, or a shard was lost too often.
        ExecutionError, NetworkError: A sample does not match the network's inputs.
    """
    calibrator = task.chosen_calibrator()
    where = f"calibrator {calibrator.name!r}"
    require_mergeable(calibrator.collector, where)
    if calibrator.stream is not None:
        raise CalibrationError(
            "The calibrator provides its own samples, which cannot be divided",
            where=where,
            remedy="Choose a calibrator without its own samples",
        )
    if before is not None:
        before.require_fingerprint(task.fingerprint)
    seen = frozenset(() if before is None else before.samples)
    shards = shards_of([name for name in names if name not in seen], samples_per_shard)
    if not shards and before is None:
        raise CalibrationError(
            "Calibration requires at least one sample", where=task.source.text, remedy="Pass samples"
        )
    merged, processors = before, set[str]()
    waiting: dict[Future[ShardResult], Shard] = {}
    try:
        for shard in shards:
            waiting[_submitted(executor, task, shard)] = shard
        while waiting:
            done = wait(waiting, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED).done
            for future in sorted(done, key=_has_failed):  # what is finished is kept before anything is raised
                shard = waiting.pop(future)
                result = _result(future, shard)
                if result is None:
                    again = attrs.evolve(shard, attempt=shard.attempt + 1)
                    waiting[_submitted(executor, task, again)] = again
                    continue
                processors.add(result.processor)
                if not mixes_processors:
                    _require_one(processors, shard)
                state = _state(result, shard, task, calibrator.collector)
                merged = state if merged is None else merge_states([merged, state])
                watch(shard, merged, result.images)
            if is_stopped():
                break
    finally:
        for future in waiting:
            future.cancel()
    return CalibrationState(task.fingerprint, (), {}) if merged is None else merged


def _submitted(executor: Executor, task: CalibrationTask, shard: Shard) -> Future[ShardResult]:
    try:
        return executor.submit(gather_shard, task, shard)
    except RuntimeError as error:  # Python's word for an executor that is broken or shut down
        raise CalibrationError(
            "The executor rejected the work",
            where=shard.text,
            found=error,
            remedy="Use dryfit.calibration.worker_processes.WorkerProcesses, whose processes die one at a time",
        ) from error


def _has_failed(future: Future[ShardResult]) -> bool:
    return future.cancelled() or future.exception() is not None


def _result(future: Future[ShardResult], shard: Shard) -> ShardResult | None:
    """Return the result of a worker; None if it died and the shard will be retried.

    `gather_shard` only raises dryfit errors, so any other exception means that the worker was lost.

    Raises:
        DryfitError: The shard cannot be processed by any worker, or was lost too often.
    """
    try:
        return future.result()
    except DryfitError:
        raise
    except (CancelledError, Exception) as error:
        if shard.attempt < ATTEMPTS:
            return None
        raise CalibrationError(
            f"The worker was lost {ATTEMPTS} times",
            where=shard.text,
            found=f"{error or type(error).__name__}",
            remedy="Use fewer workers if memory is short, or inspect these samples",
        ) from error


def _require_one(processors: set[str], shard: Shard) -> None:
    if len(processors) > 1:
        raise CalibrationError(
            "All workers must have the same kind of processor, as rounding may differ",
            where=shard.text,
            found=", ".join(sorted(processors)),
            remedy="Use workers of one kind, or set mixes_processors=True",
        )


def _state(result: ShardResult, shard: Shard, task: CalibrationTask, collector: type[Collector]) -> CalibrationState:
    """Return the state that a worker sent.

    Raises:
        CalibrationError: The source did not provide the requested samples.
    """
    state = CalibrationState.from_bytes(result.state, collector, shard.text, skips_nonfinite=task.skips_nonfinite)
    if set(state.samples) != set(shard.names):
        raise CalibrationError(
            "The samples of the worker must match those of the task",
            where=shard.text,
            found=", ".join(map(repr, sorted(set(state.samples) ^ set(shard.names))[:10])),
            remedy="Make the same samples available to every worker, under the same paths",
        )
    return state


# In workers -----------------------------------------------------------------------------------------------------------


def gather_shard(task: CalibrationTask, shard: Shard) -> ShardResult:
    """Process the samples of a shard in a worker.

    Raises:
        DryfitError: See `CalibrationTask.run`; any other failure is raised as a CalibrationError.
    """
    images = 0

    def counted(samples: Iterator[NamedFeeds]) -> Iterator[NamedFeeds]:
        nonlocal images
        for name, feeds in samples:
            yield name, feeds
            images += image_count(feeds)

    try:
        network, executor = _ready(task)
        state = task.run(shard.names, watch=counted, network=network, executor=executor)
    except DryfitError:
        raise
    except Exception as error:
        failure = CalibrationError(
            "The result cannot be collected",
            where=shard.text,
            found=f"{type(error).__name__}: {error}",
            remedy="Inspect the files of the shard",
        )
        failure.add_note(traceback.format_exc())  # causes do not come back from other processes
        raise failure from error
    return ShardResult(state.to_bytes(), images, processor_name())


class _LastingExecutor:
    """An executor for one network over several shards: its engine is built once."""

    def __init__(self, num_threads: int | None) -> None:
        self._engine = EngineExecutor(num_threads)
        self._collectors: dict[str, Collector] = {}
        self._show: Show | None = None

    def __call__(self, network: Network, collectors: Mapping[str, Collector]) -> Show:
        """Return a function that shows samples to these collectors, which observe the same tensors each time."""
        self._collectors.update(collectors)
        if self._show is None:
            self._show = self._engine(network, self._collectors)
        return self._show


_kept = threading.local()
"""What this thread has made ready last, so that its next shard finds it."""


def _ready(task: CalibrationTask) -> tuple[Network, _LastingExecutor]:
    """Return the network of a task and its executor."""
    key = hashlib.sha256(pickle.dumps(task)).digest()
    if getattr(_kept, "key", None) != key:
        _kept.key = None
        _kept.pair = task.load(), _LastingExecutor(task.num_threads)
        _kept.key = key
    pair: tuple[Network, _LastingExecutor] = _kept.pair
    return pair
