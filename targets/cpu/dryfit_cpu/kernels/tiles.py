"""In which tiles an array is transposed, so that both sides of a tile stay in the cache while it is copied."""

from __future__ import annotations

import math

import attrs

from dryfit_cpu.compiler.tier import current_tier

STREAMED_BYTES = 16 * 1024 * 1024
"""Arrays as large are written past the cache, as little of them would be left in it. Measured on Zen 4 with 32 MB of
shared cache: half as much is slower past it."""

_BLOCKS = {4: (current_tier().lanes, current_tier().lanes), 2: (8, 16), 1: (16, 32)}
"""Size of a value -> rows and columns of a block that is transposed in registers."""
_CACHE_LINE = 64
_WAYS, _WAY_BYTES = 8, 4096
"""Of the smallest first-level cache: how many lines that are as far apart it holds."""
_TILE_BYTES, _STAGED_TILE_BYTES, _STREAMED_TILE_BYTES = 8 * 1024, 16 * 1024, 32 * 1024
"""Of one side of a tile: where neither side is staged, where both are, which then fill the smallest first-level cache,
and where only the output is, whose lines are the longer."""
_STAGED_BYTES = 40 * 1024
"""Of a side whose lines are short, with the bytes between them."""
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
        if self.size not in _BLOCKS:
            return False
        block_rows, block_columns = _BLOCKS[self.size]
        shorter, longer = sorted((self.rows, self.columns))
        return 8 * shorter >= block_rows and shorter > 1 and longer >= block_columns

    @property
    def makes_pixels(self) -> bool:
        """Whether few long lines become many short ones, and not the other way round."""
        return self.columns <= self.rows


def tiling(shape: TileShape, *, streams: bool) -> dict[str, int]:
    """The arguments of `native.transposition.transpose` that say how it goes through the tiles.

    Args:
        shape: what is transposed.
        streams: whether the output may be written past the cache.
    """
    size, makes_pixels = shape.size, shape.makes_pixels
    block_rows, block_columns = _BLOCKS[size]
    streams = streams and not (makes_pixels and shape.columns * size > _LONGEST_PIXEL_BYTES)
    if not makes_pixels:
        short = min(shape.rows, _CACHE_LINE // size)
    else:
        short = shape.columns if streams else min(shape.columns, block_columns)
    line = max(short, block_columns) * size
    tile = (_STAGED_TILE_BYTES if makes_pixels else _STREAMED_TILE_BYTES) if streams else _TILE_BYTES
    long = min(tile // line, _STAGED_BYTES // (line + _CACHE_LINE)) // _CACHE_LINE * _CACHE_LINE
    rows, columns = (min(shape.rows, long), short) if makes_pixels else (short, min(shape.columns, long))
    source_pitch, output_pitch = _pitch(rows * size, shape.source_step), _pitch(columns * size, shape.output_step)
    if rows == shape.rows and not shape.is_padded and 0 < shape.source_step <= source_pitch:
        source_pitch = shape.source_step
    if columns * size == shape.columns * size == shape.output_step:
        output_pitch = shape.output_step
    crowds_source = _crowds_cache(shape.source_step, min(block_columns, shape.columns), block_rows * size)
    crowds_output = _crowds_cache(shape.output_step, min(block_rows, shape.rows), block_columns * size)
    return {
        "tile_rows": rows,
        "tile_columns": columns,
        "source_pitch": source_pitch,
        "output_pitch": output_pitch,
        "stages_source": makes_pixels and (streams or crowds_source),
        "stages_output": streams or (not makes_pixels and crowds_output),
        "streams": streams,
    }


def _crowds_cache(step: int, lines: int, piece_bytes: int) -> bool:
    """Whether lines that are gone through piece by piece push each other out of the first-level cache meanwhile.

    Lines at equal distances lie in few of its sets where the distance and its size have a large common divisor.
    """
    sets = _WAY_BYTES // max(_CACHE_LINE, math.gcd(step, _WAY_BYTES))
    return piece_bytes < _CACHE_LINE and lines > _WAYS * sets


def _pitch(line_bytes: int, step: int) -> int:
    """From line to line where they are staged: another cache line than the one before ends in, and not their step."""
    pitch = (line_bytes // _CACHE_LINE + 1) * _CACHE_LINE
    return pitch + _CACHE_LINE if pitch == step else pitch
