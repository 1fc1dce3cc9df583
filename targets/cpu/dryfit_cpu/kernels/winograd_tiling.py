"""How an output is cut into Winograd's tiles, those into strips that the caches take, and the work for a strip."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array
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
    """

    size: int
    window: WindowGeometry
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
        # Transformed values are 2.25 (tiles of 4) to 4 (tiles of 2) times the image. A strip of tiles is transformed,
        # multiplied and transformed back before the next begins, so that they never leave the second-level cache.
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

    def grid(self, first: int, tiles: int) -> TileGrid:
        """What native functions are told about a strip."""
        return TileGrid(*self.rows_and_columns, first, tiles)

    def input_work(
        self, function: NativeFunction, source: ImageOperand, transformed: Array, strip: tuple[int, int], fill: int = 0
    ) -> Work:
        """Work that transforms the input tiles of a strip.

        A strip is (first tile, tiles). Images have dense channels; `fill` is each byte of what surrounds them.
        """
        return function.work(
            chunks_for(strip[1] * self.positions * self.window.input[1], self.threads),
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
            chunks_for(strip[1] * self.positions * self.window.output[1], self.threads),
            products=positions_of(products),
            tiles=self.grid(*strip),
            **results,
        )

    @property
    def workspace_bytes(self) -> int:
        """Room for the transformed values and the products of a strip."""
        return sum(map(fp32_bytes, self.plane_shapes))


def positions_of(planes: Array) -> Positions:
    """What native functions are told about `[positions, tiles, words]`."""
    return Positions(planes.ctypes.data, planes.strides[1], planes.strides[0])
