"""Who waits for whom: order on a core and between cores, cancellation, failures, and circles that are refused."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.targets.dla.runtime.loadables import affine, memory_of, numbers, result_of, task_of

from dryfit_dla.runtime import Board, DlaError, Event, Status, Task

SOON = 30  # seconds after which something that has to happen is taken to hang


@pytest.fixture
def board():
    with Board("agx-orin-64") as board:
        yield board


def refused(status, call, *arguments, **options):
    """The text of the error with this status."""
    with pytest.raises(DlaError) as caught:
        call(*arguments, **options)
    assert caught.value.status is status
    return str(caught.value)


def chained(devices, loadables, values):
    """Tasks, each of which reads what the one before it wrote, and the buffer that the last one writes."""
    tensor = devices[0].load(loadables[0]).input_attributes[0]
    buffers = [memory_of(tensor, values), *(memory_of(tensor) for _ in loadables)]
    registered = {(device, index): device.register(one) for device in set(devices) for index, one in enumerate(buffers)}
    tasks = [
        Task(device.load(loadable), [registered[device, index]], [registered[device, index + 1]])
        for index, (device, loadable) in enumerate(zip(devices, loadables, strict=True))
    ]
    return tasks, lambda: tensor.read(buffers[-1])


STAGES = [affine, lambda: affine(1.0, 3.0), affine, lambda: affine(-1.0, 0.5)]


def through_stages(x):
    """What the stages make of x; in another order they make something else."""
    return -((x * 2 + 1 + 3) * 2 + 1) + np.float16(0.5)


def test_a_core_runs_what_it_is_given_in_order(board):
    device = board.device()
    tasks, result = chained([device] * 4, [stage() for stage in STAGES], numbers())
    submissions = [device.submit(tasks[0]), device.submit(tasks[1:3]), device.submit(tasks[3])]
    assert submissions[-1].wait(SOON)
    assert all(submission.status is Status.SUCCESS for submission in submissions)
    np.testing.assert_array_equal(result(), through_stages(numbers()))


def test_events_order_cores_though_the_last_was_submitted_first(board):
    devices = [board.device(index % 2) for index in range(4)]
    tasks, result = chained(devices, [stage() for stage in STAGES], numbers(3))
    written = [Event(f"stage {index}") for index in range(4)]
    ends = {}
    for index in (1, 3, 0, 2):  # core 1 first
        wait = [written[index - 1]] if index else []
        ends[index] = devices[index].submit(tasks[index], wait=wait, signal=[written[index]])
    assert ends[3].wait(SOON)
    assert all(event.is_signalled for event in written)
    np.testing.assert_array_equal(result(), through_stages(numbers(3)))


def test_a_submission_waits_for_all_its_events_and_then_says_that_it_started(board):
    task = task_of(board.device().load(affine()))
    gates = [Event(), Event()]
    submission = board.device().submit(task, wait=gates)
    gates[1].signal()
    assert submission.wait(0) is False
    assert submission.status is None
    assert (task.outputs[0].data == 0xA5).all()
    assert not submission.started.is_signalled
    gates[0].signal()
    assert submission.wait(SOON)
    assert submission.started.is_signalled
    np.testing.assert_array_equal(result_of(task), numbers() * 2 + 1)


def test_a_submission_without_tasks_joins_events(board):
    gates, joined = [Event(), Event()], Event()
    board.device(0).submit([], wait=gates, signal=[joined])
    after = board.device(1).submit([], wait=[joined])
    gates[0].signal()
    assert after.wait(0) is False
    gates[1].signal()
    assert after.wait(SOON)


def test_synchronize_waits_for_what_was_submitted_and_not_longer_than_asked(board):
    device, gate = board.device(), Event()
    assert device.synchronize() is True
    device.submit([], wait=[gate])
    assert device.synchronize(0.01) is False
    gate.signal()
    assert device.synchronize(SOON) is True


def test_an_event_is_signalled_once_by_one_signaller(board):
    device, event = board.device(), Event("frame")
    device.submit([], signal=[event]).wait()
    assert "<Event 'frame', signalled>" in refused(Status.INVALID_PARAM, device.submit, [], signal=[event])
    assert refused(Status.INVALID_PARAM, event.signal)
    assert refused(Status.INVALID_PARAM, device.submit, [], signal=[fresh := Event(), fresh])
    own = Event()
    own.signal()
    assert refused(Status.INVALID_PARAM, own.signal)
    submission = device.submit([], wait=[own])
    assert submission.wait(SOON)
    assert refused(Status.INVALID_PARAM, submission.finished.signal)


def test_twenty_nine_events_can_be_waited_for_and_signalled_and_not_one_more(board):
    device = board.device()
    for role in ("wait", "signal"):
        text = refused(Status.UNSUPPORTED_OPERATION, device.submit, [], **{role: [Event() for _ in range(30)]})
        assert f"A submission can {'wait for' if role == 'wait' else role} at most 29 events" in text
    gates, signals = [Event() for _ in range(29)], [Event() for _ in range(29)]
    device.submit([], wait=gates, signal=signals)
    for gate in gates:
        gate.signal()
    assert all(event.wait(SOON) for event in signals)


def test_what_is_no_event_is_refused(board):
    device = board.device()
    submission = device.submit([])
    assert "pass its `finished` event" in refused(Status.INVALID_PARAM, device.submit, [], wait=[submission])
    assert "found str" in refused(Status.INVALID_PARAM, device.submit, [], signal=["ready"])


# Cancellation and failure ---------------------------------------------------------------------------------------------


def test_cancelling_takes_everything_back_that_waits_for_it_and_leaves_the_rest(board):
    first, second = board.devices
    task, other = task_of(first.load(affine())), task_of(second.load(affine()))
    gate, written = Event(), Event()
    held = first.submit(task, wait=[gate], signal=[written])
    dependent = second.submit(other, wait=[written])
    behind = second.submit([])
    assert held.cancel() is True
    assert held.cancel() is True
    assert behind.wait(SOON)
    assert (held.status, dependent.status, behind.status) == (Status.CANCELLED, Status.CANCELLED, Status.SUCCESS)
    assert "cancelled" in refused(Status.CANCELLED, written.wait, SOON)
    assert "an event that it waits for" in refused(Status.CANCELLED, dependent.wait, SOON)
    assert written.error.status is Status.CANCELLED
    assert (task.outputs[0].data == 0xA5).all()
    assert (other.outputs[0].data == 0xA5).all()
    task.module.unload()
    assert first.synchronize()
    assert second.synchronize()


def test_what_has_begun_or_ended_is_not_cancelled(board):
    device = board.device()
    task = task_of(device.load(affine()))
    begun, go_on = threading.Event(), threading.Event()
    execute = task.module.execute

    def slowly(*memories):
        begun.set()
        assert go_on.wait(SOON)
        execute(*memories)

    task.module.execute = slowly
    submission = device.submit(task)
    assert begun.wait(SOON)
    assert submission.cancel() is False
    assert "The module is in use" in refused(Status.DLA_PROCESSOR_BUSY, task.module.unload)
    go_on.set()
    assert submission.wait(SOON)
    assert submission.cancel() is False
    np.testing.assert_array_equal(result_of(task), numbers() * 2 + 1)


def test_a_task_that_fails_is_told_to_all_who_wait_and_the_core_goes_on(board):
    first, second = board.devices
    task = task_of(first.load(affine()))
    bad, written = task_of(first.load(affine(1.0, 3.0))), Event()

    def fail(*memories):
        raise ZeroDivisionError("planted")

    bad.module.execute = fail
    failed = first.submit([bad, task], signal=[written])
    dependent = second.submit([], wait=[written])
    behind = first.submit(task)
    text = refused(Status.UNKNOWN, failed.wait, SOON)
    assert "DLA core 0 of agx-orin-64, module 'affine, segment 0'" in text
    assert "ZeroDivisionError: planted" in text
    assert refused(Status.UNKNOWN, dependent.wait, SOON)
    assert behind.wait(SOON)
    assert "planted" in refused(Status.UNKNOWN, first.synchronize)
    assert first.synchronize(), "it was told once"
    assert refused(Status.UNKNOWN, second.synchronize)


def test_closing_cancels_what_waits_and_finishes_what_runs():
    board = Board("agx-orin-64")
    task = task_of(board.device().load(affine()))
    begun, never = threading.Event(), Event()
    execute = task.module.execute

    def begin(*memories):
        begun.set()
        execute(*memories)

    task.module.execute = begin
    running = board.device().submit(task)
    waiting = [board.device(core).submit([], wait=[never]) for core in (0, 1, 0)]
    assert begun.wait(SOON)
    board.close()
    assert running.status is Status.SUCCESS
    assert [one.status for one in waiting] == [Status.CANCELLED] * 3
    np.testing.assert_array_equal(result_of(task), numbers() * 2 + 1)


def test_a_program_ends_though_a_submission_still_waits():
    program = "from dryfit_dla.runtime import Board, Event\nBoard().device().submit([], wait=[Event()])\nprint('end')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=SOON)
    assert done.stdout == "end\n"


# Circles --------------------------------------------------------------------------------------------------------------


def test_a_submission_that_would_wait_for_itself_is_refused_and_its_events_stay_free(board):
    first, second = board.devices
    a, b = Event("a"), Event("b")
    assert refused(Status.UNSUPPORTED_OPERATION, first.submit, [], wait=[a], signal=[a])
    held = first.submit([], wait=[a], signal=[b])
    text = refused(Status.UNSUPPORTED_OPERATION, first.submit, [], signal=[a])
    assert "found <Event 'a', pending>" in text
    assert "Submit it before the submissions that wait" in text
    assert refused(Status.UNSUPPORTED_OPERATION, second.submit, [], wait=[b], signal=[a])
    assert refused(Status.UNSUPPORTED_OPERATION, second.submit, [], wait=[held.finished], signal=[a])
    assert refused(Status.UNSUPPORTED_OPERATION, second.submit, [], wait=[held.started], signal=[a])
    second.submit([], signal=[a])
    assert held.wait(SOON)


def test_a_circle_is_found_past_a_submission_that_was_cancelled(board):
    first, second = board.devices
    a = Event("a")
    held, taken_back, behind = first.submit([], wait=[a]), first.submit([]), first.submit([])
    assert taken_back.cancel()
    assert refused(Status.UNSUPPORTED_OPERATION, second.submit, [], wait=[behind.finished], signal=[a])
    second.submit([], signal=[a])
    assert held.wait(SOON)
    assert behind.wait(SOON)


def test_the_first_error_is_told_however_long_the_chain_behind_it_is(board):
    gate = Event()
    first = last = board.device(0).submit([], wait=[gate])
    for index in range(20):
        last = board.device(index % 2).submit([], wait=[last.finished])
    first.cancel()
    text = refused(Status.CANCELLED, last.wait, SOON)
    assert text.count("did not run because") == 1
    assert "The submission was cancelled" in text


EVENTS = 5
ROLES = st.lists(st.integers(0, EVENTS - 1), unique=True, max_size=2)


@given(st.lists(st.tuples(st.integers(0, 1), ROLES, ROLES), max_size=10))
def test_whatever_was_taken_comes_to_its_end_and_only_what_could_not_was_refused(asked):
    events = [Event(str(index)) for index in range(EVENTS)]
    gate = Event("all is submitted")
    taken = []
    with Board("agx-orin-64") as board:
        held = [device.submit([], wait=[gate]) for device in board.devices]
        for core, waits, signals in asked:
            given_already = {one for _, _, others in taken for one in others}
            if given_already & set(signals):
                continue
            arguments = [], [events[one] for one in waits], [events[one] for one in signals]
            if all_end([*taken, (core, waits, signals)]):
                board.device(core).submit(*arguments)
                taken.append((core, waits, signals))
            else:
                refused(Status.UNSUPPORTED_OPERATION, board.device(core).submit, *arguments)
        for index in set(range(EVENTS)) - {one for _, _, signals in taken for one in signals}:
            events[index].signal()
        gate.signal()
        assert all(device.synchronize(SOON) for device in board.devices)
        assert all(event.is_signalled for event in events)
        assert all(one.status is Status.SUCCESS for one in held)


def all_end(submissions):
    """Whether all end when the program signals every event that none of them does: tried, step by step."""
    queues = [[one for one in submissions if one[0] == core] for core in (0, 1)]
    happened = set(range(EVENTS)) - {event for _, _, signals in submissions for event in signals}
    moved = True
    while moved:
        moved = False
        for queue in queues:
            if queue and set(queue[0][1]) <= happened:
                happened |= set(queue.pop(0)[2])
                moved = True
    return not any(queues)


FORK = """
import os, signal, sys, threading
import numpy as np
from tests.targets.dla.runtime.loadables import affine, memory_of, numbers, task_of
from dryfit_dla.runtime import Board, DlaError, Event, Status, Task

with Board("agx-orin-64") as board:
    devices = board.device(0), board.device(1)
    tensor = devices[0].load(affine()).input_attributes[0]
    go = Event("go")
    submissions, results = [], []
    for device in devices:
        buffers = [memory_of(tensor, numbers()), memory_of(tensor)]
        tasks = [Task(device.load(affine()), *([device.register(one)] for one in buffers))]
        submissions += [device.submit(tasks, wait=[go]), device.submit(tasks)]
        results.append((device, tasks, buffers[1]))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            for submission in submissions:
                try:
                    submission.wait()
                    raise SystemExit("a submission of the parent ended in the child")
                except DlaError as error:
                    assert error.status is Status.CANCELLED, error
                    assert "forked" in str(error), error
            for device, tasks, written in results:
                assert device.submit(tasks).wait(30)
                np.testing.assert_array_equal(tensor.read(written), numbers() * 2 + 1)
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    go.signal()
    assert all(submission.wait(30) for submission in submissions)
    assert status == 0, status
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_has_cores_of_its_own():
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, check=False, timeout=300
    )
    assert (found.returncode, found.stdout.strip()) == (0, "done"), found.stderr
