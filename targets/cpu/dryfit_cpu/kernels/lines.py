"""Copies of short lines, one after the other, to where something follows them or does no longer: padded layouts."""

from __future__ import annotations

from dryfit.target.kernels import Array
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import Lines
from dryfit_cpu.kernels.copying import chunks_for, joined_axes
from dryfit_cpu.steps import Work

COPY_LINES = NativeFunction("lines", "copy_lines")
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
