"""Copies between layouts: what lies together in the source lies apart in the output, and the other way round."""

from __future__ import annotations

from dryfit_cpu.compiler.block_transposition import (
    BYTE_BLOCK,
    SHORT_BLOCK,
    WORD_BLOCK,
    transpose_bytes,
    transpose_shorts,
    transpose_words,
)
from dryfit_cpu.compiler.compilation import native, outlined


@native
def transpose(
    chunk: int,
    chunks: int,
    size: int,
    source: int,
    source_stride0: int,
    source_stride1: int,
    source_column_stride: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_row_stride: int,
    extent0: int,
    extent1: int,
    rows: int,
    columns: int,
) -> None:
    """Copy values of `size` bytes whose rows lie together in the source, and whose columns lie together in the output.

    Rows and columns are at least a block long. Strides are in bytes.
    """
    block = WORD_BLOCK if size == 4 else SHORT_BLOCK if size == 2 else BYTE_BLOCK
    # A strip is a block of columns, all rows long; the last one overlaps the one before.
    strips = (columns + block - 1) // block
    total = extent0 * extent1 * strips
    whole = rows // block
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i01 = index // strips
        column = min((index - i01 * strips) * block, columns - block)
        i0 = i01 // extent1
        i1 = i01 - i0 * extent1
        at = source + i0 * source_stride0 + i1 * source_stride1 + column * source_column_stride
        to = output + i0 * output_stride0 + i1 * output_stride1 + column * size
        last = rows - block
        _transpose_blocks(size, to, output_row_stride, at, source_column_stride, whole)
        if whole * block < rows:
            _transpose_blocks(
                size, to + last * output_row_stride, output_row_stride, at + last * size, source_column_stride, 1
            )


@outlined
def _transpose_blocks(size: int, to: int, to_step: int, at: int, step: int, blocks: int) -> int:
    """Transpose so many blocks of values of this size; returns how many."""
    if size == 4:
        transpose_words(to, to_step, at, step, blocks)
    elif size == 2:
        transpose_shorts(to, to_step, at, step, blocks)
    else:
        transpose_bytes(to, to_step, at, step, blocks)
    return blocks
