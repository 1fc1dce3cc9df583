"""Pictures on their way in: three planes of real numbers become pixels of three bytes."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.integer_memory import store_pixels
from dryfit_cpu.compiler.memory import load
from dryfit_cpu.compiler.vectors import LANES, splat


@native
def quantize_planes(
    chunk: int,
    chunks: int,
    source: int,
    image_stride: int,
    channel_stride: int,
    row_stride: int,
    output: int,
    output_image_stride: int,
    output_row_stride: int,
    images: int,
    rows: int,
    columns: int,
    scale: float,
) -> None:
    """`saturate(round(x / scale))` of FP32 `[images, 3, rows, columns]`, ties to even; rows of at least one vector."""
    divisor = splat(scale)
    total = images * rows
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        image = index // rows
        row = index - image * rows
        start = source + image * image_stride + row * row_stride
        to = output + image * output_image_stride + row * output_row_stride
        for place in range(0, columns, LANES):
            # The last vector overlaps the one before.
            column = min(place, columns - LANES)
            at = start + column * 4
            red, green = load(at) / divisor, load(at + channel_stride) / divisor
            store_pixels(to + column * 3, red, green, load(at + 2 * channel_stride) / divisor)
