"""In which tiles an array is transposed, so that both sides of a tile stay in the cache while it is copied."""

from __future__ import annotations

import math

import attrs

from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import TransposedTiles

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


@attrs.frozen
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

    Args:
        shape: what is transposed.
        streams: whether the output may be written past the cache.
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

    Args:
        near: values of a whole pixel.
        size: bytes of a value.
        streams: whether the output is written past the cache.
        is_strip: whether a tile goes along the lines as far as it may, with a cache line of each pixel, instead of
            through whole pixels, which lie together.
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
