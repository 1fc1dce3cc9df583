"""Copies of lines that stay as they are, between layouts that differ in what follows a line."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.line_copies import copy_padded_line


@native
def copy_lines(
    chunk: int,
    chunks: int,
    source: int,
    source_stride0: int,
    source_stride1: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    extent0: int,
    extent1: int,
    count: int,
    written: int,
) -> None:
    """Copy lines of `count` bytes, and write zeros behind each up to `written` bytes. Strides are in bytes."""
    for i0 in range(extent0 * chunk // chunks, extent0 * (chunk + 1) // chunks):
        at, to = source + i0 * source_stride0, output + i0 * output_stride0
        for i1 in range(extent1):
            copy_padded_line(to + i1 * output_stride1, at + i1 * source_stride1, count, written)
