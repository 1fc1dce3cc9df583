"""Device memory: addresses are real, and each access is checked."""

import ctypes
import os
import threading

import numpy as np
import pytest

from dryfit_tensorrt.memory import ALIGNMENT, DeviceMemory, DeviceMemoryError, MemoryKind


def test_an_address_is_real_aligned_and_zeroed():
    memory = DeviceMemory()
    address = memory.allocate(100)
    assert address % ALIGNMENT == 0
    assert not memory.view(address, 100).any()
    ctypes.memset(address + 10, 7, 5)
    assert memory.view(address, 100).sum() == 35
    assert memory.view(address + 10, 5).tolist() == [7] * 5


def test_a_view_shares_the_memory_and_outlives_it():
    memory = DeviceMemory()
    address = memory.allocate(8)
    view = memory.view(address, 8)
    view[:] = 3
    assert memory.view(address + 7, 1)[0] == 3
    memory.free(address)
    assert view.tolist() == [3] * 8


def test_statistics_count_device_memory_and_its_peak():
    memory = DeviceMemory()
    first, pinned = memory.allocate(1000), memory.allocate(50, MemoryKind.PINNED)
    memory.free(first)
    memory.allocate(10, MemoryKind.MANAGED)
    found = memory.statistics()
    assert (found.live_bytes, found.peak_bytes) == (10, 1000)
    assert (found.live_allocations, found.total_allocations) == (2, 3)
    assert not memory.is_device_address(pinned)
    assert memory.view(pinned, 50).size == 50, "a GPU reads pinned memory, too"


def refused(memory, address, size):
    with pytest.raises(DeviceMemoryError) as refusal:
        memory.view(address, size)
    assert (refusal.value.address, refusal.value.size) == (address, size)
    return str(refusal.value)


def test_an_access_past_the_end_names_the_allocation():
    memory = DeviceMemory()
    address = memory.allocate(64)
    assert memory.view(address, 64).size == 64
    text = refused(memory, address + 60, 5)
    assert text.startswith("The access ends outside of its allocation (found 5 bytes at ")
    assert f"to 1 bytes past the end of 64 bytes of device memory at {address:#x}" in text


def test_null_freed_and_foreign_addresses_are_refused_by_name():
    memory = DeviceMemory()
    assert "Null is not a device address" in refused(memory, 0, 4)
    assert "no memory is allocated" in refused(memory, 0, 4)
    address, kept = memory.allocate(64), memory.allocate(32)
    memory.free(address)
    text = refused(memory, address + 4, 4)
    assert "The memory was freed" in text
    assert f"inside 64 bytes at {address:#x} that were freed" in text
    assert f"nearest allocation: 32 bytes of device memory at {kept:#x}" in text
    host = np.zeros(16)
    assert "not one of device memory" in refused(memory, host.ctypes.data, 4)
    assert "must not be negative" in refused(memory, kept, -1)


def test_the_space_between_allocations_belongs_to_none():
    memory = DeviceMemory()
    address = memory.allocate(16)
    assert memory.is_device_address(address + 15)
    assert not memory.is_device_address(address + 16)
    assert not memory.is_device_address(address - 1)
    refused(memory, address + 16, 1)


def test_an_allocation_of_nothing_has_an_address_and_no_bytes():
    memory = DeviceMemory()
    address = memory.allocate(0)
    assert address
    assert memory.view(address, 0).size == 0
    refused(memory, address, 1)
    memory.free(address)


@pytest.mark.parametrize(
    ("offset", "kind", "words"),
    [
        (8, None, "Memory must be freed by its first address"),
        (0, MemoryKind.PINNED, "Only pinned host memory can be freed here"),
        (1 << 40, None, "The address is not one of an allocation"),
    ],
)
def test_a_wrong_free_changes_nothing_and_says_why(offset, kind, words):
    memory = DeviceMemory()
    address = memory.allocate(64)
    with pytest.raises(DeviceMemoryError, match=words):
        memory.free(address + offset, kind)
    assert memory.statistics().live_bytes == 64


def test_memory_is_freed_once():
    memory = DeviceMemory()
    address = memory.allocate(64)
    memory.free(address)
    with pytest.raises(DeviceMemoryError, match="The memory was freed before"):
        memory.free(address)


def test_a_negative_size_is_refused():
    with pytest.raises(DeviceMemoryError, match=r"must not be negative \(found -4 bytes"):
        DeviceMemory().allocate(-4)


def test_every_address_is_found_among_many():
    memory, draw = DeviceMemory(), np.random.default_rng(0)
    live = {memory.allocate(size): size for size in (int(draw.integers(1, 3000)) for _ in range(500))}
    for address in draw.choice([*live], 200, replace=False).tolist():
        memory.free(address)
        del live[address]
    for address, size in live.items():
        offset = int(draw.integers(size))
        assert memory.view(address + offset, size - offset).ctypes.data == address + offset
    assert memory.statistics().live_bytes == sum(live.values())


def test_memory_of_the_host_can_be_registered():
    memory, host = DeviceMemory(), np.arange(8, dtype=np.uint8)
    address = host.ctypes.data
    memory.register(address, 8)
    memory.view(address + 2, 3)[:] = 9
    assert host.tolist() == [0, 1, 9, 9, 9, 5, 6, 7]
    assert not memory.is_device_address(address)
    assert memory.statistics().live_bytes == 0
    for start, size in ((address, 8), (address + 4, 1), (address - 1, 2), (0, 4)):
        with pytest.raises(DeviceMemoryError, match="Only memory of the host that is not registered"):
            memory.register(start, size)
    memory.free(address, MemoryKind.REGISTERED)
    refused(memory, address, 1)
    assert host.sum() == 46


def test_a_buffer_that_was_freed_without_unregistering_it_does_no_harm(monkeypatch):
    memory, block = DeviceMemory(), np.zeros(4096, np.uint8)
    monkeypatch.setattr(np, "zeros", lambda *_: block)
    start = block.ctypes.data + -block.ctypes.data % ALIGNMENT
    for stale in (start - 8, start + 100, start + 1020):
        memory.register(stale, 16)
    address = memory.allocate(1024)
    assert address == start
    assert memory.view(address, 1024).size == 1024
    assert memory.statistics().live_allocations == 1


def test_threads_share_the_table():
    memory, faults = DeviceMemory(), []

    def work(seed):
        draw = np.random.default_rng(seed)
        try:
            for _ in range(300):
                address = memory.allocate(int(draw.integers(1, 500)))
                memory.view(address, 1)[0] = 1
                memory.free(address)
        except DeviceMemoryError as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert memory.statistics().live_bytes == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_the_child_of_a_fork_has_the_memory():
    memory = DeviceMemory()
    address = memory.allocate(8)
    memory.view(address, 8)[:] = 5
    child = os.fork()
    if child == 0:
        os._exit(int(memory.view(address, 8).sum()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 40
