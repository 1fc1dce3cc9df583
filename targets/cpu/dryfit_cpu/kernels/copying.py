"""Pointwise work over arrays of any strides: what several kernels use to copy, cast and combine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.codes import FIRST, NONE
from dryfit_cpu.compiler.native import NativeFunction, Work
from dryfit_cpu.descriptors import Elements, Extents, Function, Lines
from dryfit_cpu.kernels.operands import element_code, require_extents
from dryfit_cpu.kernels.tiles import STREAMED_BYTES, TileShape, tiling

_POINTWISE = NativeFunction("pointwise", "pointwise")
TRANSPOSE = NativeFunction("transposition", "transpose")
_AXES = 4
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
    values = [np.broadcast_to(operand, output.shape) for operand in operands]
    arrays = {"output": output, **{name: values[min(place, len(values) - 1)] for place, name in enumerate("abc")}}
    return [
        _POINTWISE.work(chunks, operation=operation, inner=inner, outer=outer, **arguments)
        for chunks, arguments in placed_arguments(arrays, threads)
    ]


def copy_work(source: Array, destination: Array, threads: int) -> list[Work]:
    """Work that copies between types and layouts; FP32 to a narrow type rounds to nearest even."""
    turned = transposition_work(np.broadcast_to(source, destination.shape), destination, threads)
    if turned is not None:
        return [turned]
    return pointwise_work(FIRST, [source], destination, threads)


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
    arrays: Mapping[str, Array], threads: int, *, has_kinds: bool = True
) -> Iterator[tuple[int, dict[str, Elements | Extents]]]:
    """(chunks, arguments) of each call of a native function that goes through arrays of one shape together.

    Of arrays without elements there is none.
    Axes over which all arrays step evenly are joined; what is left beyond four axes is a call for each index. The
    arguments are `extents`, and the arrays by their names.

    Args:
        arrays: by the names that the function has for them; the first decides the order of the axes.
        threads: that share the work.
        has_kinds: whether the function has to know the types of elements, and is not told their size otherwise.
    """
    shape = next(iter(arrays.values())).shape
    for name, array in arrays.items():
        require_extents(array.shape, shape, f"operand {name!r}")
    if not all(array.size for array in arrays.values()):
        return
    axes = joined_axes(list(arrays.values()))
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
