"""What all of Winograd's transforms share: where a tile lies, and how input tiles are gone through."""

from __future__ import annotations

from typing import Any

from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.memory import copy_bytes, fill_bytes, stack_memory
from dryfit_cpu.descriptors import Chunk, Image, Positions, TileGrid
from dryfit_cpu.native.indices import pixel, share


@inlined
def tile_place(tile: int, tile_rows: int, tile_columns: int, size: int) -> tuple[int, int, int]:
    """The image, row and column at which a tile of size x size begins."""
    line = tile // tile_columns
    image = line // tile_rows
    return image, (line - image * tile_rows) * size, (tile - line * tile_columns) * size


def input_tiles(size: int, transform: Any, *, together: int, value_bytes: int, transformed_bytes: int) -> Any:
    """The function that transforms input tiles, for output tiles of size x size.

    Args:
        size: of an output tile.
        transform: of `together` channels, an operation of `tile_transforms.py`.
        together: channels that are transformed at once.
        value_bytes: of a value of the source; `together` of them fill no more than a vector register.
        transformed_bytes: of a transformed value.
    """
    extent, place_bytes = size + 2, together * value_bytes

    def transform_input(
        chunk: Chunk,
        source: Image,
        fill: int,
        top: int,
        left: int,
        tiles: TileGrid,
        transformed: Positions,
    ) -> None:
        """Transform `tiles` tiles to `[positions, tiles, channels]`; bytes of `fill` surround the source's images.

        Channels are a multiple of those that are transformed at once. A tile that reaches beyond its image is first
        copied to the stack.
        """
        scratch = stack_memory()
        for index in range(*share(chunk, tiles.tiles)):
            image, y, x = tile_place(tiles.first + index, tiles.rows, tiles.columns, size)
            y, x = y - top, x - left
            corner = pixel(source, image, y, x)
            to = transformed.address + index * transformed.tile_pitch
            is_inside = y >= 0 and x >= 0 and y + extent <= source.rows and x + extent <= source.columns
            for channel in range(0, source.channels, together):
                start, row_step, pixel_step = corner + channel * value_bytes, source.row_stride, source.pixel_stride
                # Only tiles at the border pay for the border: the transform itself has no case for it.
                if not is_inside:
                    copy_tile(start, source, y, x, fill, scratch)
                    start, row_step, pixel_step = scratch, extent * place_bytes, place_bytes
                at = to + channel * transformed_bytes
                transform(
                    start, row_step, pixel_step, at, extent * transformed.position_bytes, transformed.position_bytes
                )

    @inlined
    def copy_tile(corner: int, source: Image, y: int, x: int, fill: int, to: int) -> None:
        """The channels that are transformed at once of each pixel of a tile; filled where the pixel is outside."""
        for i in range(extent):
            for j in range(extent):
                if 0 <= y + i < source.rows and 0 <= x + j < source.columns:
                    copy_bytes(to, corner + i * source.row_stride + j * source.pixel_stride, place_bytes)
                else:
                    fill_bytes(to, fill, place_bytes)
                to += place_bytes

    return transform_input
