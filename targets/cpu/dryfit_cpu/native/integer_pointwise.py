"""Quantized values, or sums of two, in another scale: element by element over any strides."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import HALF_TO_EVEN, INT8, SUM
from dryfit_cpu.compiler.byte_packing import PACKED_VALUES, store_packed
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import read
from dryfit_cpu.compiler.vectors import LANES, nearest, splat
from dryfit_cpu.native.indices import indices
from dryfit_cpu.native.requantization import limited, requantized, write_limited

_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)
_MODEST: Any = float32(10000.0)
"""Multipliers of INT8 values below this give numbers that can be rounded before they are limited."""


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
    source_zero: float,
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
    operation: int,
    residual_multiplier: float,
    residual_zero: float,
    low: float,
    high: float,
    rounds_last: int,
    last_multiplier: float,
    last_low: float,
    last_high: float,
    zero_point: float,
) -> None:
    """The source less its zero point, times a multiplier, requantized, over four axes; strides in bytes."""
    modes = (rounding, operation, rounds_sum != 0, rounds_last != 0)
    steps = (
        sum_low, sum_high, sum_multiplier, residual_multiplier, low, high, last_multiplier, last_low, last_high,
        residual_zero, zero_point,
    )  # fmt: skip
    is_dense = (
        source_kind == INT8 and source_stride3 == 1 and output_kind == INT8 and output_stride3 == 1
        and (residual == 0 or (residual_kind == INT8 and residual_stride3 == 1)) and rounding == HALF_TO_EVEN
        and abs(multiplier) < _MODEST and abs(sum_multiplier) < _MODEST and abs(residual_multiplier) < _MODEST
        and abs(last_multiplier) < _MODEST and operation <= SUM
    )  # fmt: skip
    rows = extent0 * extent1 * extent2
    blocks = (extent3 + PACKED_VALUES - 1) // PACKED_VALUES
    total = rows * blocks
    block, stop = total * chunk // chunks, total * (chunk + 1) // chunks
    while block < stop:
        row = block // blocks
        first = block - row * blocks
        last = min(blocks, first + stop - block)
        block += last - first
        i0, i1, i2 = indices(row, extent1, extent2)
        i3 = first * PACKED_VALUES
        count = min(last * PACKED_VALUES, extent3) - i3
        at = source + i0 * source_stride0 + i1 * source_stride1 + i2 * source_stride2 + i3 * source_stride3
        add = 0
        if residual != 0:
            add = residual + i0 * residual_stride0 + i1 * residual_stride1 + i2 * residual_stride2
            add += i3 * residual_stride3
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2 + i3 * output_stride3
        done = 0
        if is_dense:
            done = count // PACKED_VALUES * PACKED_VALUES
            _requantize_run(done, at, add, to, (source_zero, multiplier), modes, steps)
        for i in range(done, count, LANES):
            x = read(at + i * source_stride3, source_stride3, source_kind, count - i)
            x = (x - splat(source_zero)) * splat(multiplier)
            beside = add + i * residual_stride3
            x = requantized(x, beside, residual_stride3, residual_kind, count - i, modes, steps)
            write_limited(to + i * output_stride3, output_stride3, output_kind, x, count - i, modes, steps)


@inlined
def _requantize_run(count: int, source: int, residual: int, output: int, scale: Any, modes: Any, steps: Any) -> None:
    """Requantize INT8 values that lie together, rounded to nearest even: as many as are stored at once, or several.

    The scale is the source's zero point and its multiplier.
    """
    low, high, _, last_low, last_high, _, zero_point = steps[4:]
    if modes[3]:
        low, high = last_low, last_high
    known = (HALF_TO_EVEN, modes[1], modes[2], modes[3])
    lowest, highest = splat(low), splat(high)
    for i in range(0, count, PACKED_VALUES):
        a = _scaled(source + i, scale, residual + i, known, steps)
        b = _scaled(source + i + LANES, scale, residual + i + LANES, known, steps)
        c = _scaled(source + i + 2 * LANES, scale, residual + i + 2 * LANES, known, steps)
        d = _scaled(source + i + 3 * LANES, scale, residual + i + 3 * LANES, known, steps)
        if zero_point == 0.0:
            store_packed(output + i, a, b, c, d, lowest, highest)
        else:
            # Added to what is rounded, since the sum would be rounded otherwise.
            limits = (low, high, zero_point)
            a, b, c, d = _moved(a, limits), _moved(b, limits), _moved(c, limits), _moved(d, limits)
            store_packed(output + i, a, b, c, d, splat(_LOWEST), splat(_HIGHEST))


@inlined
def _scaled(source: int, scale: Any, residual: int, modes: Any, steps: Any) -> Any:
    x = (read(source, 1, INT8, LANES) - splat(scale[0])) * splat(scale[1])
    return requantized(x, residual, 1, INT8, LANES, modes, steps)


@inlined
def _moved(x: Any, limits: Any) -> Any:
    low, high, zero_point = limits
    return nearest(limited(x, low, high)) + splat(zero_point)
