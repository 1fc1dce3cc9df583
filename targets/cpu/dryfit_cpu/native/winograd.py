"""The transforms of Winograd's minimal filtering, before and after the matrix products.

An output tile of m x m pixels follows from an input tile of (m + 2) x (m + 2), which overlaps its neighbours by two:

    input tile d          B^T d B         at each position a matrix product       A^T s A       output tile
    (m + 2) x (m + 2)  ------------>  [tiles, C] x [C, K]; there are (m + 2)^2  ------------->  m x m
                                      positions, and the window is transformed
                                      when it is packed

The products are those of `convolution.py`: a tile is a pixel there, and a position a group.
"""

from __future__ import annotations

from typing import Any

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import VECTOR_BYTES, stack_memory
from dryfit_cpu.compiler.tile_transforms import input_transform, output_transform
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import Chunk, Finish, Image, Positions, TileGrid
from dryfit_cpu.native.convolution import finish_pixel
from dryfit_cpu.native.indices import pixel, share
from dryfit_cpu.native.winograd_matrices import INPUT_TRANSFORMS, OUTPUT_TRANSFORMS
from dryfit_cpu.native.winograd_tiles import input_tiles, tile_place


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
        """Transform `[positions, tiles, channels]` to pixels, plus bias, residual and activation.

        Channels are a multiple of the lanes. Where the finish is not bypassing the limits are all that follows the
        bias; else they are infinite. Such tiles, and those that reach beyond the image, go through the stack.
        """
        scratch = stack_memory()
        row_bytes = extent * products.position_bytes
        for index in range(*share(chunk, tiles.tiles)):
            image, y, x = tile_place(tiles.first + index, tiles.rows, tiles.columns, size)
            corner, added = pixel(output, image, y, x), pixel(residual, image, y, x)
            is_direct = finish.bypasses == 0 and y + size <= output.rows and x + size <= output.columns
            for channel in range(0, output.channels, LANES):
                start, offsets = products.address + index * products.tile_pitch + channel * 4, bias + channel * 4
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
