"""Worker processes: each dies alone, and errors come back as they were raised."""

import contextlib
import os
import signal
import time
from concurrent.futures import BrokenExecutor

import pytest
from tests.core.builder.shard_work import end_by_signal, fail, unsendable, wait_for

from dryfit.calibration.worker_processes import WorkerProcesses
from dryfit.errors import CalibrationError, UnknownNameError


@pytest.fixture(scope="module")
def workers():
    with WorkerProcesses(2) as started:
        yield started


def until(is_true, seconds=30.0):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_killed_process_fails_its_own_call_only(workers, tmp_path):
    go = tmp_path / "go"
    other = workers.submit(wait_for, go)
    until(go.with_suffix(".waits").exists)
    with pytest.raises(BrokenExecutor, match="The worker process was ended by SIGKILL"):
        workers.submit(end_by_signal, signal.SIGKILL).result(30)
    assert workers.submit(pow, 2, 10).result(30) == 1024
    go.touch()
    assert other.result(30) != os.getpid()


def test_an_exit_is_told_with_its_status(workers):
    with pytest.raises(BrokenExecutor, match="ended with exit status 3"):
        workers.submit(os._exit, 3).result(30)


def test_ctrl_c_does_not_end_a_worker(workers):
    assert workers.submit(end_by_signal, signal.SIGINT).result(30) == "alive"


@pytest.mark.parametrize(
    "error",
    [
        CalibrationError("Wrong", where="here", found=3, remedy="Mend it"),
        UnknownNameError("calibrator", "entropy3", {"entropy2"}),
        KeyError("x"),
    ],
)
def test_errors_come_back_as_they_were_raised(workers, error):
    with pytest.raises(type(error)) as raised:
        workers.submit(fail, error).result(30)
    assert (str(raised.value), vars(raised.value)) == (str(error), vars(error))


def test_a_result_that_cannot_be_sent_is_an_error_and_the_process_lives_on(workers):
    message = "Can't (pickle|get) local object"  # Python's word differs between versions
    with pytest.raises(Exception, match=message):
        workers.submit(unsendable).result(30)
    with pytest.raises(Exception, match=message):
        workers.submit(pow, lambda: None, 2).result(30)
    assert workers.submit(pow, 3, 2).result(30) == 9


def test_each_process_is_initialised_and_nothing_is_taken_after_the_end():
    with WorkerProcesses(1, initializer=_set_mark) as started:
        assert started.submit(os.getenv, "DRYFIT_TEST_MARK").result(30) == "set"
        number = started.submit(os.getpid).result(30)
    until(lambda: not _is_running(number))
    with pytest.raises(RuntimeError, match="after shutdown"):
        started.submit(pow, 2, 2)


def test_an_exception_ends_work_that_goes_on(tmp_path):
    go = tmp_path / "go"
    started = WorkerProcesses(1)
    number = started.submit(os.getpid).result(30)
    running, queued = started.submit(wait_for, go), started.submit(pow, 2, 2)
    until(go.with_suffix(".waits").exists)
    with contextlib.suppress(KeyboardInterrupt), started:
        raise KeyboardInterrupt
    assert isinstance(running.exception(), BrokenExecutor)
    assert queued.cancelled()
    assert not _is_running(number)


def test_ending_without_waiting_lets_calls_finish():
    started = WorkerProcesses(1)
    first = started.submit(os.getpid)
    started.shutdown(wait=False)
    number = first.result(30)
    until(lambda: not _is_running(number))


def _set_mark():
    os.environ["DRYFIT_TEST_MARK"] = "set"


def _is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True
