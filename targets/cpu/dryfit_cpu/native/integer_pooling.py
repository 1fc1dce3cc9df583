"""Maxima of INT8 values over windows, a register full of bytes at a time."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.integer_memory import BYTES_AT_ONCE, store_largest
from dryfit_cpu.native.pooling import inside


@native
def max_pool(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    source_rows: int,
    source_columns: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    output_pixel_stride: int,
    images: int,
    rows: int,
    columns: int,
    channels: int,
    window_rows: int,
    window_columns: int,
    row_step: int,
    column_step: int,
    row_dilation: int,
    column_dilation: int,
    top: int,
    left: int,
) -> None:
    """The maximum of each window, whose padding counts for nothing; channels lie together and fill a register."""
    total = images * rows
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        image = index // rows
        row = index - image * rows
        first_row = row * row_step - top
        y_start, y_stop = inside(first_row, row_dilation, window_rows, 0, source_rows)
        at_row = source + image * image_stride + (first_row + y_start * row_dilation) * row_stride
        to_row = output + image * output_image_stride + row * output_row_stride
        for column in range(columns):
            first_column = column * column_step - left
            x_start, x_stop = inside(first_column, column_dilation, window_columns, 0, source_columns)
            at = at_row + (first_column + x_start * column_dilation) * pixel_stride
            to = to_row + column * output_pixel_stride
            for place in range(0, channels, BYTES_AT_ONCE):
                # The last register overlaps the one before.
                channel = min(place, channels - BYTES_AT_ONCE)
                store_largest(
                    to + channel, at + channel, row_dilation * row_stride, column_dilation * pixel_stride,
                    y_stop - y_start, x_stop - x_start,
                )  # fmt: skip
