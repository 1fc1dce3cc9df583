"""Getting an input ready for convolution: channels last, padded on all sides, as the register block reads it.

The padding is memory, and no case in the convolution: a register block then sums over whole windows everywhere, with no
question at any place of them.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import value_stager
from dryfit_cpu.compiler.line_copies import BLOCK_PIXELS, interleave_three
from dryfit_cpu.compiler.memory import load_int, read, write
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.descriptors import Chunk, Image, ImagePadding, Runs
from dryfit_cpu.native.indices import pixel, share

_COLORS = 3
"""Planes of a picture."""


def _stager(value_bytes: int, fill_run: Any, copy_row: Any) -> Any:
    """The native function that stages images as values of so many bytes.

    `fill_run` writes a fill to (address, values), `copy_row` a row of pixels.
    """

    def stage(chunk: Chunk, source: Image, padding: ImagePadding, destination: int, pitch: int, fill: int) -> None:
        """Stage images of any strides to pixels of `pitch` bytes, with what `fill` is around them."""
        padded_columns = padding.left + source.columns + padding.right
        padded_rows = padding.top + source.rows + padding.bottom
        # A row of the padded image is a piece of work, those of nothing but padding too: each byte is written by the
        # thread that may find it in its cache when it convolves, and nothing has to be cleared before.
        for index in range(*share(chunk, (padding.front + source.images + padding.back) * padded_rows)):
            padded_image = index // padded_rows
            row, image = index - padded_image * padded_rows - padding.top, padded_image - padding.front
            to = destination + index * padded_columns * pitch
            if image < 0 or image >= source.images or row < 0 or row >= source.rows:
                fill_run(to, padded_columns * pitch // value_bytes, fill)
            else:
                behind = to + (padding.left + source.columns) * pitch
                fill_run(to, padding.left * pitch // value_bytes, fill)
                fill_run(behind, padding.right * pitch // value_bytes, fill)
                copy_row(pixel(source, image, row, 0), source, to + padding.left * pitch, pitch)

    return native(stage)


@inlined
def _clear(address: int, count: int, _fill: int) -> None:
    """Write so many FP32 zeros."""
    for value in range(0, count, LANES):
        write(address + value * 4, 4, FP32, splat(float32(0.0)), count - value)


@inlined
def _copy_row(start: int, source: Image, destination: int, pitch: int) -> None:
    """One row of pixels, along whichever axis the source is dense."""
    size, kind = 4 >> (source.kind & 3), source.kind
    if source.channel_stride == size and source.pixel_stride == source.channels * size and pitch == source.channels * 4:
        count = source.columns * source.channels
        for value in range(0, count, LANES):
            x = read(start + value * size, size, kind, count - value)
            write(destination + value * 4, 4, FP32, x, count - value)
    elif source.pixel_stride == size:
        # Planes: vectors are read along a row and scattered. Reading is what can be slow, as a plane is far from the
        # next; the pixels that are written stay in the cache until all channels are there.
        first = 0
        if source.kind == FP32 and source.channels == _COLORS and pitch == _COLORS * 4:
            # What most networks begin with. Lanes that are scattered one by one take four times as long.
            interleave_three(start, source.channel_stride, destination, source.columns // BLOCK_PIXELS)
            first = source.columns // BLOCK_PIXELS * BLOCK_PIXELS
        for channel in range(source.channels):
            plane = start + channel * source.channel_stride
            for column in range(first, source.columns, LANES):
                x = read(plane + column * size, size, kind, source.columns - column)
                write(destination + column * pitch + channel * 4, pitch, FP32, x, source.columns - column)
    else:
        for column in range(source.columns):
            at = start + column * source.pixel_stride
            for channel in range(0, source.channels, LANES):
                count = source.channels - channel
                x = read(at + channel * source.channel_stride, source.channel_stride, kind, count)
                write(destination + column * pitch + channel * 4, 4, FP32, x, count)


def _integer_stager(size: int) -> Any:
    """The native function that stages INT8 images as values of so many bytes."""
    stage_values, stage_fill = value_stager(size)

    @inlined
    def stage_row(start: int, source: Image, destination: int, pitch: int) -> None:
        """One row of INT8 pixels, in pieces as long as they lie together."""
        if source.channel_stride == 1 and source.pixel_stride == source.channels and pitch == source.channels * size:
            stage_values(destination, start, source.columns * source.channels)
        elif source.channel_stride == 1:
            for column in range(source.columns):
                stage_values(destination + column * pitch, start + column * source.pixel_stride, source.channels)
        else:
            for column in range(source.columns):
                for channel in range(source.channels):
                    at = start + column * source.pixel_stride + channel * source.channel_stride
                    stage_values(destination + column * pitch + channel * size, at, 1)

    return _stager(size, stage_fill, stage_row)


stage = _stager(4, _clear, _copy_row)
stage_bytes, stage_pairs = _integer_stager(1), _integer_stager(2)


@native
def gather_windows(chunk: Chunk, input: Image, segments: Runs, destination: int) -> None:
    """Write the values that each output pixel sums over one after the other: for images too narrow for tiles.

    The input has the output's extents; its strides are from one output pixel to the next.
    """
    # A tile needs pixels at equal distances, half of it at least. Where rows are shorter, gathering makes one long row
    # of all pixels: their number in the batch counts then, not the width of an image.
    span = segments.runs * segments.length * 4
    for index in range(*share(chunk, input.images * input.rows * input.columns)):
        image = index // (input.rows * input.columns)
        row = index // input.columns - image * input.rows
        column = index - (image * input.rows + row) * input.columns
        start = pixel(input, image, row, column)
        for segment in range(segments.runs):
            at = start + load_int(segments.address + segment * 8)
            to = destination + index * span + segment * segments.length * 4
            for value in range(0, segments.length, LANES):
                count = segments.length - value
                write(to + value * 4, 4, FP32, read(at + value * 4, 4, FP32, count), count)
