"""What the runtime refuses: each with cuDLA's status, and with words that say what would be right."""

import numpy as np
import pytest
from tests.targets.dla.runtime.loadables import affine, memory_of, numbers, task_of, two_by_two

from dryfit.errors import ConfigError, EngineFileError
from dryfit_dla.loadable import Loadable
from dryfit_dla.runtime import Board, DlaError, Event, Status, Task, read_loadable

MIB = 1 << 20


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


# Cores and loadables --------------------------------------------------------------------------------------------------


def test_a_core_that_the_board_does_not_have_is_refused(board):
    assert "found 2; allowed: 0, 1" in refused(Status.INVALID_DEVICE, board.device, 2)
    assert refused(Status.INVALID_DEVICE, board.device, -1)
    assert "the board has no DLA" in refused(Status.INVALID_DEVICE, Board("orin-nano").device, 0)


@pytest.mark.parametrize(("platform", "software", "limit"), [("orin", None, 16), ("xavier", "8.2", 8)])
def test_a_core_takes_as_many_loadables_as_its_software_allows_and_not_one_more(platform, software, limit):
    loadable = read_loadable(affine(platform=platform, software=software or "10.3"))
    with Board(platform, software) as board:
        device, other = board.devices
        modules = [device.load(loadable) for _ in range(limit)]
        text = refused(Status.OUT_OF_RESOURCES, device.load, loadable)
        assert f"found {limit} loaded, and 'affine, segment 0'; allowed: {limit}" in text
        assert "Unload one, or use another core" in text
        assert len(device.modules) == limit
        other.load(loadable)
        modules[3].unload()
        assert device.load(loadable) in device.modules


def with_sram(size):
    """The loadable, as one that takes so much managed SRAM."""
    loadable = read_loadable(affine())
    return Loadable(
        **{
            **{name: getattr(loadable, name) for name in Loadable.__annotations__ if not name.startswith("_")},
            "arrays": {},
            "pools": {**loadable.pools, "DLA_MANAGED_SRAM": size},
        }
    )


def test_all_loadables_of_an_orin_core_share_its_sram(board):
    device, other = board.devices
    first = device.load(with_sram(MIB // 2))
    device.load(with_sram(MIB // 2))
    text = refused(Status.OUT_OF_RESOURCES, device.load, with_sram(4096))
    assert f"found {MIB + 4096} bytes for 3 loadables; allowed: {MIB} bytes" in text
    assert "lower limit for this pool" in text
    other.load(with_sram(MIB))
    device.load(with_sram(0))
    first.unload()
    device.load(with_sram(4096))


def test_a_loadable_for_another_family_is_refused(board):
    text = refused(Status.INVALID_PARAM, board.device().load, affine(platform="xavier", software="8.5"))
    assert "found agx-xavier, xavier; allowed: orin" in text


def test_a_loadable_for_newer_software_is_refused_and_for_older_is_taken():
    for software, is_taken in (("10.0", False), ("10.3", True), ("10.7", True), ("10", True)):
        with Board("orin", software) as board:
            if is_taken:
                board.device().load(affine())
            else:
                text = refused(Status.INCOMPATIBLE_DLA_SW_VERSION, board.device().load, affine())
                assert "found 10.3; allowed: 10.0 or older" in text


def test_bytes_that_are_no_loadable_are_refused_and_nothing_is_loaded(board):
    for source, said in (
        (affine()[:-1], "loadable"),
        (b"abc", "too short for a loadable"),
        ("/no/such.loadable", "cannot be read"),
        (3, "found int"),
    ):
        assert said in refused(Status.INVALID_PARAM, board.device().load, source)
    with pytest.raises(DlaError) as caught:
        board.device().load(b"abc")
    assert isinstance(caught.value.__cause__, EngineFileError)
    assert not board.device().modules


# Memory ---------------------------------------------------------------------------------------------------------------


def test_a_buffer_is_registered_once_on_each_core(board):
    buffer = np.zeros(64, np.uint8)
    memory = board.device(0).register(buffer)
    assert board.device(1).register(buffer).device is board.device(1)
    assert "memory that register returned" in refused(Status.MEMORY_REGISTERED, board.device(0).register, buffer)
    memory.unregister()
    assert refused(Status.INVALID_ADDRESS, memory.unregister)
    board.device(0).register(buffer)


@pytest.mark.parametrize(
    ("buffer", "status", "said"),
    [
        (np.zeros((4, 4))[:, ::2], Status.INVALID_PARAM, "contiguous"),
        (np.array([None]), Status.INVALID_PARAM, "plain numbers"),
        (np.zeros(0), Status.INVALID_ADDRESS, "must not be empty"),
        (b"", Status.INVALID_ADDRESS, "must not be empty"),
        (memoryview(b"abcd")[::2], Status.INVALID_PARAM, "not accessible"),
        ("text", Status.INVALID_PARAM, "found str"),
        (7, Status.INVALID_PARAM, "found int"),
    ],
)
def test_what_is_no_run_of_bytes_is_not_registered(board, buffer, status, said):
    assert said in refused(status, board.device().register, buffer)


# Tasks ----------------------------------------------------------------------------------------------------------------


def changed(task, **parts):
    """The task with other inputs, outputs or module."""
    return Task(**{"module": task.module, "inputs": task.inputs, "outputs": task.outputs, **parts})


def test_memory_of_another_core_or_of_none_is_refused(board):
    device, other = board.devices
    task = task_of(device.load(affine()))
    (tensor,) = task.module.input_attributes
    elsewhere = changed(task, inputs=[memory_of(tensor, device=other)])
    text = refused(Status.INVALID_ADDRESS, device.submit, elsewhere)
    assert "found memory of DLA core 1 of agx-orin-64; allowed: memory of DLA core 0 of agx-orin-64" in text
    text = refused(Status.INVALID_ADDRESS, device.submit, changed(task, outputs=[memory_of(tensor)]))
    assert "output 'y' of module 'affine, segment 0'" in text
    assert "found ndarray, not registered" in text
    task.inputs[0].unregister()
    assert "input 'x'" in refused(Status.INVALID_ADDRESS, device.submit, task)


def test_memory_of_one_byte_less_than_the_padded_tensor_is_refused(board):
    device = board.device()
    task = task_of(device.load(affine(layout="DLA_LINEAR")))
    (tensor,) = task.module.input_attributes
    assert tensor.size_bytes > numbers().nbytes
    short = device.register(np.zeros(tensor.size_bytes - 1, np.uint8))
    for side in ("inputs", "outputs"):
        text = refused(Status.INVALID_PARAM, device.submit, changed(task, **{side: [short]}))
        assert f"found {tensor.size_bytes - 1} bytes; allowed: at least {tensor.size_bytes}: FP16" in text
        assert "in DLA_LINEAR, padded to (1, 16, 2, 32)" in text


def test_a_task_has_one_memory_for_each_tensor(board):
    device = board.device()
    task = task_of(device.load(affine()))
    for inputs, said in (([], "0 memories"), ([*task.inputs] * 2, "2 memories"), ({}, "0 memories")):
        text = refused(Status.INVALID_PARAM, device.submit, changed(task, inputs=inputs))
        assert said in text
        assert "allowed: 1: 'x'" in text
    text = refused(Status.INVALID_PARAM, device.submit, changed(task, outputs={"Y": task.outputs[0]}))
    assert "Unknown output: 'Y'" in text
    assert "allowed: a sequence of memories" in refused(Status.INVALID_PARAM, device.submit, changed(task, inputs=3))


@pytest.mark.parametrize("tasks", ["x", 3, None, [3], ["x"]])
def test_what_is_no_task_is_not_submitted(board, tasks):
    text = refused(Status.INVALID_PARAM, board.device().submit, tasks)
    assert "a task or a sequence of tasks" in text
    assert "allowed: Task(module, inputs, outputs)" in text


def test_an_output_has_memory_of_its_own_that_can_be_written(board):
    device = board.device()
    task = task_of(device.load(affine()))
    assert "must not share memory with an input" in refused(
        Status.INVALID_PARAM, device.submit, changed(task, outputs=task.inputs)
    )
    constant = device.register(bytes(task.outputs[0].size_bytes))
    assert "read-only" in refused(Status.INVALID_PARAM, device.submit, changed(task, outputs=[constant]))
    both = device.load(two_by_two())
    size = both.output_attributes[0].size_bytes
    space = np.zeros(2 * size, np.uint8)
    first, behind, between = (device.register(part) for part in (space[:size], space[size:], space[1 : size + 1]))
    inputs = [task.inputs[0], task.inputs[0]]
    assert refused(Status.INVALID_PARAM, device.submit, Task(both, inputs, [first, between]))
    device.submit(Task(both, inputs, [first, behind])).wait()


def test_a_module_of_another_core_or_unloaded_is_refused(board):
    device, other = board.devices
    task = task_of(device.load(affine()))
    assert "Load the loadable on this core" in refused(Status.INVALID_MODULE, other.submit, task)
    task.module.unload()
    assert refused(Status.INVALID_MODULE, device.submit, task)
    assert refused(Status.INVALID_MODULE, task.module.unload)


def test_nothing_is_queued_when_one_of_several_tasks_is_refused(board):
    device = board.device()
    good = task_of(device.load(affine()))
    event = Event()
    assert refused(Status.INVALID_PARAM, device.submit, [good, changed(good, inputs=[])], signal=[event])
    device.synchronize()
    assert (good.outputs[0].data == 0xA5).all()
    device.submit(good, signal=[event]).wait()
    assert event.is_signalled


def test_what_a_submission_needs_stays_until_it_has_ended(board):
    device = board.device()
    task, gate = task_of(device.load(affine())), Event()
    submission = device.submit(task, wait=[gate])
    for call in (task.module.unload, task.inputs[0].unregister, task.outputs[0].unregister):
        assert "synchronize(), or cancel it" in refused(Status.DLA_PROCESSOR_BUSY, call)
    gate.signal()
    submission.wait()
    task.module.unload()
    task.inputs[0].unregister()


def test_a_closed_board_takes_nothing(board):
    device = board.device()
    task = task_of(device.load(affine()))
    board.close()
    board.close()
    for call, argument in ((device.load, affine()), (device.register, bytearray(4)), (device.submit, task)):
        assert "The board is closed" in refused(Status.INVALID_DEVICE, call, argument)
    assert not device.modules


def test_a_tensor_is_read_from_and_written_to_a_buffer_that_can_be(board):
    tensor = board.device().load(affine()).input_attributes[0]
    array = np.zeros(tensor.shape, tensor.dtype.numpy)
    for buffer in ("x", 3, None, np.zeros((tensor.size_bytes, 2), np.uint8)[:, 0]):
        with pytest.raises(ConfigError, match="buffer must be contiguous"):
            tensor.read(buffer)
    with pytest.raises(ConfigError, match="must be writable"):
        tensor.write(bytes(tensor.size_bytes), array)
    with pytest.raises(ConfigError, match="too small"):
        tensor.write(bytearray(1), array)
