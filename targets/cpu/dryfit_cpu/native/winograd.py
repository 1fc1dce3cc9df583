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
from dryfit_cpu.native.convolution import finish_pixel
from dryfit_cpu.native.winograd_matrices import INPUT_TRANSFORMS, OUTPUT_TRANSFORMS
from dryfit_cpu.native.winograd_tiles import input_tiles, tile_place


def _transform_output(size: int) -> Any:
    """The native function that makes output tiles of size x size of the products."""
    extent = size + 2
    transform = output_transform(f"output_{size}", OUTPUT_TRANSFORMS[size])

    def transform_output(
        chunk: int,
        chunks: int,
        products: int,
        tile_pitch: int,
        position_bytes: int,
        bias: int,
        tile_rows: int,
        tile_columns: int,
        first_tile: int,
        tiles: int,
        output: int,
        output_image_stride: int,
        output_row_stride: int,
        output_pixel_stride: int,
        output_kind: int,
        rows: int,
        columns: int,
        channels: int,
        residual: int,
        residual_image_stride: int,
        residual_row_stride: int,
        residual_pixel_stride: int,
        residual_kind: int,
        low: float,
        high: float,
        finishes: int,
        inner_activation: int,
        inner_alpha: float,
        inner_beta: float,
        activation: int,
        alpha: float,
        beta: float,
    ) -> None:
        """Transform `[positions, tiles, channels]` to pixels, plus bias, residual and activation.

        Channels are a multiple of the lanes. Where `finishes` is not set the limits are all that follows the bias; else
        they are infinite. Such tiles, and those that reach beyond the image, go through the stack.
        """
        scratch = stack_memory()
        for index in range(tiles * chunk // chunks, tiles * (chunk + 1) // chunks):
            image, y, x = tile_place(first_tile + index, tile_rows, tile_columns, size)
            corner = output + image * output_image_stride + y * output_row_stride + x * output_pixel_stride
            added = residual + image * residual_image_stride + y * residual_row_stride + x * residual_pixel_stride
            is_direct = finishes == 0 and y + size <= rows and x + size <= columns
            for channel in range(0, channels, LANES):
                start, offsets = products + index * tile_pitch + channel * 4, bias + channel * 4
                if is_direct:
                    transform(
                        start, extent * position_bytes, position_bytes, corner + channel * 4, output_row_stride,
                        output_pixel_stride, offsets, low, high,
                    )  # fmt: skip
                else:
                    transform(
                        start, extent * position_bytes, position_bytes, scratch, size * VECTOR_BYTES, VECTOR_BYTES,
                        offsets, low, high,
                    )  # fmt: skip
                    for i in range(min(size, rows - y)):
                        for j in range(min(size, columns - x)):
                            to = corner + i * output_row_stride + j * output_pixel_stride
                            add = added + i * residual_row_stride + j * residual_pixel_stride
                            # What was clamped already stays as it is.
                            finish_pixel(
                                scratch + (i * size + j) * VECTOR_BYTES, to + channel * (4 >> (output_kind & 3)),
                                add + channel * (4 >> (residual_kind & 3)) if residual != 0 else 0, LANES, output_kind,
                                residual_kind, (inner_activation, inner_alpha, inner_beta), (activation, alpha, beta),
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
