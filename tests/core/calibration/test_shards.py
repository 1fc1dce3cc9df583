"""Calibration in shards: the bytes of one process, whatever is lost on the way."""

import itertools
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.builder.shard_work import TENSORS, Pictures, network, network_that_is_not_to_be_loaded

from dryfit.calibration import shards
from dryfit.calibration.calibrate import calibrate, calibrate_shards
from dryfit.calibration.shards import collect_shards, shards_of
from dryfit.calibration.task import CalibrationTask
from dryfit.calibration.worker_processes import WorkerProcesses
from dryfit.errors import CalibrationError
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Histogram

COUNT = 9


def solve(histogram):
    return Solution.of_threshold(histogram.magnitude)


CALIBRATOR = Calibrator(name="largest", title="", solve=solve)


class Unmergeable(Histogram):
    is_mergeable = False


def task(source=None, **fields):
    """A task that every process can take."""
    given = {"load": network, "calibrator": CALIBRATOR, "fingerprint": {"model": "sharded"}, "num_threads": 1}
    return CalibrationTask(source=source or Pictures(COUNT), **{**given, **fields})


NAMES = Pictures(COUNT).names(None)


@pytest.fixture(scope="module")
def whole():
    """What one process gathers."""
    state = task().run(NAMES)
    assert list(state.collectors) == TENSORS
    return state.to_bytes()


@pytest.fixture(scope="module")
def workers():
    with WorkerProcesses(2) as started:
        yield started


@settings(deadline=None, max_examples=10)
@given(size=st.integers(1, COUNT + 1), threads=st.integers(1, 3), before=st.integers(0, COUNT))
def test_every_cut_gives_the_bytes_of_one_process(whole, size, threads, before):
    kept = task().run(NAMES[before // 2 : before]) if before > 1 else None
    with ThreadPoolExecutor(threads) as pool:
        assert collect_shards(task(), NAMES, pool, before=kept, samples_per_shard=size).to_bytes() == whole


def test_processes_give_the_bytes_of_one(whole, workers):
    assert collect_shards(task(), NAMES, workers, samples_per_shard=2).to_bytes() == whole


def test_python_s_pool_of_processes_does_as_well(whole):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert collect_shards(task(), NAMES, pool, samples_per_shard=4).to_bytes() == whole


def test_the_ranges_are_those_of_one_process(workers):
    found = calibrate_shards(network, CALIBRATOR, Pictures(COUNT), workers, samples_per_shard=3)
    source = Pictures(COUNT)
    assert found == calibrate(network(), CALIBRATOR, source.samples(NAMES, network()), num_threads=1)
    assert list(found) == TENSORS


def test_a_killed_worker_loses_its_shard_only(whole, workers, tmp_path):
    source = Pictures(COUNT, tmp_path, deadly="04", deaths=2)
    told = []
    state = collect_shards(task(source), NAMES, workers, samples_per_shard=3, watch=lambda *one: told.append(one))
    assert state.to_bytes() == whole
    assert {name: len(source.tellings(name)) for name in NAMES} == {
        name: 3 if name in ("03", "04") else 1 for name in NAMES
    }
    assert {(shard.number, shard.attempt, images) for shard, _, images in told} == {(1, 1, 4), (2, 3, 5), (3, 1, 4)}


def test_a_shard_that_always_kills_is_given_up_and_named(workers, tmp_path):
    source = Pictures(COUNT, tmp_path, deadly="04", deaths=9)
    told = []
    message = r"shard 2 of 3, samples '03' to '05': The worker was lost 3 times \(found The worker process was ended by"
    with pytest.raises(CalibrationError, match=message):
        collect_shards(task(source), NAMES, workers, samples_per_shard=3, watch=lambda *one: told.append(one[1]))
    assert len(source.tellings("04")) == 3
    assert set(told[-1].samples) <= set(NAMES) - {"03", "04", "05"}


def test_a_pool_that_is_broken_as_a_whole_is_told_with_what_to_do(tmp_path):
    source = Pictures(COUNT, tmp_path, deadly="00")
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(CalibrationError, match=r"shard \d of 3.*The executor rejected the work.*Use .*WorkerProcesses"),
    ):
        collect_shards(task(source), NAMES, pool, samples_per_shard=3)


def test_what_a_sample_is_to_blame_for_is_told_at_once(workers, tmp_path):
    source = Pictures(COUNT, tmp_path, nan="05")
    with pytest.raises(CalibrationError, match=r"tensor 'x', sample '05': Values must be finite"):
        collect_shards(task(source), NAMES, workers, samples_per_shard=3)
    assert len(source.tellings("05")) == 1


def test_skipped_values_are_counted_over_all_shards(workers):
    skipping = task(Pictures(COUNT, nan="05"), skips_nonfinite=True)
    merged = collect_shards(skipping, NAMES, workers, samples_per_shard=3)
    assert merged.to_bytes() == skipping.run(NAMES).to_bytes()
    assert merged.collectors["x"].skipped == 1


def test_what_a_source_raises_comes_back_with_its_traceback(workers):
    with pytest.raises(CalibrationError, match=r"shard 2 of 3, .*found ZeroDivisionError: no picture") as raised:
        collect_shards(task(Pictures(COUNT, broken="05")), NAMES, workers, samples_per_shard=3)
    assert "shard_work.py" in raised.value.__notes__[0]


def test_a_worker_that_sees_other_samples_is_refused(workers):
    with pytest.raises(CalibrationError, match=r"shard 2 of 3, .*samples of the worker must match.*found '05'"):
        collect_shards(task(Pictures(COUNT, lost="05")), NAMES, workers, samples_per_shard=3)


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (attrs.evolve(CALIBRATOR, collector=Unmergeable), r"calibrator 'largest': The states of this collector cannot"),
        (attrs.evolve(CALIBRATOR, stream=object), r"calibrator 'largest': The calibrator provides its own samples"),
    ],
)
def test_what_cannot_be_divided_is_refused_before_any_work(calibrator, message):
    refused = task(calibrator=calibrator, load=network_that_is_not_to_be_loaded)
    with pytest.raises(CalibrationError, match=message):
        collect_shards(refused, NAMES, None)


def test_no_samples_and_empty_shards_are_refused():
    with pytest.raises(CalibrationError, match="Calibration requires at least one sample"):
        collect_shards(task(), [], None)
    with pytest.raises(CalibrationError, match=r"samples_per_shard: A shard must have at least one sample \(found 0"):
        shards_of(NAMES, 0)


class RunsSome(Executor):
    """Runs the first calls at once, and never the others."""

    def __init__(self, count):
        self.left = count

    def submit(self, function, /, *arguments, **options):
        future = Future()
        if self.left:
            future.set_result(function(*arguments, **options))
            self.left -= 1
        return future


def test_stopping_keeps_finished_shards_and_going_on_gives_the_same_bytes(whole, workers):
    first = collect_shards(task(), NAMES, RunsSome(2), samples_per_shard=2, is_stopped=lambda: True)
    assert set(first.samples) == set(NAMES[:4])
    assert collect_shards(task(), NAMES, workers, before=first, samples_per_shard=2).to_bytes() == whole


def test_stopping_before_anything_is_finished_gives_an_empty_state():
    found = collect_shards(task(), NAMES, RunsSome(0), is_stopped=lambda: True)
    assert (found.samples, found.collectors) == ((), {})


def test_nothing_runs_where_all_was_seen_before(whole):
    assert collect_shards(task(), NAMES, RunsSome(0), before=task().run(NAMES)).to_bytes() == whole


def test_a_state_of_another_calibration_is_not_gone_on_with(workers):
    before = attrs.evolve(task(), fingerprint={"model": "other"}).run(NAMES[:1])
    with pytest.raises(CalibrationError, match="The state belongs to another calibration"):
        collect_shards(task(), NAMES, workers, before=before)


def test_processors_of_several_kinds_are_refused_unless_permitted(whole, monkeypatch):
    kinds = itertools.cycle(["old processor", "new processor"])
    monkeypatch.setattr(shards, "processor_name", lambda: next(kinds))
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(CalibrationError, match="found new processor, old processor"):
            collect_shards(task(), NAMES, pool, samples_per_shard=5)
        permitted = collect_shards(task(), NAMES, pool, samples_per_shard=5, mixes_processors=True)
    assert permitted.to_bytes() == whole
