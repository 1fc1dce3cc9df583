"""Copies between arrays with different memory layouts: the host's native code where it pays off, numpy otherwise.

The target layer knows no concrete target. `dryfit.front_door` defines how the host's copy is found; without one, numpy
copies everything, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dryfit.network.installed_packages import installed_packages

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

CopyArray = Callable[["Array", "Array"], bool]
"""(source, destination) -> whether it copied. Both have the same type and rank, and any strides. Where the destination
is longer than the source, it becomes zero behind it. What it does not copy faster than numpy it leaves alone."""

NATIVE_BYTES = 16 * 1024
"""Smaller arrays are numpy's until a larger one has been copied: finding native code takes longer than copying them."""

FEW = 16
"""So many elements side by side in the destination, or fewer, are copied one after the other, each for all places: the
loop that numpy makes over them alone would be too short."""

CACHED_BYTES = 128 * 1024
"""What is gone through several times is taken in parts of so many bytes, which stay in the cache meanwhile."""


class HostCopy:
    """The host's copy function, looked up when the first large array is copied."""

    def __init__(self) -> None:
        self._found: list[CopyArray | None] = []

    @property
    def is_found(self) -> bool:
        """Whether the lookup has been done."""
        return bool(self._found)

    def __call__(self, source: Array, destination: Array) -> bool:
        """Copy if there is a host copy that is faster than numpy; return whether it copied."""
        if not self._found:
            self._found.append(installed_packages().copy_array())
        copy = self._found[0]
        return copy is not None and copy(source, destination)


host_copy = HostCopy()
"""The one of this process, as there is one host."""


def copy_array(source: Array, destination: Array) -> None:
    """Copy all elements bit by bit, and set extra elements of the destination to zero.

    Args:
        source: array with any strides.
        destination: array of the same type and rank, at least as long along each axis, with any strides, in other
            memory. Elements beyond the source's extents become zero.
    """
    if source.strides == destination.strides and source.shape == destination.shape:
        destination[...] = source
    elif not ((host_copy.is_found or source.nbytes >= NATIVE_BYTES) and host_copy(source, destination)):
        _copy_by_numpy(source, clear_beyond(source, destination))


def clear_beyond(source: Array, destination: Array) -> Array:
    """Set elements of the destination beyond the source's extents to zero; return the remaining part."""
    if source.shape == destination.shape:
        return destination
    padded = [axis for axis, extent in enumerate(source.shape) if extent < destination.shape[axis]]
    if any(destination.strides[axis] == destination.itemsize and source.shape[axis] <= FEW for axis in padded):
        # One run of zeros is quicker than many short ones between what is copied.
        destination[...] = 0
        padded = []
    for axis in padded:
        destination[(*(slice(None),) * axis, slice(source.shape[axis], None))] = 0
    return destination[tuple(map(slice, source.shape))]


def _copy_by_numpy(source: Array, destination: Array) -> None:
    """The same without the host."""
    beside = [axis for axis in range(source.ndim) if source.shape[axis] > 1]
    inner = min(beside, key=lambda axis: abs(destination.strides[axis]), default=0)
    if len(beside) > 1 and source.shape[inner] <= FEW and source.strides[inner] != source.itemsize:
        outer = max(beside, key=lambda axis: abs(destination.strides[axis]))
        step = max(1, CACHED_BYTES // abs(destination.strides[outer])) if outer != inner else source.shape[outer]
        for start in range(0, source.shape[outer], step):
            part: list[Any] = [slice(None)] * source.ndim
            part[outer] = slice(start, start + step)
            for place in range(source.shape[inner]):
                part[inner] = place
                destination[tuple(part)] = source[tuple(part)]
    else:
        destination[...] = source
