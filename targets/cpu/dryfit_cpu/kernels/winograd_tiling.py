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
_STRIP_BYTES = 1 << 22
"""Transformed values and products of a strip. A larger image is convolved in several: the more tiles there are in one,
the less often the weights are read; measured on 1 MiB of second-level cache before 32 of the third."""


@attrs.frozen
class Tiling:
    """How an output is cut into tiles and strips.

    Attributes:
        size: extent of an output tile.
        window: the geometry.
    """

    size: int
    window: Window

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
        """Tiles of a strip: all of them, or as many whole register blocks as the strip has room for."""
        C, K = self.window.input[1], self.window.output[1]
        room = _STRIP_BYTES // (4 * (C + K + 2 * _PITCH_PADDING) * self.positions)
        rows = current_tier().rows
        return min(self.tiles, max(rows, room // rows * rows))

    def plane_shape(self, channels: int) -> tuple[int, int, int]:
        """(positions, tiles, values from tile to tile) of a strip."""
        return self.positions, self.strip_tiles, channels + _PITCH_PADDING

    def strips(self) -> Iterator[tuple[int, int]]:
        """(first tile, tiles) of each strip."""
        for first in range(0, self.tiles, self.strip_tiles):
            yield first, min(self.strip_tiles, self.tiles - first)

    @property
    def workspace_bytes(self) -> int:
        """Room for the transformed values and the products of a strip."""
        return sum(fp32_bytes(self.plane_shape(extents[1])) for extents in (self.window.input, self.window.output))
