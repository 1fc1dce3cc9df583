"""Copies between layouts: what lies together in the source lies apart in the output, and the other way round.

And between layouts that differ in little: a few planes and the pixels they make, and lines that are padded.
"""

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
from dryfit_cpu.compiler.line_copies import (
    BLOCK_PIXELS,
    CACHE_LINE,
    clear_line,
    copy_byte,
    copy_int,
    copy_line,
    copy_padded_line,
    copy_short,
    finish_streams,
    interleave_blocks,
    stream_line,
)
from dryfit_cpu.compiler.memory import SPARE_BYTES, STAGED_BYTES, clear_bytes, staged_memory
from dryfit_cpu.descriptors import Chunk, Lines, TransposedTiles
from dryfit_cpu.native.indices import indices, share


@native
def transpose(
    chunk: Chunk,
    size: int,
    source: Lines,
    output: Lines,
    extent0: int,
    extent1: int,
    rows: int,
    columns: int,
    written_columns: int,
    tiles: TransposedTiles,
) -> None:
    """Copy values of `size` bytes whose rows lie together in the source, and whose columns lie together in the output.

    Source steps are from column to column, output steps from row to row. Columns from `columns` to `written_columns`
    become zero. Strides are in bytes.

    Tiles are copied one after the other, in blocks: `to_pieces` from lines of the source, else from pieces of it to
    lines of the output. Where `stages_source` or `stages_output`, and where there is less than a block, a tile goes
    through memory in which its rows are a pitch apart; a pitch that is the step says that they have nothing between
    them that may not be copied as well. `streams`: past the cache. `ahead` and `ahead_pieces`: how many bytes ahead
    memory is asked for. Where it `makes_pixels`, columns are few, and tiles follow each other along them first.
    """
    makes_pixels, to_pieces, tile_rows, tile_columns = tiles[:4]
    piece, line = _values_of_piece(size), _values_of_piece(size) * (LINE_BYTES // PIECE_BYTES)
    # The first tile is shorter where the others then begin with cache lines.
    early = 0
    if not makes_pixels and tile_columns < columns:
        early = (output.address // size) % (CACHE_LINE // size)
    down, across = (rows + tile_rows - 1) // tile_rows, (written_columns + early + tile_columns - 1) // tile_columns
    # Both sides of a tile stay in the first-level cache. Row by row, one side would be touched at distances of whole
    # lines, each of which is evicted before its next value is due.
    spare = staged_memory()
    way, asked = (size, to_pieces, makes_pixels), (spare, tiles.ahead, tiles.ahead_pieces)
    staged_source = spare + SPARE_BYTES
    staged_output = staged_source + (STAGED_BYTES - SPARE_BYTES) // 2
    if written_columns > columns:
        clear_line(spare, tile_rows * size + LINE_BYTES)
    for index in range(*share(chunk, extent0 * extent1 * down * across)):
        i0, i1, tile = indices(index, extent1, down * across)
        # Along the shorter side first, so that what lies in one line is copied soon after each other.
        row_of_tiles, column_of_tiles = (tile // across, tile % across) if makes_pixels else (tile % down, tile // down)
        row = row_of_tiles * tile_rows
        end = (column_of_tiles + 1) * tile_columns - early
        column = max(0, end - tile_columns)
        height, width = min(tile_rows, rows - row), min(end, written_columns) - column
        filled = max(0, min(width, columns - column))
        at = source.address + i0 * source.stride0 + i1 * source.stride1 + column * source.step + row * size
        to = output.address + i0 * output.stride0 + i1 * output.stride1 + row * output.step + column * size
        read, read_pitch, written, written_pitch = at, source.step, to, output.step
        is_short = height < line if to_pieces else width < line
        # Pieces that are longer than the rows reach into the next ones; the last would into nobody's memory.
        is_narrow = not to_pieces and height < piece
        stages = (
            tiles.stages_source != 0
            or is_short
            or (filled < width and not to_pieces)
            or (is_narrow and width < 2 * line)
        )
        is_part = is_short or (width < piece and to_pieces != 0)
        if stages:
            read, read_pitch = staged_source, tiles.source_pitch
            _stage(read, read_pitch, at, source.step, height * size, filled)
            if not to_pieces:
                for missing in range(filled, width):
                    clear_line(read + missing * read_pitch, height * size)
        if tiles.stages_output or is_part:
            written, written_pitch = staged_output, tiles.output_pitch
        if to_pieces:
            count, last = max(1, height // line), max(0, height - line)
            tail = (written + last * written_pitch, written_pitch, 1)
            _copy_tile(way, read, read_pitch, (written, written_pitch, count), tail, filled, width, height, asked)
        else:
            count, last = max(1, width // line), max(0, width - line)
            tail = (read + last * read_pitch, read_pitch, 1)
            if is_narrow and not stages:
                count, tail = width // line - 1, (staged_source, tiles.source_pitch, 2)
                start = at + (width - 2 * line) * source.step
                _stage(tail[0], tail[1], start, source.step, height * size, 2 * line)
            _copy_tile(way, written, written_pitch, (read, read_pitch, count), tail, height, height, width, asked)
        if tiles.stages_output or is_part:
            _write(to, output.step, written, written_pitch, width * size, height, tiles.streams)
    if tiles.streams:
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
    way: tuple[int, int, int],
    at: int,
    step: int,
    pieces: tuple[int, int, int],
    tail: tuple[int, int, int],
    lines: int,
    all_lines: int,
    length: int,
    asked: tuple[int, int, int],
) -> None:
    """Copy between lines and pieces in blocks, of which the last overlap those before.

    Pieces and tail are (address, step, blocks): of `length` values along the lines, those behind the blocks of the
    pieces are in the tail's. Way and what is asked for are handed on.
    """
    values = _values_of_piece(way[0])
    line = values * (LINE_BYTES // PIECE_BYTES)
    last = length - tail[2] * line
    start, groups = 0, max(1, all_lines // values)
    while True:
        here, left = at + start * step, lines - start
        _copy_blocks(way, here, step, pieces[0] + start * way[0], pieces[1], left, groups, pieces[2], asked)
        if length > pieces[2] * line:
            _copy_blocks(
                way, here + last * way[0], step, tail[0] + start * way[0], tail[1], left, groups, tail[2], asked
            )
        if start + groups * values >= all_lines:
            break
        # The rest of the lines is one group, that overlaps the last one.
        start, groups = all_lines - values, 1


@inlined
def _values_of_piece(size: int) -> int:
    return PIECE_BYTES // 4 if size == 4 else PIECE_BYTES // 2 if size == 2 else PIECE_BYTES


@outlined
def _copy_blocks(
    way: tuple[int, int, int],
    at: int,
    step: int,
    pieces: int,
    piece_step: int,
    lines: int,
    groups: int,
    blocks: int,
    asked: tuple[int, int, int],
) -> int:
    """Copy so many blocks; returns how many.

    The way is (bytes of a value, whether lines become pieces, whether the lines are many), what is asked for (spare
    memory, bytes ahead in lines, bytes ahead in pieces).
    """
    size, to_pieces, is_across = way
    arguments = (at, step, pieces, piece_step, lines, groups, asked[0], blocks, asked[1], asked[2])
    if to_pieces:
        if size == 4:
            words_to_pieces(*arguments)
        elif size == 2:
            shorts_to_pieces(*arguments)
        else:
            bytes_to_pieces(*arguments)
    elif is_across:
        if size == 4:
            words_across(*arguments)
        elif size == 2:
            shorts_across(*arguments)
        else:
            bytes_across(*arguments)
    elif size == 4:
        words_from_pieces(*arguments)
    elif size == 2:
        shorts_from_pieces(*arguments)
    else:
        bytes_from_pieces(*arguments)
    return blocks


@native
def interleave(
    chunk: Chunk,
    number: int,
    size: int,
    planes: int,
    pitch: int,
    makes_pixels: int,
    clears: int,
    source: Lines,
    output: Lines,
    extent0: int,
    extent1: int,
    columns: int,
) -> None:
    """Copy values of `size` bytes, `planes` of which lie side by side in pixels that are `pitch` values apart.

    `number` is that of the interleaving; where it `clears`, what is left in a pixel becomes zero. Values of one plane
    lie together, and planes are a step apart. Strides and steps are in bytes.
    """
    planar, pixels_at = (source, output) if makes_pixels else (output, source)
    # The value behind the last pixel may be nobody's.
    blocks = (columns - (1 if pitch > planes and not clears else 0)) // BLOCK_PIXELS
    for index in range(*share(chunk, extent0 * extent1)):
        i0 = index // extent1
        i1 = index - i0 * extent1
        at = planar.address + i0 * planar.stride0 + i1 * planar.stride1
        pixels = pixels_at.address + i0 * pixels_at.stride0 + i1 * pixels_at.stride1
        interleave_blocks(number, at, planar.step, pixels, blocks)
        for column in range(blocks * BLOCK_PIXELS, columns):
            for place in range(planes):
                one = at + place * planar.step + column * size
                other = pixels + (column * pitch + place) * size
                if makes_pixels:
                    _copy_value(size, other, one)
                else:
                    _copy_value(size, one, other)
            if clears:
                clear_bytes(pixels + (column * pitch + planes) * size, (pitch - planes) * size)


@inlined
def _copy_value(size: int, to: int, at: int) -> None:
    if size == 4:
        copy_int(to, at)
    elif size == 2:
        copy_short(to, at)
    else:
        copy_byte(to, at)


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
