"""Host memory that stands for device memory: real addresses of this process, and every access to them is checked.

Programs pass device pointers as Python integers. Here such an integer is the address of a numpy array that this table
keeps alive, so an address plus an offset, ctypes and numpy views work as they do with CUDA. Every function of the
frontends that gets an address reads it through `view`, which refuses what a GPU would answer by an illegal access, or
silently accept.
"""

from __future__ import annotations

import ctypes
import enum
import os
import threading
from bisect import bisect_right
from collections import deque
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError

Bytes = npt.NDArray[np.uint8]

ALIGNMENT = 256
"""Alignment of allocations in bytes. Source: CUDA C++ Programming Guide, Device Memory Accesses."""

_FREED_KEPT = 256
"""How many freed allocations an error can still name."""


class MemoryKind(enum.Enum):
    """How a program allocated memory; a GPU reads and writes all of these."""

    DEVICE = "device"
    PINNED = "pinned host"
    REGISTERED = "registered host"
    MANAGED = "managed"

    @property
    def is_on_host(self) -> bool:
        """Whether it is memory of the host that a GPU can access."""
        return self in {MemoryKind.PINNED, MemoryKind.REGISTERED}


class DeviceMemoryError(DryfitError):
    """An address, or a range that starts at it, is not inside live memory of the simulated device.

    Attributes:
        address: the address.
        size: number of bytes that were requested from it.
    """

    def __init__(
        self, message: str, *, address: int, size: int, found: str, allowed: str | None = None, remedy: str
    ) -> None:
        self.address = address
        self.size = size
        super().__init__(message, found=found, allowed=allowed, remedy=remedy)


@frozen(eq=False)
class Allocation:
    """One live allocation.

    Attributes:
        address: address of its first byte.
        size: number of bytes that may be accessed.
        kind: how it was allocated.
        array: its bytes.
    """

    address: int
    size: int
    kind: MemoryKind
    array: Bytes = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{self.size} bytes of {self.kind.value} memory at {self.address:#x}"


@frozen
class MemoryStatistics:
    """What is allocated, and was at most.

    Attributes:
        live_bytes: bytes of device and managed memory that are allocated now.
        peak_bytes: the largest value that `live_bytes` had.
        live_allocations: number of live allocations of all kinds.
        total_allocations: number of allocations of all kinds, freed ones included.
    """

    live_bytes: int
    peak_bytes: int
    live_allocations: int
    total_allocations: int


class DeviceMemory:
    """A table of live allocations, sorted by address.

    Example:
        >>> memory = DeviceMemory()
        >>> address = memory.allocate(16)
        >>> memory.view(address + 4, 8)[:] = 1
        >>> int(memory.view(address, 16).sum())
        8
        >>> memory.free(address)
        >>> memory.is_device_address(address)
        False
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []
        self._freed: deque[tuple[int, int]] = deque(maxlen=_FREED_KEPT)
        self._live_bytes = self._peak_bytes = self._total = 0
        if hasattr(os, "register_at_fork"):  # not on Windows
            # A fork waits until no thread changes the table, so that the child gets a whole one and a free lock.
            lock = self._lock
            os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

    def allocate(self, size: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
        """Allocate memory, set to zero, and return its address; 0 bytes get an address that nothing can be read at.

        Raises:
            DeviceMemoryError: `size` is negative.
            MemoryError: this machine does not have the memory.
        """
        if size < 0:
            raise DeviceMemoryError(
                "The size of an allocation must not be negative",
                address=0,
                size=size,
                found=f"{size} bytes",
                allowed="0 or more",
                remedy="Check the shape that the size was computed from: -1 is a dynamic dimension",
            )
        # Zeroed, so that a program that reads what it did not write gives the same result in every run.
        block: Bytes = np.zeros(size + ALIGNMENT, np.uint8)
        offset = -block.ctypes.data % ALIGNMENT
        allocation = Allocation(block.ctypes.data + offset, size, kind, block[offset : offset + size])
        with self._lock:
            self._add(allocation)
            self._total += 1
            if not kind.is_on_host:
                self._live_bytes += size
                self._peak_bytes = max(self._peak_bytes, self._live_bytes)
        return allocation.address

    def register(self, address: int, size: int) -> None:
        """Let the device access memory of the host that the caller owns, until its address is freed.

        Raises:
            DeviceMemoryError: the address is null, or a part of the range is allocated or registered already.
        """
        with self._lock:
            index = bisect_right(self._starts, address + max(size, 1) - 1) - 1
            near = self._allocations[index] if index >= 0 else None
            if address == 0 or size < 0 or (near is not None and near.address + near.size > address):
                raise DeviceMemoryError(
                    "Only memory of the host that is not registered can be registered",
                    address=address,
                    size=size,
                    found=f"{size} bytes at {address:#x}; {self._nearest(address)}",
                    remedy="Register each buffer of the host once",
                )
            array: Bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
            self._add(Allocation(address, size, MemoryKind.REGISTERED, array))

    def _add(self, allocation: Allocation) -> None:
        index = bisect_right(self._starts, allocation.address)
        # What overlaps is a buffer that its owner freed without unregistering it: the system gave its memory away.
        while index < len(self._starts) and self._starts[index] < allocation.address + allocation.size:
            del self._starts[index], self._allocations[index]
        if index > 0:
            before = self._allocations[index - 1]
            if before.address + before.size > allocation.address:
                index -= 1
                del self._starts[index], self._allocations[index]
        self._starts.insert(index, allocation.address)
        self._allocations.insert(index, allocation)

    def free(self, address: int, kind: MemoryKind | None = None) -> None:
        """Free an allocation by the address that `allocate` returned.

        Args:
            address: of its first byte.
            kind: the kind that it must have; None for any.

        Raises:
            DeviceMemoryError: no live allocation of the kind begins there.
        """
        with self._lock:
            index = bisect_right(self._starts, address) - 1
            found = self._allocations[index] if index >= 0 else None
            if found is None or found.address != address or (kind is not None and found.kind is not kind):
                raise self._wrong_free(address, found, kind)
            del self._starts[index], self._allocations[index]
            self._freed.append((address, found.size))
            if not found.kind.is_on_host:
                self._live_bytes -= found.size

    def view(self, address: int, size: int) -> Bytes:
        """Return the bytes of a range as an array that shares the memory.

        The array keeps the memory valid, also if the allocation is freed while the array is in use.

        Raises:
            DeviceMemoryError: the range is not inside one live allocation.
        """
        with self._lock:
            index = bisect_right(self._starts, address) - 1
            if index >= 0 and size >= 0:
                found = self._allocations[index]
                offset = address - found.address
                if offset + size <= found.size:
                    return found.array[offset : offset + size]
            raise self._wrong_access(address, size)

    def allocation_at(self, address: int) -> Allocation | None:
        """Return the live allocation that an address is inside of; None if there is none."""
        with self._lock:
            index = bisect_right(self._starts, address) - 1
            found = self._allocations[index] if index >= 0 else None
        return found if found is not None and address - found.address < max(found.size, 1) else None

    def is_device_address(self, address: int) -> bool:
        """Whether an address is inside a live allocation of device or managed memory."""
        found = self.allocation_at(address)
        return found is not None and not found.kind.is_on_host

    def statistics(self) -> MemoryStatistics:
        """Return what is allocated now, and was at most."""
        with self._lock:
            return MemoryStatistics(self._live_bytes, self._peak_bytes, len(self._allocations), self._total)

    def _wrong_access(self, address: int, size: int) -> DeviceMemoryError:
        found = self.allocation_at(address)
        wanted = f"{size} bytes at {address:#x}"
        if address == 0:
            message, remedy = "Null is not a device address", "Allocate the memory before its address is used"
        elif size < 0:
            message, remedy = "The size of an access must not be negative", "Check how the size was computed"
        elif found is not None:
            message = "The access ends outside of its allocation"
            wanted += f", to {address + size - found.address - found.size} bytes past the end of {found}"
            remedy = "Allocate as many bytes as the tensor has, with the item size of its type"
        elif was := self._freed_at(address):
            message = "The memory was freed"
            wanted += f", inside {was[1]} bytes at {was[0]:#x} that were freed"
            remedy = "Free memory after the last use of its address"
        else:
            message = "The address is not one of device memory"
            remedy = "Pass an address that a CUDA allocation function returned; copy host data to the device first"
        if found is None:
            wanted += f"; {self._nearest(address)}"
        return DeviceMemoryError(message, address=address, size=size, found=wanted, remedy=remedy)

    def _wrong_free(self, address: int, found: Allocation | None, kind: MemoryKind | None) -> DeviceMemoryError:
        wanted = f"{address:#x}"
        if found is not None and found.address == address:
            assert kind is not None  # noqa: S101  an allocation of any kind was accepted otherwise
            message = f"Only {kind.value} memory can be freed here"
            wanted, remedy = str(found), "Free memory with the counterpart of the function that allocated it"
        elif found is not None and self.allocation_at(address) is found:
            message = "Memory must be freed by its first address"
            wanted += f", {address - found.address} bytes inside {found}"
            remedy = f"Free {found.address:#x}"
        elif was := self._freed_at(address):
            message = "The memory was freed before"
            wanted += f", inside {was[1]} bytes at {was[0]:#x} that were freed"
            remedy = "Free each allocation once"
        else:
            message = "The address is not one of an allocation"
            wanted += f"; {self._nearest(address)}"
            remedy = "Free an address that a CUDA allocation function returned"
        return DeviceMemoryError(message, address=address, size=0, found=wanted, remedy=remedy)

    def _freed_at(self, address: int) -> tuple[int, int] | None:
        return next((one for one in reversed(self._freed) if 0 <= address - one[0] < max(one[1], 1)), None)

    def _nearest(self, address: int) -> str:
        """Describe the live allocation next to an address."""
        with self._lock:
            index = bisect_right(self._starts, address)
            near = self._allocations[max(index - 1, 0) : index + 1]
        if not near:
            return "no memory is allocated"

        def distance(one: Allocation) -> int:
            return max(one.address - address, address - one.address - one.size, 0)

        return f"nearest allocation: {min(near, key=distance)}"


MEMORY = DeviceMemory()
"""The memory of this process's simulated device."""

allocate = MEMORY.allocate
free = MEMORY.free
register = MEMORY.register
view = MEMORY.view
is_device_address = MEMORY.is_device_address
allocation_at = MEMORY.allocation_at
statistics = MEMORY.statistics


def array_at(address: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the values at a device address as an array of a shape and type that shares the memory.

    Raises:
        DeviceMemoryError: the values are not inside one live allocation.
    """
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return view(address, count).view(kind).reshape(shape)
