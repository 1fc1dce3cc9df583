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
    target_bytes = _side(target, size, kind, on_device=kind in _TO_DEVICE, is_written=True)
    source_bytes = _side(source, size, kind, on_device=kind in _FROM_DEVICE, is_written=False)
    np.copyto(target_bytes, source_bytes)  # as memmove: numpy buffers what overlaps


def _side(given: Any, size: int, kind: MemcpyKind, *, on_device: bool, is_written: bool) -> Bytes:
    """Return the bytes of one side of a copy."""
    if on_device:
        return view(address_of(given), size)
    if kind is MemcpyKind.cudaMemcpyDefault and is_address(given):
        found = allocation_at(address_of(given))
        return host_bytes(given, size, is_written=is_written) if found is None else view(address_of(given), size)
    if is_address(given):
        found = allocation_at(address_of(given))
        if found is not None and found.kind is MemoryKind.DEVICE:
            raise CudaCallError(
                1,
                f"{kind.name} needs an address on the host as its {'target' if is_written else 'source'}",
                found=str(found),
                remedy="Pass the other kind of copy, or exchange target and source",
            )
    return host_bytes(given, size, is_written=is_written)


def is_address(given: Any) -> bool:
    """Whether an argument is an address and not a buffer."""
    if hasattr(given, "__array_interface__"):
        return False
    return hasattr(given, "__int__") or isinstance(given, ctypes.c_void_p)


def address_of(given: Any) -> int:
    """Return an address as an integer.

    Raises:
        TypeError: it is not one.
    """
    if given is None:
        return 0
    if isinstance(given, ctypes.c_void_p):
        return given.value or 0
    if hasattr(given, "__array_interface__"):
        raise TypeError(f"An address on the device is required, as an integer (found {type(given).__name__})")
    return int(given)


def host_bytes(given: Any, size: int, *, is_written: bool) -> Bytes:
    """Return bytes on the host.

    Args:
        given: a buffer, such as an array, or an address.
        size: number of bytes.
        is_written: whether they will be changed.

    Raises:
        DeviceMemoryError: the buffer is smaller, or the address is null.
        TypeError: it is neither, or must not be changed.
    """
    if given is None or is_address(given):
        address = address_of(given)
        if address == 0 or allocation_at(address) is not None:
            return view(address, size)  # ours is checked, and null is refused
        found: Bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        return found
    whole = _buffer(given)
    if is_written and not whole.flags.writeable:
        raise TypeError(f"The target of a copy must be writable (found a read-only {type(given).__name__})")
    if size > whole.size:
        raise DeviceMemoryError(
            "The copy is larger than the buffer on the host",
            address=int(whole.ctypes.data),
            size=size,
            found=f"{size} bytes for {whole.size} bytes of {type(given).__name__}",
            allowed=f"up to {whole.size} bytes",
            remedy="Check the shape and the item size that the size was computed from",
        )
    return whole[:size]


def _buffer(given: Any) -> Bytes:
    if isinstance(given, np.ndarray) and not given.flags.c_contiguous:
        raise TypeError("The array must be C-contiguous; numpy.ascontiguousarray makes it so")
    if hasattr(given, "__array_interface__"):
        array: Bytes = np.asarray(given).reshape(-1).view(np.uint8)
        return array
    return np.frombuffer(given, np.uint8)


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
