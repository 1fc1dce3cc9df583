"""From exact integer sums to what a network stores: scales, a residual, limits, roundings, in a stated order."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import (
    FIRST,
    HALF_AWAY_FROM_ZERO,
    HALF_TO_EVEN,
    HALF_UP,
    INT8,
    MAX,
    ONE_STEP,
    PROD,
    REAL_PRODUCTS,
    SUM,
    TWO_STEPS,
)
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.fixed_point import double_products, one_step, two_steps
from dryfit_cpu.compiler.integer_micro_kernel import BLOCK_ROW_BYTES
from dryfit_cpu.compiler.memory import load, load_integers, read, store_bytes, write
from dryfit_cpu.compiler.vectors import LANES, maximum, minimum, nearest, splat, truncated, where_negative


@inlined
def rounded(x: Any, mode: int) -> Any:
    """The whole numbers nearest to numbers between -2**22 and 2**22."""
    if mode == HALF_TO_EVEN:
        return nearest(x)
    zero, one, half = splat(float32(0.0)), splat(float32(1.0)), splat(float32(0.5))
    whole = truncated(x)
    part = x - whole
    up = where_negative(part - half, zero, one)
    if mode == HALF_AWAY_FROM_ZERO:
        return whole + up - where_negative(zero - half - part, zero, one)
    return whole + up - where_negative(part + half, one, zero)


@inlined
def fixed_scales(multipliers: int, shifts: int, channel: int, scaling: int) -> Any:
    """What belongs to a vector of channels: mantissas, or FP32 multipliers; and shifts, where there are such."""
    first = load(multipliers + 4 * channel)
    if scaling in (TWO_STEPS, ONE_STEP):
        return first, load(shifts + 4 * channel)
    return first, first


@inlined
def fixed_products(sums: Any, scales: Any, doubles: int, scaling: int, rounding: int) -> Any:
    """Sums, as the bits of INT32 numbers, scaled by what belongs to their channels, and rounded to whole numbers.

    `kernels/method_numbers.py` says what scales and doubles are.
    """
    mantissas, shifts = scales
    if scaling == TWO_STEPS:
        return two_steps(sums, mantissas, shifts, rounding == HALF_UP)
    if scaling == ONE_STEP:
        return one_step(sums, mantissas, shifts)
    return double_products(sums, doubles)


@inlined
def limited(x: Any, low: float, high: float) -> Any:
    """Numbers within limits."""
    return minimum(splat(high), maximum(splat(low), x))


@inlined
def requantized(
    x: Any, residual: int, residual_stride: int, residual_kind: int, count: int, modes: Any, steps: Any
) -> Any:
    """Scaled sums up to, and without, the last limits and rounding.

    Modes are (rounding, operation, rounds_sum, rounds_last), steps the numbers of `Requantization` in order, its zero
    points at the end; `kernels/integer_definition.py` says what they mean. Where modes are constants, nothing is asked
    at run time.
    """
    rounding, operation, rounds_sum, rounds_last = modes
    sum_low, sum_high, sum_multiplier, residual_multiplier, low, high, last_multiplier = steps[:7]
    if rounds_sum:
        x = rounded(limited(x, sum_low, sum_high), rounding) * splat(sum_multiplier)
    if operation != FIRST:
        distance = read(residual, residual_stride, residual_kind, count) - splat(steps[9])
        x = _combined(operation, x, distance * splat(residual_multiplier))
    if rounds_last:
        x = rounded(limited(x, low, high), rounding) * splat(last_multiplier)
    return x


@inlined
def _combined(operation: int, x: Any, other: Any) -> Any:
    """A value and the other operand in one."""
    if operation == SUM:
        return x + other
    if operation == PROD:
        return x * other
    return maximum(other, x) if operation == MAX else minimum(other, x)


@inlined
def write_limited(address: int, stride: int, kind: int, x: Any, count: int, modes: Any, steps: Any) -> None:
    """Store the results of `requantized`: real numbers, or INT8."""
    low, high, _, last_low, last_high, _, zero_point = steps[4:]
    if modes[3]:
        low, high = last_low, last_high
    if kind == INT8 and stride == 1 and count >= LANES and modes[0] == HALF_TO_EVEN and zero_point == 0.0:
        store_bytes(address, x, splat(low), splat(high))
    else:
        x = limited(x, low, high)
        if kind == INT8 and (modes[0] != HALF_TO_EVEN or zero_point != 0.0):
            x = rounded(x, modes[0]) + splat(zero_point)
        write(address, stride, kind, x, count)


@inlined
def finish_rows(
    rows: Any, scales: Any, channels: int, output_kind: int, residual_kind: int, modes: Any, steps: Any
) -> None:
    """The results of so many pixels from their sums, in any form.

    Rows are (address of the sums, of the results, bytes from one pixel's results to the next one's, the same two of
    what is added, pixels), scales (address of the channels' multipliers, of their shifts, how sums are scaled, address
    of the real bias or 0).
    """
    sums, output, output_stride, residual, residual_stride, places = rows
    multipliers, shifts, scaling, real_bias = scales
    output_size, residual_size = 4 >> (output_kind & 3), 4 >> (residual_kind & 3)
    for channel in range(0, channels, LANES):
        count = channels - channel
        scale = fixed_scales(multipliers, shifts, channel, scaling)
        to, at = output + channel * output_size, residual + channel * residual_size
        for place in range(places):
            at_sums = sums + place * BLOCK_ROW_BYTES + 4 * channel
            if scaling == REAL_PRODUCTS:
                x = load_integers(at_sums) * scale[0]
                if real_bias != 0:
                    x = x + load(real_bias + 4 * channel)
            else:
                x = fixed_products(load(at_sums), scale, shifts + 8 * channel, scaling, modes[0])
            x = requantized(x, at, residual_size, residual_kind, count, modes, steps)
            write_limited(to, output_size, output_kind, x, count, modes, steps)
            to, at = to + output_stride, at + residual_stride
