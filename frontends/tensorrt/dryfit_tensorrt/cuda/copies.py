"""Copies between host and device memory, with each range checked as far as it can be.

Device addresses go through `memory.view`. On the host's side, arrays and other buffers have a size that is checked; a
bare integer is trusted, as C trusts it, unless it is inside of an allocation of ours.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import numpy as np

from dryfit_tensorrt.cuda.results import CudaCallError
from dryfit_tensorrt.memory import Bytes, DeviceMemoryError, MemoryKind, allocation_at, view


class MemcpyKind(enum.IntEnum):
    """`cudaMemcpyKind`."""

    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


_FROM_DEVICE = (MemcpyKind.cudaMemcpyDeviceToHost, MemcpyKind.cudaMemcpyDeviceToDevice)
_TO_DEVICE = (MemcpyKind.cudaMemcpyHostToDevice, MemcpyKind.cudaMemcpyDeviceToDevice)


def copy(target: Any, source: Any, size: int, kind: int = MemcpyKind.cudaMemcpyDefault) -> None:
    """Copy bytes.

    Args:
        target, source: addresses as integers or objects with `__int__`, or on the host's side buffers.
        size: number of bytes.
        kind: value of `MemcpyKind`.

    Raises:
        DeviceMemoryError: a range is not inside of an allocation or buffer.
        CudaCallError: the kind does not exist, or does not fit the addresses.
    """
    try:
        kind = MemcpyKind(kind)
    except ValueError:
        raise CudaCallError(
            21, "Unknown kind of copy", found=kind, remedy="Use a member of cudaMemcpyKind, such as cudaMemcpyDefault"
        ) from None
    size = int(size)
    if size == 0:
        return
    target_address, target_memory = _side(target, size, kind, on_device=kind in _TO_DEVICE, is_written=True)
    source_address, source_memory = _side(source, size, kind, on_device=kind in _FROM_DEVICE, is_written=False)
    ctypes.memmove(target_address, source_address, size)
    del target_memory, source_memory  # kept until here, also if another thread frees it meanwhile


def _side(given: Any, size: int, kind: MemcpyKind, *, on_device: bool, is_written: bool) -> tuple[int, object]:
    """Return the address of one side of a copy, and what keeps its memory."""
    if not (on_device or is_address(given)):
        return _buffer(given, size, is_written=is_written)
    address = address_of(given)
    found = None if on_device else allocation_at(address)
    if not on_device and kind is not MemcpyKind.cudaMemcpyDefault and found and found.kind is MemoryKind.DEVICE:
        raise CudaCallError(
            1,
            f"{kind.name} needs an address on the host as its {'target' if is_written else 'source'}",
            found=str(found),
            remedy="Pass the other kind of copy, or exchange target and source",
        )
    # A registered buffer belongs to the program, which may have freed it: nothing can check it, as for other memory.
    is_ours = found is not None and found.kind is not MemoryKind.REGISTERED
    if on_device or is_ours or address == 0:
        return address, view(address, size)  # null is refused there
    return address, None  # an address on the host, which nothing can check


def is_address(given: Any) -> bool:
    """Whether an argument is an address and not a buffer."""
    if given is None or isinstance(given, int | np.integer | ctypes.c_void_p):
        return True
    if isinstance(given, np.ndarray):
        return False
    return hasattr(given, "__int__") and not hasattr(given, "__array_interface__")


def address_of(given: Any) -> int:
    """Return an address as an integer; 0 for None.

    Raises:
        TypeError: it is not one.
    """
    if isinstance(given, ctypes.c_void_p):
        return given.value or 0
    if not is_address(given):
        raise TypeError(f"An address on the device is required, as an integer (found {type(given).__name__})")
    return 0 if given is None else int(given)


def _buffer(given: Any, size: int, *, is_written: bool) -> tuple[int, Bytes]:
    """Return the address of a buffer on the host, and the buffer's bytes.

    Raises:
        DeviceMemoryError: it is smaller than `size`.
        TypeError: it is not contiguous, or is written and read-only.
    """
    if isinstance(given, np.ndarray) and not given.flags.c_contiguous:
        raise TypeError("The array must be C-contiguous; numpy.ascontiguousarray makes it so")
    is_array = isinstance(given, np.ndarray) or hasattr(given, "__array_interface__")
    whole: Bytes = np.asarray(given).reshape(-1).view(np.uint8) if is_array else np.frombuffer(given, np.uint8)
    if is_written and not whole.flags.writeable:
        raise TypeError(f"The target of a copy must be writable (found a read-only {type(given).__name__})")
    address = int(whole.__array_interface__["data"][0])
    if size > whole.size:
        raise DeviceMemoryError(
            "The copy is larger than the buffer on the host",
            address=address,
            size=size,
            found=f"{size} bytes for {whole.size} bytes of {type(given).__name__}",
            allowed=f"up to {whole.size} bytes",
            remedy="Check the shape and the item size that the size was computed from",
        )
    return address, whole


def fill(address: Any, value: int, count: int, item: int = 1) -> None:
    """Set `count` items of `item` bytes to a value, which is cut to the item's size."""
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32}[item]
    target = view(address_of(address), int(count) * item)
    target.view(kind)[:] = int(value) & ((1 << 8 * item) - 1)


def copy_rows(
    target: Any, target_pitch: int, source: Any, source_pitch: int, width: int, height: int, kind: int
) -> None:
    """Copy rows of `width` bytes between memories whose rows begin `pitch` bytes after one another.

    Raises:
        CudaCallError: a row is wider than its pitch.
        DeviceMemoryError: as for `copy`.
    """
    if width > min(target_pitch, source_pitch):
        raise CudaCallError(
            12,
            "A row must not be wider than the pitch",
            found=f"width {width}, pitches {target_pitch} and {source_pitch}",
            remedy="Pass the width of a row in bytes, and the distance between rows as its pitch",
        )
    for row in range(height):
        copy(address_of(target) + row * target_pitch, address_of(source) + row * source_pitch, width, kind)
