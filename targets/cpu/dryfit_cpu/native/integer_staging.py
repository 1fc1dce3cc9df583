"""Getting an INT8 input ready for convolution: channels last, padded, as the register block reads it."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import STAGED_BYTES, stage_fill, stage_values


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
    front: int,
    back: int,
    top: int,
    bottom: int,
    left: int,
    right: int,
    destination: int,
    pitch: int,
    fill: int,
) -> None:
    """Stage `[images, rows, columns, channels]` of any strides to pixels of `pitch` bytes, `fill` around it."""
    padded_rows, padded_columns = top + rows + bottom, left + columns + right
    total = (front + images + back) * padded_rows
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        padded_image = index // padded_rows
        row, image = index - padded_image * padded_rows - top, padded_image - front
        to = destination + index * padded_columns * pitch
        if image < 0 or image >= images or row < 0 or row >= rows:
            stage_fill(to, padded_columns * pitch // STAGED_BYTES, fill)
        else:
            stage_fill(to, left * pitch // STAGED_BYTES, fill)
            stage_fill(to + (left + columns) * pitch, right * pitch // STAGED_BYTES, fill)
            start = source + image * image_stride + row * row_stride
            _stage_row(start, pixel_stride, channel_stride, columns, channels, to + left * pitch, pitch)


@inlined
def _stage_row(
    source: int,
    pixel_stride: int,
    channel_stride: int,
    columns: int,
    channels: int,
    destination: int,
    pitch: int,
) -> None:
    """One row of pixels, in pieces as long as they lie together."""
    if channel_stride == 1 and pixel_stride == channels and pitch == channels * STAGED_BYTES:
        stage_values(destination, source, columns * channels)
    elif channel_stride == 1:
        for column in range(columns):
            stage_values(destination + column * pitch, source + column * pixel_stride, channels)
    else:
        for column in range(columns):
            for channel in range(channels):
                at = source + column * pixel_stride + channel * channel_stride
                stage_values(destination + column * pitch + channel * STAGED_BYTES, at, 1)
