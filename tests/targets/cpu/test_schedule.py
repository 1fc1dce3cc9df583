"""Schedules: order, threads, several at once, and the end of the process."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dryfit.target.kernels import CallableStep
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels.copying import pointwise_work
from dryfit_cpu.schedule import create_schedule
from dryfit_cpu.steps import _FUNCTION, NativeStep
from dryfit_cpu.threads import HelperThreads

ELEMENTS = 40_000


def doubling(name, arrays, threads):
    """Native steps that each add an array to itself into the next."""
    return [
        NativeStep(f"{name}{index}", pointwise_work(codes.SUM, [a, a], b, threads), [a, b])
        for index, (a, b) in enumerate(itertools.pairwise(arrays))
    ]


def chain(length, threads, seed=0):
    """A schedule that doubles random numbers `length` times, and its first and last array."""
    arrays = [np.empty(ELEMENTS, np.float32) for _ in range(length + 1)]
    arrays[0][...] = np.random.default_rng(seed).standard_normal(ELEMENTS)
    return create_schedule(doubling("step", arrays, threads), threads), arrays[0], arrays[-1]


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_steps_run_in_order_whatever_the_number_of_threads(threads):
    schedule, first, last = chain(30, threads)
    for _ in range(20):
        last[...] = 0
        schedule.run()
        np.testing.assert_array_equal(last, first * np.float32(2**30))


@pytest.mark.parametrize("threads", [1, 2])
def test_python_steps_run_between_native_ones(threads):
    arrays = [np.empty(ELEMENTS, np.float32) for _ in range(4)]
    arrays[0][...] = 1
    first, _, last = doubling("step", arrays, threads)
    middle = CallableStep("python", lambda: np.add(arrays[1], 5, out=arrays[2]))
    schedule = create_schedule([first, middle, last], threads)
    schedule.run()
    np.testing.assert_array_equal(arrays[3], np.full(ELEMENTS, 14, np.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_observer_hears_of_each_step_once_in_order(threads):
    arrays = [np.ones(ELEMENTS, np.float32) for _ in range(4)]
    steps = [*doubling("native", arrays, threads), CallableStep("python", lambda: None)]
    schedule = create_schedule(steps, threads)
    heard = []
    for _ in range(2):
        schedule.run(lambda name, seconds: heard.append((name, seconds)))
    assert [name for name, _ in heard] == ["native0", "native1", "native2", "python"] * 2
    assert all(seconds >= 0 for _, seconds in heard)
    np.testing.assert_array_equal(arrays[3], np.full(ELEMENTS, 8, np.float32))


def test_an_error_in_a_python_step_reaches_the_caller_and_the_schedule_can_run_again():
    calls = []

    def fail_once():
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("first time")

    schedule = create_schedule([CallableStep("python", fail_once)], 2)
    with pytest.raises(ValueError, match="first time"):
        schedule.run()
    schedule.run()
    assert len(calls) == 2


def test_an_empty_schedule_does_nothing():
    create_schedule([], 2).run()


def test_schedules_in_many_threads_do_not_disturb_each_other():
    schedules = [chain(12, 1 + index % 3, seed=index) for index in range(6)]
    wrong = []

    def work(schedule, first, last):
        for _ in range(30):
            last[...] = 0
            schedule.run()
            if not np.array_equal(last, first * np.float32(2**12)):
                wrong.append(1)

    callers = [threading.Thread(target=work, args=schedule) for schedule in schedules]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_one_schedule_called_from_several_threads_runs_one_at_a_time():
    running, most = [], []
    lock = threading.Lock()

    def note():
        with lock:
            running.append(1)
            most.append(len(running))
        threading.Event().wait(0.005)
        with lock:
            running.pop()

    schedule = create_schedule([CallableStep("python", note)], 2)
    callers = [threading.Thread(target=schedule.run) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert max(most) == 1
    assert len(most) == 4


def test_work_begins_when_every_chunk_of_the_work_before_is_done_whoever_does_it():
    first_may_end, second_ended, log = threading.Event(), threading.Event(), []

    def chunk(row, index, chunks):
        assert chunks == 2
        if (row, index) == (0, 0):
            assert first_may_end.wait(30)
        log.append((row, index))
        if (row, index) == (0, 1):
            second_ended.set()
        return 0

    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(chunk)
    address = ctypes.cast(function, ctypes.c_void_p).value
    table = np.array([[address, row, 2] for row in (0, 1)], np.int64)
    counters = np.zeros(32, np.int64)
    counters[[0, 16]] = 5 << 32
    run = NativeFunction("dispatch", "run")
    work = run.work(1, table=table.ctypes.data, rows=2, counters=counters.ctypes.data)
    threads = [
        threading.Thread(target=_FUNCTION(run.address), args=(work.descriptor.ctypes.data, 5, 2)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    assert second_ended.wait(30)
    time.sleep(0.05)
    early = list(log)
    first_may_end.set()
    for thread in threads:
        thread.join(30)
    assert early == [(0, 1)]
    assert sorted(log) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_job_of_a_past_generation_changes_nothing():
    arrays = [np.ones(ELEMENTS, np.float32) for _ in range(2)]
    (step,) = doubling("step", arrays, 2)
    run = NativeFunction("dispatch", "run")
    table = np.array([[w.function, w.descriptor.ctypes.data, w.chunks] for w in step.work], np.int64)
    counters = np.zeros(32, np.int64)
    counters[0] = 7 << 32
    late = run.work(1, table=table.ctypes.data, rows=1, counters=counters.ctypes.data)
    _FUNCTION(run.address)(late.descriptor.ctypes.data, 6, 2)
    np.testing.assert_array_equal(arrays[1], np.ones(ELEMENTS, np.float32))
    assert counters[0] == 7 << 32
    _FUNCTION(run.address)(late.descriptor.ctypes.data, 7, 2)
    np.testing.assert_array_equal(arrays[1], np.full(ELEMENTS, 2, np.float32))


def test_generations_begin_again_after_the_last():
    schedule, first, last = chain(3, 2)
    (run,) = schedule._runs
    run._generation = 2**31 - 2
    for _ in range(4):
        last[...] = 0
        schedule.run()
        np.testing.assert_array_equal(last, first * np.float32(8))


def test_helpers_take_jobs_and_stop():
    helpers = HelperThreads()
    seen = threading.Semaphore(0)
    helpers.ask(seen.release, 3)
    for _ in range(3):
        assert seen.acquire(timeout=10)
    threads = list(helpers._threads)
    helpers.stop()
    assert len(threads) == 3
    assert not any(thread.is_alive() for thread in threads)


PROGRAM = """
import os, sys
import numpy as np
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.schedule import create_schedule
from dryfit_cpu.steps import NativeStep

def run():
    x, y = np.arange(100_000, dtype=np.float32), np.zeros(100_000, np.float32)
    schedule = create_schedule([NativeStep("copy", copy_work(x, y, 2))], 2)
    for _ in range(20):
        schedule.run()
    assert (x == y).all()

run()
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("done")
"""


@pytest.mark.parametrize(
    "how", ["plain", pytest.param("fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"))]
)
def test_a_process_with_helpers_ends_and_forks_cleanly(how):
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, how], capture_output=True, text=True, check=False, timeout=120
    )
    assert (found.returncode, found.stdout.strip(), found.stderr) == (0, "done", "")
