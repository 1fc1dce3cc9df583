"""Copies between layouts: what lies together in the source lies apart in the output, and the other way round."""

from __future__ import annotations

from dryfit_cpu.compiler.block_transposition import (
    LINE_BYTES,
    PIECE_BYTES,
    bytes_across,
    bytes_from_pieces,
    bytes_to_pieces,
    shorts_across,
    shorts_from_pieces,
    shorts_to_pieces,
    words_across,
    words_from_pieces,
    words_to_pieces,
)
from dryfit_cpu.compiler.compilation import inlined, native, outlined
from dryfit_cpu.compiler.line_copies import CACHE_LINE, clear_line, copy_line, finish_streams, stream_line
from dryfit_cpu.compiler.memory import SPARE_BYTES, STAGED_BYTES, staged_memory
from dryfit_cpu.native.indices import indices


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
    makes_pixels: int,
    to_pieces: int,
    tile_rows: int,
    tile_columns: int,
    source_pitch: int,
    output_pitch: int,
    stages_source: int,
    stages_output: int,
    streams: int,
    ahead: int,
    ahead_pieces: int,
) -> None:
    """Copy values of `size` bytes whose rows lie together in the source, and whose columns lie together in the output.

    Columns from `columns` to `written_columns` become zero. Strides are in bytes.

    Tiles are copied one after the other, in blocks: `to_pieces` from lines of the source, else from pieces of it to
    lines of the output. Where `stages_source` or `stages_output`, and where there is less than a block, a tile goes
    through memory in which its rows are a pitch apart; a pitch that is the stride says that they have nothing between
    them that may not be copied as well. `streams`: past the cache. `ahead` and `ahead_pieces`: how many bytes ahead
    memory is asked for. Where it `makes_pixels`, columns are few, and tiles follow each other along them first.
    """
    piece = _values_of_piece(size)
    line = piece * (LINE_BYTES // PIECE_BYTES)
    # The first tile is shorter where the others then begin with cache lines.
    is_early = not makes_pixels and tile_columns < columns
    early = (output // size) % (CACHE_LINE // size) if is_early else 0
    down, across = (rows + tile_rows - 1) // tile_rows, (written_columns + early + tile_columns - 1) // tile_columns
    total = extent0 * extent1 * down * across
    spare = staged_memory()
    staged_source = spare + SPARE_BYTES
    staged_output = staged_source + (STAGED_BYTES - SPARE_BYTES) // 2
    if written_columns > columns:
        clear_line(spare, tile_rows * size + LINE_BYTES)
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0, i1, tile = indices(index, extent1, down * across)
        # Along the shorter side first, so that what lies in one line is copied soon after each other.
        major = tile // (across if makes_pixels else down)
        minor = tile - major * (across if makes_pixels else down)
        row = (major if makes_pixels else minor) * tile_rows
        end = ((minor if makes_pixels else major) + 1) * tile_columns - early
        column = max(0, end - tile_columns)
        height, width = min(tile_rows, rows - row), min(end, written_columns) - column
        filled = max(0, min(width, columns - column))
        at = source + i0 * source_stride0 + i1 * source_stride1 + column * column_stride + row * size
        to = output + i0 * output_stride0 + i1 * output_stride1 + row * row_stride + column * size
        read, read_pitch, written, written_pitch = at, column_stride, to, row_stride
        is_short = height < line if to_pieces else width < line
        # Pieces that are longer than the rows reach into the next ones; the last would into nobody's memory.
        is_narrow = not to_pieces and height < piece
        stages = (
            stages_source != 0 or is_short or (filled < width and not to_pieces) or (is_narrow and width < 2 * line)
        )
        is_part = is_short or (width < piece and to_pieces != 0)
        if stages:
            read, read_pitch = staged_source, source_pitch
            _stage(read, read_pitch, at, column_stride, height * size, filled)
            if not to_pieces:
                for missing in range(filled, width):
                    clear_line(read + missing * read_pitch, height * size)
        if stages_output or is_part:
            written, written_pitch = staged_output, output_pitch
        tail_blocks = 1
        if to_pieces:
            count, last = max(1, height // line), max(0, height - line)
            tail, tail_pitch = written + last * written_pitch, written_pitch
            _copy_tile(
                size,
                to_pieces,
                makes_pixels,
                read,
                read_pitch,
                written,
                written_pitch,
                filled,
                width,
                height,
                count,
                tail,
                tail_pitch,
                tail_blocks,
                spare,
                ahead,
                ahead_pieces,
            )
        else:
            count, last = max(1, width // line), max(0, width - line)
            tail, tail_pitch = read + last * read_pitch, read_pitch
            if is_narrow and not stages:
                count, tail_blocks, tail, tail_pitch = width // line - 1, 2, staged_source, source_pitch
                _stage(
                    tail, tail_pitch, at + (width - 2 * line) * column_stride, column_stride, height * size, 2 * line
                )
            _copy_tile(
                size,
                to_pieces,
                makes_pixels,
                written,
                written_pitch,
                read,
                read_pitch,
                height,
                height,
                width,
                count,
                tail,
                tail_pitch,
                tail_blocks,
                spare,
                ahead,
                ahead_pieces,
            )
        if stages_output or is_part:
            _write(to, row_stride, written, written_pitch, width * size, height, streams)
    if streams:
        finish_streams()


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
def _copy_tile(
    size: int,
    to_pieces: int,
    is_across: int,
    at: int,
    step: int,
    pieces: int,
    piece_step: int,
    lines: int,
    all_lines: int,
    length: int,
    blocks: int,
    last_pieces: int,
    last_step: int,
    last_blocks: int,
    spare: int,
    ahead: int,
    ahead_pieces: int,
) -> None:
    """Copy between lines and pieces in blocks, of which the last overlap those before.

    Of `length` values along the lines, those behind so many blocks are in the last ones, of pieces of their own.
    """
    values = _values_of_piece(size)
    line = values * (LINE_BYTES // PIECE_BYTES)
    last = length - last_blocks * line
    start, groups = 0, max(1, all_lines // values)
    while True:
        here, near, left = at + start * step, pieces + start * size, lines - start
        _copy_blocks(
            size, to_pieces, is_across, here, step, near, piece_step, left, groups, spare, blocks, ahead, ahead_pieces
        )
        if length > blocks * line:
            here, near = here + last * size, last_pieces + start * size
            _copy_blocks(
                size,
                to_pieces,
                is_across,
                here,
                step,
                near,
                last_step,
                left,
                groups,
                spare,
                last_blocks,
                ahead,
                ahead_pieces,
            )
        if start + groups * values >= all_lines:
            break
        start, groups = all_lines - values, 1


@inlined
def _values_of_piece(size: int) -> int:
    return PIECE_BYTES // 4 if size == 4 else PIECE_BYTES // 2 if size == 2 else PIECE_BYTES


@outlined
def _copy_blocks(
    size: int,
    to_pieces: int,
    is_across: int,
    at: int,
    step: int,
    pieces: int,
    piece_step: int,
    lines: int,
    groups: int,
    spare: int,
    blocks: int,
    ahead: int,
    ahead_pieces: int,
) -> int:
    """Copy so many blocks of values of this size; returns how many."""
    if to_pieces:
        if size == 4:
            words_to_pieces(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
        elif size == 2:
            shorts_to_pieces(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
        else:
            bytes_to_pieces(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
    elif is_across:
        if size == 4:
            words_across(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
        elif size == 2:
            shorts_across(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
        else:
            bytes_across(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
    elif size == 4:
        words_from_pieces(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
    elif size == 2:
        shorts_from_pieces(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
    else:
        bytes_from_pieces(at, step, pieces, piece_step, lines, groups, spare, blocks, ahead, ahead_pieces)
    return blocks
