"""Pointwise work over arrays of any strides: what several kernels use to copy, cast and combine.

An array is transposed in tiles, so that both sides of a tile stay in the cache while it is copied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array
from dryfit_cpu.codes import FIRST, NONE
from dryfit_cpu.compiler.native import NativeFunction, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import Elements, Extents, Function, Lines, TransposedTiles
from dryfit_cpu.kernels.operands import element_code, require_extents

_POINTWISE, _COPY = NativeFunction("pointwise", "pointwise"), NativeFunction("pointwise", "copy")
TRANSPOSE = NativeFunction("transposition", "transpose")
_AXES = 4
_SHORT_ROW = 8
"""Elements of a row that take longer to begin than to copy."""
_CHUNK_ELEMENTS = 4096
"""Elements that are worth a chunk of their own: about a microsecond's work."""

Axis = tuple[int, list[int]]
"""Extent, and each array's stride in bytes."""

NO_FUNCTION = Function(NONE, 0.0, 0.0)


def pointwise_work(
    operation: int,
    operands: Sequence[Array],
    output: Array,
    threads: int,
    outer: Function = NO_FUNCTION,
    inner: Function = NO_FUNCTION,
) -> list[Work]:
    """Work that computes `outer(operation(inner(first operand), others))`; operands broadcast to the output."""
    if operation == FIRST and inner == outer == NO_FUNCTION:
        return copy_work(operands[0], output, threads)
    values = [np.broadcast_to(operand, output.shape) for operand in operands]
    arrays = {"output": output, **{name: values[min(place, len(values) - 1)] for place, name in enumerate("abc")}}
    return [
        _POINTWISE.work(chunks, operation=operation, inner=inner, outer=outer, **arguments)
        for chunks, arguments in placed_arguments(arrays, threads)
    ]


def parts_along(axis: int, arrays: Sequence[Array], whole: Array) -> list[Array]:
    """The parts of an array that arrays go to which lie one behind the other along an axis."""
    return np.split(whole, np.cumsum([array.shape[axis] for array in arrays])[:-1], axis)


def copy_work(source: Array, destination: Array, threads: int) -> list[Work]:
    """Work that copies between types and layouts; FP32 to a narrow type rounds to nearest even."""
    turned = transposition_work(np.broadcast_to(source, destination.shape), destination, threads)
    if turned is not None:
        return [turned]
    arrays = {"output": destination, "source": np.broadcast_to(source, destination.shape)}
    return [
        _COPY.work(chunks, **arguments)
        for chunks, arguments in placed_arguments(arrays, threads, has_long_rows=source.dtype == destination.dtype)
    ]


_COPIED_AS: Mapping[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.int32): np.dtype(np.float32),
    np.dtype(np.bool_): np.dtype(np.int8),
    np.dtype(np.uint8): np.dtype(np.int8),
}
"""Types whose bits are copied as those of another of the same size."""


def copied_as(array: Array) -> Array:
    """A view of a type that copies know; INT64 as pairs of FP32, along an axis of their own."""
    if array.dtype == np.int64:
        return array[..., None].view(np.float32)
    return array.view(_COPIED_AS.get(array.dtype, array.dtype))


def bit_copy_work(source: Array, destination: Array, threads: int) -> list[Work]:
    """Work that copies values of one type as they are, whatever type that is."""
    return copy_work(copied_as(source), copied_as(destination), threads)


def transposition_work(source: Array, destination: Array, threads: int) -> Work | None:
    """Work that copies values whose layout changes, in blocks; None where nothing lies together, or too little.

    The axis that lies together in the destination is the columns', the one that does in the source the rows'. Along the
    columns the destination may be longer; there it becomes zero.
    """
    size = destination.itemsize
    if source.dtype != destination.dtype or not source.size:
        return None
    axes, written = _axes_beside_padding(source, destination)
    columns = next((axis for axis in axes if axis[1][0] == size), None)
    rows = next((axis for axis in axes if axis[1][1] == size and axis is not columns), None)
    if columns is None or rows is None or len(axes) > _AXES or (written and columns is not axes[-1]):
        return None
    written = written or columns[0]
    shape = TileShape(
        size, rows[0], written, source_step=columns[1][1], output_step=rows[1][0], is_padded=written > columns[0]
    )
    if not shape.is_worthwhile:
        return None
    outer = [axis for axis in axes if axis is not columns and axis is not rows]
    (extent0, strides0), (extent1, strides1) = [(1, [0, 0])] * (2 - len(outer)) + outer
    return TRANSPOSE.work(
        chunks_for(source.size, threads),
        size=size,
        source=Lines(source.ctypes.data, strides0[1], strides1[1], columns[1][1]),
        output=Lines(destination.ctypes.data, strides0[0], strides1[0], rows[1][0]),
        extent0=extent0,
        extent1=extent1,
        rows=rows[0],
        columns=columns[0],
        written_columns=written,
        tiles=tiling(shape, streams=threads == 1 and destination.nbytes >= STREAMED_BYTES),
    )


def _axes_beside_padding(source: Array, destination: Array) -> tuple[list[Axis], int]:
    """The axes, joined where they can be, and how long the one along which the destination is longer is in it, or 0."""
    padded = next((axis for axis, extent in enumerate(source.shape) if extent < destination.shape[axis]), None)
    if padded is None:
        return joined_axes([destination, source]), 0
    first: tuple[slice | int, ...] = (*(slice(None),) * padded, 0)
    others = [axis for axis in joined_axes([destination[first], source[first]]) if axis[0] > 1]
    padding = (source.shape[padded], [destination.strides[padded], source.strides[padded]])
    return [*others, padding], destination.shape[padded]


def chunks_for(elements: int, threads: int) -> int:
    """How many chunks are worth their while."""
    return 1 if threads == 1 else min(4 * threads, max(1, elements // _CHUNK_ELEMENTS))


def placed_arguments(
    arrays: Mapping[str, Array], threads: int, *, has_kinds: bool = True, has_long_rows: bool = False
) -> Iterator[tuple[int, dict[str, Elements | Extents]]]:
    """(chunks, arguments) of each call of a native function that goes through arrays of one shape together.

    Of arrays without elements there is none.
    Axes over which all arrays step evenly are joined; what is left beyond four axes is a call for each index. The
    arguments are `extents`, and the arrays by their names.

    The first array decides the order of the axes; with `has_long_rows` a short last axis changes places with the one
    before. A function without `has_kinds` need not know the types of elements.
    """
    shape = next(iter(arrays.values())).shape
    for name, array in arrays.items():
        require_extents(array.shape, shape, f"operand {name!r}")
    if not all(array.size for array in arrays.values()):
        return
    axes = joined_axes(list(arrays.values()))
    if has_long_rows and len(axes) > 1 and axes[-1][0] < min(_SHORT_ROW, axes[-2][0]):
        axes[-2:] = axes[:-3:-1]
    outer, inner = axes[:-_AXES], axes[-_AXES:]
    padded = [(1, [0] * len(arrays))] * (_AXES - len(inner)) + inner
    extents = Extents(*(extent for extent, _ in padded))
    for index in np.ndindex(*(extent for extent, _ in outer)):
        elements: dict[str, Elements | Extents] = {"extents": extents}
        for number, (name, array) in enumerate(arrays.items()):
            start = sum(i * strides[number] for i, (_, strides) in zip(index, outer, strict=True))
            steps = (strides[number] for _, strides in padded)
            elements[name] = Elements(array.ctypes.data + start, element_code(array) if has_kinds else 0, *steps)
        yield chunks_for(math.prod(extents), threads), elements


def joined_axes(arrays: Sequence[Array]) -> list[Axis]:
    """(extent, stride of each array) of the axes, widest output stride first, neighbours joined where they can be."""
    axes = [
        (extent, [array.strides[axis] for array in arrays])
        for axis, extent in enumerate(arrays[0].shape)
        if extent != 1
    ]
    # The order of the output: stores that jump cost more than loads that do, as a line is read before it is written in
    # part.
    axes.sort(key=lambda axis: -abs(axis[1][0]))
    joined: list[Axis] = []
    for extent, strides in axes:
        # Four axes are enough for native code once those that all arrays step over evenly are one: most tensors are one
        # long run then, whatever their rank.
        if joined and all(outer == stride * extent for outer, stride in zip(joined[-1][1], strides, strict=True)):
            joined[-1] = (joined[-1][0] * extent, strides)
        else:
            joined.append((extent, strides))
    return joined or [(1, [array.itemsize for array in arrays])]


STREAMED_BYTES = 12 * 1024 * 1024
"""Arrays as large are written past the cache. Measured on Zen 4 with 32 MB of shared cache: writing 6 MiB so gains less
than reading them next loses."""

_PIECE_BYTES, _LINE_BYTES = 16, min(32, 4 * current_tier().lanes)
"""Of a piece and a line of the blocks that are transposed in registers."""
_CACHE_LINE = 64
_WAYS, _WAY_BYTES = 8, 4096
"""Of the smallest first-level cache: how many lines that are as far apart it holds."""
_BURST_BYTES, _AHEAD_BYTES = 512, 512
"""Of a long line: what is copied before the next one is, at most; and how far ahead it is asked for."""
_TILE_BYTES, _STREAMED_TILE_BYTES = 12 * 1024, 16 * 1024
"""Of the pixels of a tile, which are gone through several times: little enough to stay in the smallest first-level
cache beside as much of the lines, and of the next ones where they have no copy on the stack."""
_STAGED_BYTES = 40 * 1024
"""Of one side of a tile on the stack, with the bytes between its lines."""
_LONGEST_PIXEL_BYTES = 256
"""What is written past the cache is written a pixel at once, or not so."""


@frozen
class TileShape:
    """What is transposed.

    Attributes:
        size: bytes of a value.
        rows: how many values lie together in the source.
        columns: how many lie together in the output, with what becomes zero.
        source_step: bytes from column to column in the source.
        output_step: bytes from row to row in the output.
        is_padded: whether something becomes zero.
    """

    size: int
    rows: int
    columns: int
    source_step: int
    output_step: int
    is_padded: bool

    @property
    def is_worthwhile(self) -> bool:
        """Whether blocks are quicker than copying value by value: there is one, and no more than an eighth is idle."""
        if self.size not in {1, 2, 4}:
            return False
        shorter, longer = sorted((self.rows, self.columns))
        return shorter > 1 and 8 * self.size * shorter >= _PIECE_BYTES and self.size * longer >= _PIECE_BYTES

    @property
    def makes_pixels(self) -> bool:
        """Whether few long lines become many short ones, and not the other way round."""
        return self.columns <= self.rows


def tiling(shape: TileShape, *, streams: bool) -> TransposedTiles:
    """How `native.transposition.transpose` goes through the tiles.

    One that streams may write the output past the cache.
    """
    size, makes_pixels, line = shape.size, shape.makes_pixels, _LINE_BYTES // shape.size
    streams = streams and not (makes_pixels and shape.columns * size > _LONGEST_PIXEL_BYTES)
    far, near = (shape.rows, shape.columns) if makes_pixels else (shape.columns, shape.rows)
    # Else the pixels are the lines of the blocks, and what is read of the source the pieces.
    to_pieces = makes_pixels and (streams or shape.is_padded or near * size < 2 * _LINE_BYTES)
    long, short = _extents(near, size, streams=streams, is_strip=not to_pieces and (makes_pixels or streams))
    long, short = min(far, long), min(near, short)
    if to_pieces:
        stages_source, stages_output = False, streams or _crowds_cache(shape.output_step, long)
    else:
        is_crowded = _crowds_cache(shape.source_step, line if makes_pixels else long)
        stages_source, stages_output = is_crowded or shape.source_step < size, streams
    stages_pixels = stages_output if makes_pixels else stages_source or shape.is_padded
    # There is room for what is staged, and for tiles of less than a block: for so many pixels, and for such lines.
    if stages_pixels or near % short or near * size < _PIECE_BYTES:
        long = min(long, _STAGED_BYTES // (short * size + 2 * _CACHE_LINE) // line * line)
    long = min(long, (_STAGED_BYTES // short - 2 * _CACHE_LINE) // _LINE_BYTES * line)
    rows, columns = (long, short) if makes_pixels else (short, long)
    source_pitch, output_pitch = _pitch(rows * size, shape.source_step), _pitch(columns * size, shape.output_step)
    if rows == shape.rows and not shape.is_padded and size <= shape.source_step <= source_pitch:
        source_pitch = shape.source_step
    if columns * size == shape.columns * size == shape.output_step:
        output_pitch = shape.output_step
    return TransposedTiles(
        makes_pixels=makes_pixels,
        to_pieces=to_pieces,
        rows=rows,
        columns=columns,
        source_pitch=source_pitch,
        output_pitch=output_pitch,
        stages_source=stages_source,
        stages_output=stages_output,
        streams=streams,
        ahead=0 if streams and not makes_pixels else _AHEAD_BYTES,
        ahead_pieces=_AHEAD_BYTES if makes_pixels else columns * shape.source_step,
    )


def _extents(near: int, size: int, *, streams: bool, is_strip: bool) -> tuple[int, int]:
    """How many values of a line and of a pixel there are in a tile, at most.

    `near` are the values of a whole pixel. A strip goes along the lines as far as it may, with a cache line of each
    pixel, instead of through whole pixels, which lie together.
    """
    line = _CACHE_LINE // size
    if is_strip:
        return _BURST_BYTES // size, line
    tile = (_STREAMED_TILE_BYTES if streams else _TILE_BYTES) // size
    long = min(_BURST_BYTES // size, max(1, tile // near // line) * line)
    return long, max(1, tile // long // line) * line


def _crowds_cache(step: int, lines: int) -> bool:
    """Whether lines that are gone through piece by piece push each other out of the first-level cache meanwhile.

    Lines at equal distances lie in few of its sets where the distance and its size have a large common divisor.
    """
    sets = _WAY_BYTES // max(_CACHE_LINE, math.gcd(step, _WAY_BYTES))
    # A distance of 4096 bytes puts all lines into one set of 8: the ninth pushes out the first before its next piece is
    # read. Images with 1024 columns of FP32 are such lines.
    return step > _CACHE_LINE and lines > _WAYS * sets


def _pitch(line_bytes: int, step: int) -> int:
    """From line to line where they are staged: another cache line than the one before ends in, and not their step."""
    pitch = (line_bytes // _CACHE_LINE + 1) * _CACHE_LINE
    return pitch + _CACHE_LINE if pitch == step else pitch
