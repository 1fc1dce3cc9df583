"""Quantized values, or sums of two, in another scale: element by element over any strides."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import read
from dryfit_cpu.compiler.vectors import LANES, splat
from dryfit_cpu.native.requantization import requantized, write_limited


@native
def requantize(
    chunk: int,
    chunks: int,
    source: int,
    source_stride0: int,
    source_stride1: int,
    source_stride2: int,
    source_stride3: int,
    source_kind: int,
    multiplier: float,
    residual: int,
    residual_stride0: int,
    residual_stride1: int,
    residual_stride2: int,
    residual_stride3: int,
    residual_kind: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_stride2: int,
    output_stride3: int,
    output_kind: int,
    extent0: int,
    extent1: int,
    extent2: int,
    extent3: int,
    rounding: int,
    rounds_sum: int,
    sum_low: float,
    sum_high: float,
    sum_multiplier: float,
    residual_multiplier: float,
    low: float,
    high: float,
    rounds_last: int,
    last_multiplier: float,
    last_low: float,
    last_high: float,
) -> None:
    """The source times a multiplier, requantized, over four axes; strides in bytes."""
    modes = (rounding, residual != 0, rounds_sum != 0, rounds_last != 0)
    steps = (
        sum_low, sum_high, sum_multiplier, residual_multiplier, low, high, last_multiplier, last_low, last_high,
    )  # fmt: skip
    rows = extent0 * extent1 * extent2
    blocks = (extent3 + LANES - 1) // LANES
    total = rows * blocks
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        row = index // blocks
        i3 = (index - row * blocks) * LANES
        i01 = row // extent2
        i2 = row - i01 * extent2
        i0 = i01 // extent1
        i1 = i01 - i0 * extent1
        count = extent3 - i3
        at = source + i0 * source_stride0 + i1 * source_stride1 + i2 * source_stride2 + i3 * source_stride3
        add = 0
        if residual != 0:
            add = residual + i0 * residual_stride0 + i1 * residual_stride1 + i2 * residual_stride2
            add += i3 * residual_stride3
        x = read(at, source_stride3, source_kind, count) * splat(multiplier)
        x = requantized(x, add, residual_stride3, residual_kind, count, modes, steps)
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2 + i3 * output_stride3
        write_limited(to, output_stride3, output_kind, x, count, modes, steps)
