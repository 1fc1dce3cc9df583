"""Several cores and several threads at once: the results are those of one after the other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets.dla.runtime.loadables import affine, convolutions, memory_of, numbers, result_of, task_of

from dryfit_dla.runtime import Board, DlaError, Event, Status, Task

SOON = 60


def test_two_cores_run_at_the_same_time():
    both = threading.Barrier(2)
    with Board() as board:
        tasks = [task_of(device.load(affine())) for device in board.devices]
        for task in tasks:
            execute = task.module.execute
            # Each waits within its run until the other runs too.
            task.module.execute = lambda *memories, execute=execute: (both.wait(SOON), execute(*memories))
        submissions = [device.submit(task) for device, task in zip(board.devices, tasks, strict=True)]
        assert all(submission.wait(SOON) for submission in submissions)
        for task in tasks:
            np.testing.assert_array_equal(result_of(task), numbers() * 2 + 1)


def test_a_core_runs_one_task_at_a_time_whoever_submits():
    inside, most = [], []
    with Board() as board:
        device = board.device()
        module = device.load(affine())
        execute = module.execute

        def counted(*memories):
            inside.append(1)
            most.append(len(inside))
            execute(*memories)
            inside.pop()

        module.execute = counted
        with ThreadPoolExecutor(4) as threads:
            tasks = [task_of(module, numbers(seed)) for seed in range(24)]
            for submission in threads.map(device.submit, tasks):
                assert submission.wait(SOON)
        for seed, task in enumerate(tasks):
            np.testing.assert_array_equal(result_of(task), numbers(seed) * 2 + 1)
    assert max(most) == 1


@pytest.mark.parametrize("num_threads", [1, 2])
def test_the_bits_are_the_same_on_each_core_with_any_number_of_threads(num_threads):
    engine, loadable = convolutions()
    x = np.random.default_rng(8).standard_normal((1, 3, 5, 7)).astype(np.float16)
    (expected,) = engine.create_execution_context(1).run({"x": x}).values()
    with Board(num_threads=num_threads) as board:
        modules = [device.load(loadable) for device in board.devices for _ in range(2)]
        tasks = [task_of(module, x) for module in modules * 3]
        for task in tasks:
            task.module.device.submit(task)
        assert all(device.synchronize(SOON) for device in board.devices)
        for task in tasks:
            assert result_of(task).tobytes() == expected.tobytes()


BUFFERS, FRAMES = 4, 12
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, BUFFERS - 1), st.integers(0, BUFFERS - 1)).filter(
        lambda s: s[1] != s[2]
    ),
    min_size=2,
    max_size=FRAMES,
)


@settings(max_examples=12)
@given(STEPS, st.randoms(use_true_random=False))
def test_tasks_that_wait_for_what_they_share_give_what_one_after_the_other_gives(steps, random):
    """Random programs on two cores: each step reads one buffer and writes another; submitted in any order that keeps
    the order of each core."""
    expected = [numbers(index) for index in range(BUFFERS)]
    for core, source, result in steps:
        expected[result] = (-expected[source] if core else expected[source] + 3).astype(np.float16)
    with Board(num_threads=1) as board:
        modules = [board.device(0).load(affine(1.0, 3.0)), board.device(1).load(affine(-1.0, 0.0))]
        (tensor,) = modules[0].input_attributes
        buffers = [memory_of(tensor, numbers(index)) for index in range(BUFFERS)]
        memories = [[device.register(buffer) for buffer in buffers] for device in board.devices]
        ends = [Event(f"step {index}") for index in range(len(steps))]
        queues = [[index for index, step in enumerate(steps) if step[0] == core] for core in (0, 1)]
        while any(queues):
            core = random.choice([one for one in (0, 1) if queues[one]])
            index = queues[core].pop(0)
            _, source, result = steps[index]
            task = Task(modules[core], [memories[core][source]], [memories[core][result]])
            board.device(core).submit(task, wait=[ends[one] for one in conflicts(steps, index)], signal=[ends[index]])
        assert all(device.synchronize(SOON) for device in board.devices)
        for buffer, wanted in zip(buffers, expected, strict=True):
            np.testing.assert_array_equal(tensor.read(buffer), wanted)


def conflicts(steps, index):
    """Earlier steps that write what this one touches, or read what it writes."""
    _, source, result = steps[index]
    return [
        one for one, (_, read, written) in enumerate(steps[:index]) if written in (source, result) or read == result
    ]


def test_threads_that_load_submit_cancel_and_unload_at_once_leave_the_cores_whole():
    """Each thread works with a module and memory of its own, on both cores in turn, and takes some tasks back."""
    loadable = affine()

    def work(board, seed):
        done = 0
        for turn in range(6):
            device = board.device((seed + turn) % 2)
            task = task_of(device.load(loadable), numbers(seed))
            gate = Event()
            submission = device.submit(task, wait=[gate])
            after = board.device((seed + turn + 1) % 2).submit([], wait=[submission.finished])
            if (seed + turn) % 3 == 0:
                assert submission.cancel()
                with pytest.raises(DlaError, match="an event that it waits for"):
                    after.wait(SOON)
                gate.signal()
                assert (task.outputs[0].data == 0xA5).all()
            else:
                gate.signal()
                assert after.wait(SOON)
                np.testing.assert_array_equal(result_of(task), numbers(seed) * 2 + 1)
                done += 1
            task.module.unload()
            for memory in (*task.inputs, *task.outputs):
                memory.unregister()
        return done

    with Board(num_threads=1) as board:
        with ThreadPoolExecutor(8) as threads:
            done = list(threads.map(lambda seed: work(board, seed), range(8)))
        assert all(device.synchronize(SOON) for device in board.devices)
        assert not any(device.modules for device in board.devices)
    assert done == [4] * 8


def test_no_more_than_the_limit_is_loaded_however_many_threads_load():
    loadable = affine()
    with Board() as board:
        device = board.device()

        def load(_):
            try:
                return device.load(loadable)
            except DlaError as error:
                return error.status

        with ThreadPoolExecutor(6) as threads:
            found = list(threads.map(load, range(24)))
        assert found.count(Status.OUT_OF_RESOURCES) == 8
        assert len(device.modules) == board.max_loadables == 16
