"""How an output is cut into Winograd's tiles, and those into strips that the caches take."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.operands import fp32_bytes
from dryfit_cpu.kernels.windows import Window

_PITCH_PADDING = 16
"""Values between tiles, so that the tiles of a register block do not share sets of the first-level cache."""
_STRIP_BYTES = 3 << 18
"""Transformed values and products of a strip for each thread, which stay in its second-level cache. Measured on 1 MiB
of it: with 4 MiB a layer takes up to a third more time, where the cache is full of other things before, as it is in a
network."""
_STRIP_TILES = 28
"""A strip has as many for each thread nevertheless: with fewer the weights are read, or transformed, too often, and
threads wait for each other too often."""


@attrs.frozen
class Tiling:
    """How an output is cut into tiles and strips.

    Attributes:
        size: extent of an output tile.
        window: the geometry.
        input_words: words of four bytes that the channels of a transformed place take; products take one each.
        threads: how many work at a strip.
    """

    size: int
    window: Window
    input_words: int
    threads: int

    @property
    def positions(self) -> int:
        """Places in an input tile."""
        return (self.size + 2) ** 2

    @property
    def rows_and_columns(self) -> tuple[int, int]:
        """Tiles along an image's height and width."""
        rows, columns = (-(-extent // self.size) for extent in self.window.output[2:])
        return rows, columns

    @property
    def tiles(self) -> int:
        """Tiles of all images."""
        return self.window.output[0] * math.prod(self.rows_and_columns)

    @property
    def strip_tiles(self) -> int:
        """Tiles of a strip but the last: whole register blocks, unless the last strip would have next to nothing."""
        words = self.input_words + self.window.output[1] + 2 * _PITCH_PADDING
        room = self.threads * max(_STRIP_TILES, _STRIP_BYTES // (4 * words * self.positions))
        strips, rows = -(-self.tiles // room), current_tier().rows
        even = -(-self.tiles // strips)
        whole = -(-even // rows) * rows
        return whole if self.tiles - (strips - 1) * whole >= rows // 2 else even

    @property
    def plane_shapes(self) -> list[tuple[int, int, int]]:
        """(positions, tiles, words from tile to tile) of a strip's transformed values, and of its products.

        There is room for a register block, which may compute tiles that there are not.
        """
        tiles = max(self.strip_tiles, current_tier().rows)
        return [(self.positions, tiles, words + _PITCH_PADDING) for words in (self.input_words, self.window.output[1])]

    def strips(self) -> Iterator[tuple[int, int]]:
        """(first tile, tiles) of each strip."""
        for first in range(0, self.tiles, self.strip_tiles):
            yield first, min(self.strip_tiles, self.tiles - first)

    @property
    def workspace_bytes(self) -> int:
        """Room for the transformed values and the products of a strip."""
        return sum(map(fp32_bytes, self.plane_shapes))
