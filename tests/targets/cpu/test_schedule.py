"""Schedules: order, threads, several at once, and the end of the process."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from dryfit.target.kernels import CallableStep
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.kernels.copying import pointwise_work
from dryfit_cpu.schedule import HelperThreads, Team, create_schedule

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


class NobodyComes(HelperThreads):
    """Helpers that never come."""

    def ask(self, job, helpers):
        """Do nothing."""


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
    schedules = [chain(12, 1 + index % 5, seed=index) for index in range(8)]
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


def logged_work(chunks, rows, call):
    """Work whose chunks call `call(row, chunk)`, and what has to be kept for it."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

    def chunk(descriptor, index, count):
        assert count == chunks
        call(ctypes.c_int64.from_address(descriptor).value, index)
        return 0

    function = kind(chunk)
    address = ctypes.cast(function, ctypes.c_void_p).value
    work = [Work(NativeFunction("dispatch", "lead"), {}, chunks) for _ in range(rows)]
    for row, one in enumerate(work):
        one.function, one.descriptor = address, np.array([row], np.int64)
    return work, function


def test_work_begins_when_every_chunk_of_the_work_before_is_done_whoever_does_it():
    first_may_end, second_ended, log = threading.Event(), threading.Event(), []

    def call(row, index):
        if (row, index) == (0, 0):
            assert first_may_end.wait(30)
        log.append((row, index))
        if (row, index) == (0, 1):
            second_ended.set()

    work, keep = logged_work(2, 2, call)
    team = Team(2)
    leader = threading.Thread(target=team.run, args=(team.entry(work),))
    leader.start()
    assert second_ended.wait(30)
    time.sleep(0.05)
    early = list(log)
    first_may_end.set()
    leader.join(30)
    assert keep
    assert early == [(0, 1)]
    assert sorted(log) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_each_thread_runs_its_own_share_of_neighbouring_chunks_first():
    together, log = threading.Barrier(2), []

    def call(row, index):
        together.wait(30)
        log.append((row, index, threading.get_ident()))

    work, keep = logged_work(4, 3, call)
    team = Team(2)
    team.run(team.entry(work))
    assert keep
    by_chunk = {(row, index): thread for row, index, thread in log}
    assert len(by_chunk) == len(log) == 12
    leader = threading.get_ident()
    assert all((thread == leader) == (index < 2) for (_, index), thread in by_chunk.items())


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("chunks", [1, 2, 7, 12])
def test_a_leader_whose_helpers_do_not_come_runs_every_chunk_once(threads, chunks):
    log = []
    work, keep = logged_work(chunks, 2, lambda row, index: log.append((row, index)))
    team = Team(threads, NobodyComes())
    entry = team.entry(work)
    for _ in range(3):
        log.clear()
        team.run(entry)
        assert log == [(row, index) for row in range(2) for index in range(chunks)]
    assert keep


def test_who_comes_when_the_run_has_ended_changes_nothing():
    log = []
    work, keep = logged_work(3, 2, lambda row, index: log.append((row, index)))
    team = Team(2, NobodyComes())
    entry = team.entry(work)
    team.run(entry)
    team.run(entry)
    log.clear()
    team.follow()
    assert not log
    team.run(entry)
    assert len(log) == 6
    assert keep


def test_a_helper_stays_for_the_next_run_and_leaves_when_others_ask(monkeypatch):
    monkeypatch.setattr("dryfit_cpu.schedule._PATIENCE", 10**12)
    monkeypatch.setattr("dryfit_cpu.schedule.usable_processors", lambda: 2)
    helpers, together, threads = HelperThreads(), threading.Barrier(2), set()

    def call(row, index):
        together.wait(30)
        threads.add(threading.get_ident())

    work, keep = logged_work(2, 2, call)
    team = Team(2, helpers)
    entry = team.entry(work)
    for _ in range(5):
        team.run(entry)
    assert helpers._jobs.qsize() == 0
    assert len(threads) == 2
    assert team._members.value == 1
    other = threading.Event()
    helpers.ask(other.set, 1)
    assert other.wait(30)
    helpers.stop()
    assert team._members.value == 0
    assert keep


def test_a_helper_that_watches_for_work_ends_when_helpers_stop(monkeypatch):
    monkeypatch.setattr("dryfit_cpu.schedule._PATIENCE", 10**12)
    monkeypatch.setattr("dryfit_cpu.schedule.usable_processors", lambda: 2)
    helpers, together = HelperThreads(), threading.Barrier(2)
    work, keep = logged_work(2, 1, lambda row, index: together.wait(30))
    team = Team(2, helpers)
    team.run(team.entry(work))
    (thread,) = helpers._threads
    helpers.stop()
    assert not thread.is_alive()
    assert keep


def test_a_helper_that_nobody_needs_goes_to_sleep(monkeypatch):
    monkeypatch.setattr("dryfit_cpu.schedule._PATIENCE", 100)
    helpers, together, ended = HelperThreads(), threading.Barrier(2), threading.Event()
    work, keep = logged_work(2, 1, lambda row, index: together.wait(30))
    team = Team(2, helpers)
    follow = team.follow
    monkeypatch.setattr(team, "follow", lambda: (follow(), ended.set()))
    team.run(team.entry(work))
    assert ended.wait(30)
    assert team._members.value == 0
    team.run(team.entry(work))
    helpers.stop()
    assert keep


def test_the_memory_of_a_schedule_is_free_when_nobody_holds_it():
    schedule, first, _ = chain(3, 2)
    for _ in range(3):
        schedule.run()
    gone = weakref.ref(first)
    del schedule, first, _
    assert gone() is None


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
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.schedule import HELPERS

x, y = np.arange(100_000, dtype=np.float32), np.zeros(100_000, np.float32)
schedule = create_schedule([NativeStep("copy", copy_work(x, y, 2))], 2)

def run():
    for _ in range(20):
        y[...] = 0
        schedule.run()
        assert (x == y).all()

run()
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        run()
        if not HELPERS._threads:
            os._exit(3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    run()
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
