"""Copies of whole arrays between layouts, for whoever asks the host: what packs tensors into a device's formats."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.kernels.copying import TRANSPOSE, transposition_work
from dryfit_cpu.kernels.interleaving import INTERLEAVE, interleaving_work
from dryfit_cpu.kernels.lines import COPY_LINES, lines_work
from dryfit_cpu.steps import FUNCTION

_WAYS = ((INTERLEAVE, interleaving_work), (TRANSPOSE, transposition_work), (COPY_LINES, lines_work))
"""In this order."""


def copy_array(source: Array, destination: Array) -> bool:
    """Copy an array, on the calling thread, where native code is quicker than numpy.

    Args:
        source: of any strides.
        destination: of the same type and rank, at least as long along each axis, any strides. What lies behind the
            source's extents becomes zero.

    Returns:
        Whether it was copied.
    """
    if source.dtype != destination.dtype:
        return False
    copy = prepared_copy(source.dtype, source.shape, source.strides, destination.shape, destination.strides)
    if copy is None:
        return False
    copy(source, destination)
    return True


@attrs.frozen(eq=False)
class PreparedCopy:
    """A copy between arrays of certain shapes and strides, wherever they are.

    Attributes:
        function: the native function.
        descriptor: its arguments, 64 bits each.
        kind: how `ctypes` calls that.
        source_place: index of the source's address among them.
        output_place: index of the destination's.
        border: indices of what is cleared beside.
    """

    function: Callable[[int, int, int], None]
    descriptor: bytes
    kind: type[ctypes.Array[ctypes.c_int64]]
    source_place: int
    output_place: int
    border: Sequence[tuple[slice, ...]]

    def __call__(self, source: Array, destination: Array) -> None:
        """Copy, and clear what the destination has more of."""
        for index in self.border:
            destination[index] = 0
        # Several threads may run the same copy, each with addresses of its own.
        descriptor = self.kind.from_buffer_copy(self.descriptor)
        descriptor[self.source_place] = _address(source)
        descriptor[self.output_place] = _address(destination)
        self.function(ctypes.addressof(descriptor), 0, 1)


@functools.lru_cache(maxsize=1024)
def prepared_copy(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    output_shape: tuple[int, ...],
    output_strides: tuple[int, ...],
) -> PreparedCopy | None:
    """The quickest copy there is; None where numpy is as quick."""
    source, destination = (
        np.lib.stride_tricks.as_strided(np.empty(1, dtype), *one)
        for one in ((shape, strides), (output_shape, output_strides))
    )
    # What lies together is cleared on the way, the rest beside.
    cut = [
        stride != dtype.itemsize and extent < output
        for extent, output, stride in zip(shape, output_shape, output_strides, strict=True)
    ]
    inner = destination[tuple(slice(extent if is_cut else None) for extent, is_cut in zip(shape, cut, strict=True))]
    border = [(*(slice(None),) * axis, slice(extent, None)) for axis, extent in enumerate(shape) if cut[axis]]
    for function, make_work in _WAYS:
        work = make_work(source, inner, 1)
        if work is not None:
            places = (function.place("source.address"), function.place("output.address"))
            return PreparedCopy(
                FUNCTION(work.function),
                work.descriptor.tobytes(),
                ctypes.c_int64 * work.descriptor.size,
                *places,
                border,
            )
    return None


def _address(array: Array) -> int:
    """Of its first element: read from the object, as asking numpy for it takes as long as copying some kilobytes."""
    if not _HAS_KNOWN_OBJECTS:
        return _address_of_interface(array)
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


def _address_of_interface(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _has_known_objects() -> bool:
    """Whether an array is an object at its `id` whose first member is the address, as numpy's C API declares it."""
    if sys.implementation.name != "cpython":
        return False
    sample = np.zeros(3, np.int8)[1:]
    return ctypes.c_size_t.from_address(id(sample) + object.__basicsize__).value == _address_of_interface(sample)


_HAS_KNOWN_OBJECTS = _has_known_objects()
