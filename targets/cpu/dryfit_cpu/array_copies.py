"""Copies of whole arrays between layouts, for whoever asks the host: what packs tensors into a device's formats.

Besides transpositions there are copies of short lines to padded layouts and back, and copies between a few planes and
their pixels: layouts whose innermost axis is too short for a transposition.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array
from dryfit_cpu.codes import interleavings
from dryfit_cpu.compiler.native import FUNCTION, NativeFunction, Work
from dryfit_cpu.descriptors import Lines
from dryfit_cpu.kernels.copying import TRANSPOSE, chunks_for, joined_axes, transposition_work

INTERLEAVE = NativeFunction("transposition", "interleave")
_NUMBERS = {interleaving: number for number, interleaving in enumerate(interleavings())}
_SIZES = {size for size, *_ in _NUMBERS}
_AXES = 4


def interleaving_work(source: Array, destination: Array, threads: int) -> Work | None:
    """Work that copies two to four planes to pixels, or pixels to planes; None for any other copy.

    Where pixels have room for a value more than there are planes, that value stays as it is, but is written: nobody
    else may write it at the same time. It becomes zero where the destination shows it and the source has no plane for
    it.
    """
    size, is_padded = destination.itemsize, source.shape != destination.shape
    destination = destination[tuple(map(slice, source.shape))]
    if source.dtype != destination.dtype or size not in _SIZES or not source.size:
        return None
    for planar, pixels, makes_pixels in ((source, destination, True), (destination, source, False)):
        axes = joined_axes([pixels, planar])
        across = next((axis for axis in axes if axis[1][0] == size), None)
        along = next((axis for axis in axes if axis[1][1] == size), None)
        if across is None or along is None or across is along or not 2 <= len(axes) <= _AXES:
            continue
        planes, pitch = across[0], along[1][0] // size
        number = _NUMBERS.get((size, planes, pitch, makes_pixels, is_padded))
        if number is None or along[1][0] % size:
            continue
        outer = [axis for axis in axes if axis is not across and axis is not along]
        (extent0, strides0), (extent1, strides1) = [(1, [0, 0])] * (2 - len(outer)) + outer
        planes_at = Lines(planar.ctypes.data, strides0[1], strides1[1], across[1][1])
        pixels_at = Lines(pixels.ctypes.data, strides0[0], strides1[0])
        return INTERLEAVE.work(
            min(chunks_for(source.size, threads), extent0 * extent1),
            number=number,
            size=size,
            planes=planes,
            pitch=pitch,
            makes_pixels=makes_pixels,
            clears=is_padded,
            source=planes_at if makes_pixels else pixels_at,
            output=pixels_at if makes_pixels else planes_at,
            extent0=extent0,
            extent1=extent1,
            columns=along[0],
        )
    return None


COPY_LINES = NativeFunction("transposition", "copy_lines")
_SHORTEST_BYTES, _LONGEST_BYTES = 16, 2048
"""Of lines: a register's, and what numpy copies as quickly."""
_OUTER_AXES = 2


def lines_work(source: Array, destination: Array, threads: int) -> Work | None:
    """Work that copies lines which lie together on both sides; None where they do not, or are long.

    Along the lines the destination may be longer; there it becomes zero.
    """
    size = destination.itemsize
    steps = zip(source.shape, source.strides, destination.strides, strict=True)
    along = next((axis for axis, step in enumerate(steps) if step[0] > 1 and step[1] == step[2] == size), None)
    if along is None or source.dtype != destination.dtype or not source.size:
        return None
    if source.shape == destination.shape and len(joined_axes([destination, source])) == 1:
        return None
    beside: tuple[slice | int, ...] = (*(slice(None),) * along, 0)
    outer = joined_axes([destination[beside], source[beside]])
    count, written = source.shape[along] * size, destination.shape[along] * size
    if len(outer) > _OUTER_AXES or not _SHORTEST_BYTES <= count <= written <= _LONGEST_BYTES:
        return None
    (extent0, strides0), (extent1, strides1) = [(1, [0, 0])] * (_OUTER_AXES - len(outer)) + outer
    return COPY_LINES.work(
        min(chunks_for(source.size, threads), extent0),
        source=Lines(source.ctypes.data, strides0[1], strides1[1]),
        output=Lines(destination.ctypes.data, strides0[0], strides1[0]),
        extent0=extent0,
        extent1=extent1,
        count=count,
        written=written,
    )


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


@frozen(eq=False)
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
    # Only sizes count, and numpy cannot stride types of others whose text it does not know, such as FP8 E5M2's `<f1`.
    element = np.empty(1, np.dtype((np.void, dtype.itemsize)))
    source, destination = (
        np.lib.stride_tricks.as_strided(element, *one) for one in ((shape, strides), (output_shape, output_strides))
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
