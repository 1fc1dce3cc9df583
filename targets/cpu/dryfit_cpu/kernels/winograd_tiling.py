"""How an output is cut into Winograd's tiles, those into strips that the caches take, and the work for a strip."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import Positions, TileGrid
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.operands import ImageOperand, fp32_bytes
from dryfit_cpu.kernels.windows import WindowGeometry

_PITCH_PADDING = 16
"""Values between tiles, so that the tiles of a register block do not share sets of the first-level cache."""
_STRIP_BYTES = 3 << 18
"""Transformed values and products of a strip for each thread, which stay in its second-level cache. Measured on 1 MiB
of it: with 4 MiB a layer takes up to a third more time, where the cache is full of other things before, as it is in a
network."""
_STRIP_TILES = 28
"""A strip has as many for each thread nevertheless: with fewer the weights are read, or transformed, too often, and
threads wait for each other too often."""


@frozen
class Tiling:
    """How an output is cut into tiles and strips.

    Attributes:
        size: extent of an output tile.
        window: the geometry.
        input_words: words of four bytes that the channels of a transformed place take; products take one each.
        threads: how many work at a strip.
        may_cut_channels: whether each half of the threads may keep to its own output channels.
    """

    size: int
    window: WindowGeometry
    input_words: int
    threads: int
    may_cut_channels: bool = False

    @property
    def positions(self) -> int:
        """Places in an input tile."""
        return (self.size + 2) ** 2

    # Threads that shared positions and tiles would read from each other half of what they transform and multiply. With
    # two cores that had last-level caches of their own, two threads then took as long as one for 64 channels, 56 x 56,
    # and in INT8 1.7 times as long (AMD EPYC, Zen 4). So the work is cut into parts, which follow each other in all
    # that is done for a strip: threads take their chunks from parts of their own.

    @property
    def tile_parts(self) -> int:
        """Parts with tiles of their own, one for each thread; 1 where there are too few tiles."""
        return self.threads if self.tiles >= self.threads * _STRIP_TILES else 1

    @property
    def channel_parts(self) -> int:
        """Parts with output channels of their own, in whole panels; 1 where tiles are cut.

        No more than two: each transforms all input tiles for itself, which takes a twentieth of the time in INT8.
        """
        is_even = self.threads % 2 == 0 and self.window.output[1] % (2 * PANEL_CHANNELS) == 0
        return 2 if self.may_cut_channels and is_even and self.tile_parts == 1 else 1

    @property
    def parts(self) -> int:
        """All parts."""
        return self.tile_parts * self.channel_parts

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
    def part_tiles(self) -> int:
        """Tiles of a part; the last one may have fewer."""
        return -(-self.tiles // self.tile_parts)

    @property
    def strip_tiles(self) -> int:
        """Tiles of a part in a strip but the last: whole register blocks, unless next to nothing would be left."""
        # Transformed values are 2.25 (tiles of 4) to 4 (tiles of 2) times the image. A strip of tiles is transformed,
        # multiplied and transformed back before the next begins, so that they never leave the second-level cache.
        words = self.input_words + self.window.output[1] // self.channel_parts + 2 * _PITCH_PADDING
        fitting = self.threads // self.channel_parts * (_STRIP_BYTES // (4 * words * self.positions))
        room, half = max(self.threads * _STRIP_TILES, fitting) // self.tile_parts, current_tier().rows // 2
        strips = -(-self.part_tiles // room)
        even, block = -(-self.part_tiles // strips), 2 * half if self.tile_parts == 1 else half
        whole = -(-even // block) * block
        return whole if self.part_tiles - (strips - 1) * whole >= half else even

    @property
    def plane_shapes(self) -> list[tuple[int, int, int, int]]:
        """(parts, positions, tiles, words from tile to tile) of a strip's transformed values, and of its products.

        There is room for a register block, which may compute tiles that there are not. Parts with channels of their own
        have their products together.
        """
        tiles = max(self.strip_tiles, current_tier().rows)
        return [
            (parts, self.positions, tiles, words + _PITCH_PADDING)
            for parts, words in ((self.parts, self.input_words), (self.tile_parts, self.window.output[1]))
        ]

    def strips(self) -> Iterator[tuple[int, int]]:
        """(first tile, tiles) of each strip in the first part; in the others it is as far from their beginning."""
        for first in range(0, self.part_tiles, self.strip_tiles):
            yield first, min(self.strip_tiles, self.part_tiles - first)

    def grid(self, first: int, tiles: int) -> TileGrid:
        """What native functions are told about a strip."""
        tile_step = self.part_tiles if self.tile_parts > 1 else 0
        channel_step = self.window.output[1] // self.channel_parts if self.channel_parts > 1 else 0
        return TileGrid(*self.rows_and_columns, self.tiles, first, tiles, self.parts, tile_step, channel_step)

    def input_work(
        self, function: NativeFunction, source: ImageOperand, transformed: Array, strip: tuple[int, int], fill: int = 0
    ) -> Work:
        """Work that transforms the input tiles of a strip.

        A strip is (first tile, tiles). Images have dense channels; `fill` is each byte of what surrounds them.
        """
        return function.work(
            self._chunks(strip, self.window.input[1]),
            source=source.image,
            fill=fill,
            top=self.window.padding[0][0],
            left=self.window.padding[1][0],
            tiles=self.grid(*strip),
            transformed=positions_of(transformed),
        )

    def output_work(
        self, function: NativeFunction, products: Array, strip: tuple[int, int], results: Mapping[str, Any]
    ) -> Work:
        """Work that transforms the products of a strip back.

        Results are the arguments that say where they go, and what happens to them before.
        """
        return function.work(
            self._chunks(strip, self.window.output[1] // self.channel_parts),
            products=positions_of(products),
            tiles=self.grid(*strip),
            **results,
        )

    def _chunks(self, strip: tuple[int, int], channels: int) -> int:
        """Chunks of work on so many channels of the tiles of all parts of a strip; at least one for each part."""
        values = strip[1] * self.parts * self.positions * channels
        return max(chunks_for(values, self.threads), self.parts)

    @property
    def workspace_bytes(self) -> int:
        """Room for the transformed values and the products of a strip."""
        return sum(map(fp32_bytes, self.plane_shapes))


def positions_of(planes: Array) -> Positions:
    """What native functions are told about `[parts, positions, tiles, words]`."""
    part_bytes = planes.strides[0] if len(planes) > 1 else 0
    return Positions(planes.ctypes.data, planes.strides[2], planes.strides[1], part_bytes)
