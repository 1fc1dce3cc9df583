"""Forks while other threads run: the child can use what it inherited, and gives the same bits."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

HEAD = """
import os, signal, sys, threading, time
import numpy as np
from tests.core.engine.small_networks import convolution_network
from dryfit.building import Builder
from dryfit.builder.config.builder_config import BuilderConfig

def in_child(work):
    # Exit code of a child that does some work; a hang ends by a signal.
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitpid(pid, 0)[1]

engine = Builder().build_engine(convolution_network(2), BuilderConfig())
x = np.random.default_rng(0).random((2, 3, 8, 8), np.float32)
expected = engine.create_execution_context(1).run(x)["y"]

def check(context):
    for _ in range(20):
        assert context.run(x)["y"].tobytes() == expected.tobytes()
"""

RUNNING = """
context, stopped = engine.create_execution_context(2), []
def go_on():
    while not stopped:
        context.run(x)
thread = threading.Thread(target=go_on)
thread.start()
def work():
    check(context)
    check(engine.create_execution_context(2))
found = [in_child(work) for _ in range(12)]
stopped.append(True)
thread.join()
assert found == [0] * 12, found
check(context)
"""

HELD = """
# Each lock is surely held by another thread at the fork.
from dryfit.builder.refit.refitter import Refitter
from dryfit.engine import segment_program
from dryfit.plugins import registry
from dryfit_cpu.compiler import machine, native
context = engine.create_execution_context(2)
check(context)
schedules = [part for binding in context._bindings.values() for part in binding._parts if hasattr(part, "_lock")]
assert schedules
hooks = registry.hooks
safe = [engine.refit_lock, segment_program._lock, native._LOCK, machine._LOCK]
locks = [context._lock, hooks._loading, *(one._lock for one in (*schedules, *safe))]
held, free = threading.Event(), threading.Event()
def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    free.wait()
    for lock in reversed(locks):
        lock.release()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
def work():
    check(context)
    for one in safe:
        with one:
            pass
    assert isinstance(hooks.failed, frozenset)
    for one in schedules:
        one.run()
status = in_child(work)
free.set()
thread.join()
assert status == 0, status
check(context)
"""

IN_A_RUN = """
# A fork from within a run, by the thread that runs.
context = engine.create_execution_context(2)
with context._lock:
    status = in_child(lambda: check(context))
assert status == 0, status
"""

SLICED = """
# Threads that run slices of a batch are the process's, and a child has none of them.
from dryfit.engine import batch_slices
batch_slices.SLICE_BYTES = 1
context = engine.create_execution_context(2)
check(context)
(bound,) = context._bindings.values()
assert len(bound.stretches[0].lanes) == 2
def work():
    check(context)
    check(engine.create_execution_context(2))
found = [in_child(work) for _ in range(4)]
assert found == [0] * 4, found
check(context)
"""


@pytest.mark.parametrize("program", [RUNNING, HELD, IN_A_RUN, SLICED], ids=["running", "held", "in a run", "sliced"])
def test_a_child_can_run_what_another_thread_was_running(program):
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + program + "print('done')"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (found.returncode, found.stdout.strip()) == (0, "done"), found.stderr
