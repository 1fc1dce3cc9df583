"""Getting an INT8 input ready for convolution: channels last, with zeros around it, as the register block reads it."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import STAGED_BYTES, stage_values, stage_zeros


@native
def stage(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    channel_stride: int,
    images: int,
    rows: int,
    columns: int,
    channels: int,
    top: int,
    bottom: int,
    left: int,
    right: int,
    destination: int,
    pitch: int,
    zero: int,
) -> None:
    """Stage `[images, rows, columns, channels]` of any strides to pixels of `pitch` bytes, padded on four sides.

    `zero` stands for 0 where values are bytes: the bits in which they differ from what they were.
    """
    padded_rows, padded_columns = top + rows + bottom, left + columns + right
    total = images * padded_rows
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        image = index // padded_rows
        row = index - image * padded_rows - top
        to = destination + index * padded_columns * pitch
        if row < 0 or row >= rows:
            stage_zeros(to, padded_columns * pitch // STAGED_BYTES, zero)
        else:
            stage_zeros(to, left * pitch // STAGED_BYTES, zero)
            stage_zeros(to + (left + columns) * pitch, right * pitch // STAGED_BYTES, zero)
            start = source + image * image_stride + row * row_stride
            _stage_row(start, pixel_stride, channel_stride, columns, channels, to + left * pitch, pitch, zero)


@inlined
def _stage_row(
    source: int,
    pixel_stride: int,
    channel_stride: int,
    columns: int,
    channels: int,
    destination: int,
    pitch: int,
    zero: int,
) -> None:
    """One row of pixels, in pieces as long as they lie together."""
    if channel_stride == 1 and pixel_stride == channels and pitch == channels * STAGED_BYTES:
        stage_values(destination, source, columns * channels, zero)
    elif channel_stride == 1:
        for column in range(columns):
            stage_values(destination + column * pitch, source + column * pixel_stride, channels, zero)
    else:
        for column in range(columns):
            for channel in range(channels):
                at = source + column * pixel_stride + channel * channel_stride
                stage_values(destination + column * pitch + channel * STAGED_BYTES, at, 1, zero)
