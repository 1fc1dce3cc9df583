"""Copies of lines that stay as they are, between layouts that differ in what follows a line."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.line_copies import copy_padded_line
from dryfit_cpu.descriptors import Chunk, Lines
from dryfit_cpu.native.indices import share


@native
def copy_lines(
    chunk: Chunk, source: Lines, output: Lines, extent0: int, extent1: int, count: int, written: int
) -> None:
    """Copy lines of `count` bytes, and write zeros behind each up to `written` bytes. Strides are in bytes."""
    # Only the outer axis is cut: lines are short, and a chunk of fewer of them than an inner axis has is not worth it.
    for i0 in range(*share(chunk, extent0)):
        at, to = source.address + i0 * source.stride0, output.address + i0 * output.stride0
        for i1 in range(extent1):
            copy_padded_line(to + i1 * output.stride1, at + i1 * source.stride1, count, written)
