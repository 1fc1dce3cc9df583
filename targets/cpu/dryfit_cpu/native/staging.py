"""Getting an input ready for convolution: FP32, channels last, with zeros around it, in one pass."""

from __future__ import annotations

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import load_int, read, write
from dryfit_cpu.compiler.vectors import LANES, splat


@native
def stage(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    channel_stride: int,
    kind: int,
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
) -> None:
    """Copy `[images, rows, columns, channels]` of any strides to pixels of `pitch` bytes, padded on all sides."""
    padded_rows, padded_columns = top + rows + bottom, left + columns + right
    total = (front + images + back) * padded_rows
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        padded_image = index // padded_rows
        row, image = index - padded_image * padded_rows - top, padded_image - front
        to = destination + index * padded_columns * pitch
        if image < 0 or image >= images or row < 0 or row >= rows:
            _clear(to, padded_columns * pitch // 4)
        else:
            _clear(to, left * pitch // 4)
            _clear(to + (left + columns) * pitch, right * pitch // 4)
            start = source + image * image_stride + row * row_stride
            _copy_row(start, pixel_stride, channel_stride, kind, columns, channels, to + left * pitch, pitch)


@native
def gather_windows(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    row_stride: int,
    pixel_stride: int,
    images: int,
    rows: int,
    columns: int,
    segments: int,
    segment_count: int,
    segment_length: int,
    destination: int,
) -> None:
    """Write the values that each output pixel sums over one after the other: for images too narrow for tiles."""
    total, span = images * rows * columns, segment_count * segment_length * 4
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        image = index // (rows * columns)
        row = index // columns - image * rows
        column = index - (image * rows + row) * columns
        start = source + image * image_stride + row * row_stride + column * pixel_stride
        for segment in range(segment_count):
            at = start + load_int(segments + segment * 8)
            to = destination + index * span + segment * segment_length * 4
            for value in range(0, segment_length, LANES):
                count = segment_length - value
                write(to + value * 4, 4, FP32, read(at + value * 4, 4, FP32, count), count)


@inlined
def _copy_row(
    source: int,
    pixel_stride: int,
    channel_stride: int,
    kind: int,
    columns: int,
    channels: int,
    destination: int,
    pitch: int,
) -> None:
    """One row of pixels, along whichever axis the source is dense."""
    size = 4 >> (kind & 3)
    if channel_stride == size and pixel_stride == channels * size and pitch == channels * 4:
        for value in range(0, columns * channels, LANES):
            count = columns * channels - value
            write(destination + value * 4, 4, FP32, read(source + value * size, size, kind, count), count)
    elif pixel_stride == size:
        for channel in range(channels):
            start = source + channel * channel_stride
            for column in range(0, columns, LANES):
                count = columns - column
                x = read(start + column * size, size, kind, count)
                write(destination + column * pitch + channel * 4, pitch, FP32, x, count)
    else:
        for column in range(columns):
            start = source + column * pixel_stride
            for channel in range(0, channels, LANES):
                count = channels - channel
                x = read(start + channel * channel_stride, channel_stride, kind, count)
                write(destination + column * pitch + channel * 4, 4, FP32, x, count)


@inlined
def _clear(address: int, count: int) -> None:
    """Write so many FP32 zeros."""
    for value in range(0, count, LANES):
        write(address + value * 4, 4, FP32, splat(float32(0.0)), count - value)
