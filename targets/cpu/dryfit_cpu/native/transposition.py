"""Copies between layouts: what lies together in the source lies apart in the output, and the other way round."""

from __future__ import annotations

from dryfit_cpu.compiler.block_transposition import (
    BYTE_BLOCK,
    CACHE_LINE,
    SHORT_BLOCK,
    WORD_BLOCK,
    transpose_bytes,
    transpose_shorts,
    transpose_words,
)
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.line_copies import clear_line, copy_line, finish_streams, stream_line
from dryfit_cpu.compiler.memory import STAGED_BYTES, staged_memory
from dryfit_cpu.native.indices import indices

AHEAD_BYTES, AHEAD_COLUMNS = 1024, 1024
"""So far ahead of what is copied cache lines are asked for."""


@native
def transpose(
    chunk: int,
    chunks: int,
    size: int,
    source: int,
    source_stride0: int,
    source_stride1: int,
    column_stride: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    row_stride: int,
    extent0: int,
    extent1: int,
    rows: int,
    columns: int,
    written_columns: int,
    tile_rows: int,
    tile_columns: int,
    source_pitch: int,
    output_pitch: int,
    stages_source: int,
    stages_output: int,
    streams: int,
) -> None:
    """Copy values of `size` bytes whose rows lie together in the source, and whose columns lie together in the output.

    Columns from `columns` to `written_columns` become zero. Strides are in bytes.

    Tiles are copied one after the other, in blocks. Where `stages_source` or `stages_output`, and where there is less
    than a block, the lines of a tile go through memory in which they are a pitch apart; a pitch that is the stride says
    that they have nothing between them that may not be copied as well. `streams`: past the cache.
    """
    block = WORD_BLOCK if size == 4 else SHORT_BLOCK if size == 2 else BYTE_BLOCK
    wide = _columns_of_block(size, block)
    # The first tile is shorter where the others then begin with cache lines.
    early = (output // size) % (CACHE_LINE // size) if streams and tile_rows < tile_columns < columns else 0
    down, across = (rows + tile_rows - 1) // tile_rows, (written_columns + early + tile_columns - 1) // tile_columns
    total = extent0 * extent1 * down * across
    staged_source = staged_memory()
    staged_output = staged_source + STAGED_BYTES // 2
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0, i1, tile = indices(index, extent1, down * across)
        # Along the shorter side first, so that what lies in one line is copied soon after each other.
        is_wide = tile_columns > tile_rows
        major = tile // (down if is_wide else across)
        minor = tile - major * (down if is_wide else across)
        row = (minor if is_wide else major) * tile_rows
        end = ((major if is_wide else minor) + 1) * tile_columns - early
        column = max(0, end - tile_columns)
        height, width = min(tile_rows, rows - row), min(end, written_columns) - column
        filled = max(0, min(width, columns - column))
        at = source + i0 * source_stride0 + i1 * source_stride1 + column * column_stride + row * size
        to = output + i0 * output_stride0 + i1 * output_stride1 + row * row_stride + column * size
        ahead = at + (AHEAD_BYTES if tile_rows >= tile_columns else AHEAD_COLUMNS * column_stride)
        is_part = height < block or width < wide
        read, read_pitch, written, written_pitch = at, column_stride, to, row_stride
        if stages_source or is_part or filled < width:
            read, read_pitch = staged_source, source_pitch
            _stage(read, read_pitch, at, column_stride, height * size, filled)
            for missing in range(filled, width):
                clear_line(read + missing * read_pitch, height * size)
        if stages_output or is_part:
            written, written_pitch = staged_output, output_pitch
        _transpose_tile(size, block, written, written_pitch, read, read_pitch, height, width, ahead, column_stride)
        if stages_output or is_part:
            _write(to, row_stride, written, written_pitch, width * size, height, streams)
    if streams:
        finish_streams()


@inlined
def _columns_of_block(size: int, block: int) -> int:
    """How many columns a block of so many rows has."""
    return block if size == 4 else 2 * block


@inlined
def _stage(to: int, pitch: int, at: int, step: int, count: int, lines: int) -> None:
    """Copy lines of `count` bytes; what lies between them too, where the pitch is the step."""
    if pitch == step:
        copy_line(to, at, max(0, (lines - 1) * step + count))
    else:
        for line in range(lines):
            copy_line(to + line * pitch, at + line * step, count)


@inlined
def _write(to: int, step: int, at: int, pitch: int, count: int, lines: int, streams: int) -> None:
    """The way back, perhaps past the cache."""
    if pitch == step:
        count, lines = (lines - 1) * step + count, 1
    for line in range(lines):
        if streams:
            stream_line(to + line * step, at + line * pitch, count)
        else:
            copy_line(to + line * step, at + line * pitch, count)


@inlined
def _transpose_tile(
    size: int,
    block: int,
    to: int,
    to_step: int,
    at: int,
    step: int,
    rows: int,
    columns: int,
    ahead: int,
    ahead_step: int,
) -> None:
    """Transpose blocks along the longer side, of which the last overlaps the one before; or one that sticks out.

    What sticks out of a row is written before the rows that it reaches into.
    """
    wide = _columns_of_block(size, block)
    last_row, last_column = max(0, rows - block), max(0, columns - wide)
    if rows >= columns:
        whole, to_next, at_next = rows // block, block * to_step, block * size
        to_last, at_last = last_row * to_step, last_row * size
        is_whole = whole * block == rows
        for start in range(0, columns, wide):
            column = min(start, last_column)
            there, here = to + column * size, at + column * step
            there_ahead = ahead + column * ahead_step
            _transpose_blocks(size, there, to_step, here, step, whole, to_next, at_next, there_ahead, ahead_step)
            if not is_whole:
                _transpose_blocks(
                    size, there + to_last, to_step, here + at_last, step, 1, 0, 0, there_ahead, ahead_step
                )
    else:
        whole, to_next, at_next = columns // wide, wide * size, wide * step
        to_last, at_last = last_column * size, last_column * step
        is_whole = whole * wide == columns
        for start in range(0, rows, block):
            row = min(start, last_row)
            there, here = to + row * to_step, at + row * size
            there_ahead = ahead + row * size
            _transpose_blocks(size, there, to_step, here, step, whole, to_next, at_next, there_ahead, ahead_step)
            if not is_whole:
                _transpose_blocks(
                    size, there + to_last, to_step, here + at_last, step, 1, 0, 0, there_ahead, ahead_step
                )


@outlined
def _transpose_blocks(
    size: int,
    to: int,
    to_step: int,
    at: int,
    step: int,
    blocks: int,
    to_next: int,
    at_next: int,
    ahead: int,
    ahead_step: int,
) -> int:
    """Transpose so many blocks of values of this size; returns how many."""
    if size == 4:
        transpose_words(to, to_step, at, step, blocks, to_next, at_next, ahead, ahead_step)
    elif size == 2:
        transpose_shorts(to, to_step, at, step, blocks, to_next, at_next, ahead, ahead_step)
    else:
        transpose_bytes(to, to_step, at, step, blocks, to_next, at_next, ahead, ahead_step)
    return blocks
