"""The transforms of Winograd's minimal filtering, before and after the matrix products.

An output tile of m x m pixels follows from an input tile of (m + 2) x (m + 2), which overlaps its neighbours by two:

    input tile d          B^T d B         at each position a matrix product       A^T s A       output tile
    (m + 2) x (m + 2)  ------------>  [tiles, C] x [C, K]; there are (m + 2)^2  ------------->  m x m
                                      positions, and the window is transformed
                                      when it is packed

The products are those of `convolution.py`: a tile is a pixel there, and a position a group.

Where a tile lies, and how input tiles are gone through, is here for whole numbers too.
"""

from __future__ import annotations

from typing import Any

from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import VECTOR_BYTES, copy_bytes, fill_bytes, stack_memory
from dryfit_cpu.compiler.tile_transforms import input_transform, output_transform
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import Chunk, Finish, Image, Positions, TileGrid
from dryfit_cpu.native.convolution import finish_pixel, finish_sums
from dryfit_cpu.native.indices import pixel, share
from dryfit_cpu.native.winograd_matrices import INPUT_TRANSFORMS, OUTPUT_TRANSFORMS


@inlined
def part_and_tile(turn: int, tiles: TileGrid) -> tuple[int, int, int]:
    """The part of a strip that a turn is in, which of the part's tiles it is, and which of all."""
    part = turn // tiles.tiles
    index = turn - part * tiles.tiles
    return part, index, tiles.first + part * tiles.tile_step + index


@inlined
def part_channels(part: int, tiles: TileGrid, channels: int) -> tuple[int, int]:
    """The first channel of a part of a strip, and the end of its channels."""
    first = part * tiles.channel_step
    return first, first + tiles.channel_step if tiles.channel_step != 0 else channels


@inlined
def tile_place(tile: int, tile_rows: int, tile_columns: int, size: int) -> tuple[int, int, int]:
    """The image, row and column at which a tile of size x size begins."""
    line = tile // tile_columns
    image = line // tile_rows
    return image, (line - image * tile_rows) * size, (tile - line * tile_columns) * size


def input_tiles(size: int, transform: Any, *, together: int, value_bytes: int, transformed_bytes: int) -> Any:
    """The function that transforms input tiles, for output tiles of size x size.

    The transform is an operation of `tile_transforms.py`, of `together` channels at once, which fill no more than a
    vector register. Source and transformed values have so many bytes.
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
        """Transform tiles to `[parts, positions, tiles, channels]`; bytes of `fill` surround the source's images.

        Channels are a multiple of those that are transformed at once. A tile that reaches beyond its image is first
        copied to the stack.
        """
        scratch = stack_memory()
        for turn in range(*share(chunk, tiles.parts * tiles.tiles)):
            part, index, tile = part_and_tile(turn, tiles)
            if tile >= tiles.end:
                continue
            image, y, x = tile_place(tile, tiles.rows, tiles.columns, size)
            y, x = y - top, x - left
            corner = pixel(source, image, y, x)
            to = transformed.address + part * transformed.part_bytes + index * transformed.tile_pitch
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


def _transform_output(size: int) -> Any:
    """The native function that makes output tiles of size x size of the products."""
    extent = size + 2
    transform = output_transform(f"output_{size}", OUTPUT_TRANSFORMS[size])

    def transform_output(
        chunk: Chunk,
        products: Positions,
        bias: int,
        tiles: TileGrid,
        output: Image,
        residual: Image,
        finish: Finish,
    ) -> None:
        """Transform `[parts, positions, tiles, channels]` to pixels, plus bias, residual and activation.

        Channels of a part are a multiple of the lanes. Where the finish is not bypassing, the limits are all that
        follows the bias; else they are infinite. Such tiles, and those that reach beyond the image, go through the
        stack.
        """
        # A vector of channels at a time, all positions of it: 36 loads that are a position apart. Their distance is
        # padded by the kernel, as they would lie in one set of the first-level cache otherwise.
        scratch = stack_memory()
        row_bytes = extent * products.position_bytes
        for turn in range(*share(chunk, tiles.parts * tiles.tiles)):
            part, index, tile = part_and_tile(turn, tiles)
            if tile >= tiles.end:
                continue
            image, y, x = tile_place(tile, tiles.rows, tiles.columns, size)
            first = products.address + part * products.part_bytes + index * products.tile_pitch
            corner, added = pixel(output, image, y, x), pixel(residual, image, y, x)
            is_direct = finish.bypasses == 0 and y + size <= output.rows and x + size <= output.columns
            for channel in range(*part_channels(part, tiles, output.channels), LANES):
                start, offsets = first + channel * 4, bias + channel * 4
                if is_direct:
                    transform(
                        start, row_bytes, products.position_bytes, corner + channel * 4, output.row_stride,
                        output.pixel_stride, offsets, finish.low, finish.high,
                    )  # fmt: skip
                else:
                    transform(
                        start, row_bytes, products.position_bytes, scratch, size * VECTOR_BYTES, VECTOR_BYTES,
                        offsets, finish.low, finish.high,
                    )  # fmt: skip
                    finish_sums(finish, residual.address != 0, scratch, size * size * LANES)
                    for i in range(min(size, output.rows - y)):
                        for j in range(min(size, output.columns - x)):
                            to = corner + i * output.row_stride + j * output.pixel_stride
                            add = added + i * residual.row_stride + j * residual.pixel_stride
                            # What was clamped already stays as it is.
                            finish_pixel(
                                scratch + (i * size + j) * VECTOR_BYTES, to + channel * (4 >> (output.kind & 3)),
                                add + channel * (4 >> (residual.kind & 3)) if residual.address != 0 else 0, LANES,
                                output.kind, residual.kind, finish,
                            )  # fmt: skip

    return transform_output


transform_input_2, transform_input_4 = (
    native(
        input_tiles(
            size,
            input_transform(f"input_{size}", INPUT_TRANSFORMS[size]),
            together=LANES,
            value_bytes=4,
            transformed_bytes=4,
        )
    )
    for size in (2, 4)
)
transform_output_2, transform_output_4 = (native(_transform_output(size)) for size in (2, 4))
