"""From exact integer sums to what a network stores: scales, a residual, limits, roundings, in a stated order."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu import codes
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.memory import load, load_integers, read, store_bytes, write
from dryfit_cpu.compiler.register_block import BLOCK_ROW_BYTES
from dryfit_cpu.compiler.vectors import LANES, maximum, minimum, nearest, splat, truncated, where_negative
from dryfit_cpu.compiler.wide_numbers import double_products, one_step, two_steps
from dryfit_cpu.descriptors import ChannelScales, Pixels, RequantizationSteps


@inlined
def rounded(x: Any, mode: int) -> Any:
    """The whole numbers nearest to numbers between -2**22 and 2**22."""
    if mode == codes.HALF_TO_EVEN:
        return nearest(x)
    # Numbers are cut and the part that is cut off is looked at. Adding a half first would be shorter and wrong: the
    # number before 0.5 plus 0.5 is 1 in FP32. Cutting and the difference are exact up to 2**22, whatever the signs.
    zero, one, half = splat(float32(0.0)), splat(float32(1.0)), splat(float32(0.5))
    whole = truncated(x)
    part = x - whole
    up = where_negative(part - half, zero, one)
    if mode == codes.HALF_AWAY_FROM_ZERO:
        return whole + up - where_negative(zero - half - part, zero, one)
    return whole + up - where_negative(part + half, one, zero)


@inlined
def fixed_scales(multipliers: int, shifts: int, channel: int, scaling: int) -> Any:
    """What belongs to a vector of channels: mantissas, or FP32 multipliers; and shifts, where there are such."""
    # The same loads for both, mantissas or multipliers: which they are is the method's, and bits are bits.
    first = load(multipliers + 4 * channel)
    if scaling in (codes.TWO_STEPS, codes.ONE_STEP):
        return first, load(shifts + 4 * channel)
    return first, first


@inlined
def fixed_products(sums: Any, scales: Any, doubles: int, scaling: int, rounding: int) -> Any:
    """Sums, as the bits of INT32 numbers, scaled by what belongs to their channels, and rounded to whole numbers.

    `kernels/integer_endings.py` says what scales and doubles are.
    """
    mantissas, shifts = scales
    if scaling == codes.TWO_STEPS:
        return two_steps(sums, mantissas, shifts, rounding == codes.HALF_UP)
    if scaling == codes.ONE_STEP:
        return one_step(sums, mantissas, shifts)
    return double_products(sums, doubles)


@inlined
def limited(x: Any, low: float, high: float) -> Any:
    """Numbers within limits."""
    return minimum(splat(high), maximum(splat(low), x))


@inlined
def requantized(
    x: Any, residual: int, residual_stride: int, residual_kind: int, count: int, steps: RequantizationSteps
) -> Any:
    """Scaled sums up to, and without, the last limits and rounding."""
    return rounded_as(steps.rounding, x, residual, residual_stride, residual_kind, count, steps)


@inlined
def rounded_as(
    rounding: int,
    x: Any,
    residual: int,
    residual_stride: int,
    residual_kind: int,
    count: int,
    steps: RequantizationSteps,
) -> Any:
    """The same by a rounding mode that is given beside the steps: where it is a constant, nothing asks for it."""
    # Products and sums stay apart, although one instruction could do both: so numpy's FP32 gives the same bits, on
    # every processor, and the references can be the oracle.
    if steps.rounds_sum:
        x = rounded(limited(x, steps.sum_low, steps.sum_high), rounding) * splat(steps.sum_multiplier)
    if steps.operation != codes.FIRST:
        distance = read(residual, residual_stride, residual_kind, count) - splat(steps.residual_zero)
        x = _combined(steps.operation, x, distance * splat(steps.residual_multiplier))
    if steps.rounds_last:
        x = rounded(limited(x, steps.low, steps.high), rounding) * splat(steps.last_multiplier)
    return x


@inlined
def _combined(operation: int, x: Any, other: Any) -> Any:
    """A value and the other operand in one."""
    if operation == codes.SUM:
        return x + other
    if operation == codes.PROD:
        return x * other
    return maximum(other, x) if operation == codes.MAX else minimum(other, x)


@inlined
def last_limits(steps: RequantizationSteps) -> tuple[float, float, float]:
    """The limits of the results of `requantized`, and the zero point that is added to them when they are INT8."""
    if steps.rounds_last:
        return steps.last_low, steps.last_high, steps.zero_point
    return steps.low, steps.high, steps.zero_point


@inlined
def write_limited(
    address: int, stride: int, kind: int, x: Any, count: int, rounding: int, limits: tuple[float, float, float]
) -> None:
    """Store real numbers, or INT8, within limits; a zero point is added to INT8 alone."""
    low, high, zero_point = limits
    if kind == codes.INT8 and stride == 1 and count >= LANES and rounding == codes.HALF_TO_EVEN and zero_point == 0.0:
        # The conversion of the processor rounds to even, and packing saturates: nothing of it has to be computed.
        store_bytes(address, x, splat(low), splat(high))
    else:
        x = limited(x, low, high)
        # Rounded before the zero point is added: the sum of both in FP32 would be rounded once more.
        if kind == codes.INT8 and (rounding != codes.HALF_TO_EVEN or zero_point != 0.0):
            x = rounded(x, rounding) + splat(zero_point)
        write(address, stride, kind, x, count)


@inlined
def finish_rows(
    sums: int,
    output: Pixels,
    residual: Pixels,
    places: int,
    channels: int,
    scales: ChannelScales,
    steps: RequantizationSteps,
) -> None:
    """The results of so many pixels from their sums, in any form; scales begin with the channel that the sums do.

    This is the way of whatever a register block cannot end with in registers: rounding modes other than to even, other
    kinds of results, fixed-point scales. It costs one more pass through a piece of stack that is in the first-level
    cache.
    """
    output_size, residual_size = 4 >> (output.kind & 3), 4 >> (residual.kind & 3)
    for channel in range(0, channels, LANES):
        # Channels outside, pixels inside: what belongs to the channels is loaded once for all pixels.
        count = channels - channel
        scale = fixed_scales(scales.multipliers, scales.shifts, channel, scales.scaling)
        to, at = output.address + channel * output_size, residual.address + channel * residual_size
        for place in range(places):
            at_sums = sums + place * BLOCK_ROW_BYTES + 4 * channel
            if scales.scaling == codes.REAL_PRODUCTS:
                x = load_integers(at_sums) * scale[0]
                if scales.real_bias != 0:
                    x = x + load(scales.real_bias + 4 * channel)
            else:
                doubles = scales.shifts + 8 * channel
                x = fixed_products(load(at_sums), scale, doubles, scales.scaling, steps.rounding)
            x = requantized(x, at, residual_size, residual.kind, count, steps)
            write_limited(to, output_size, output.kind, x, count, steps.rounding, last_limits(steps))
            to, at = to + output.stride, at + residual.stride


@inlined
def channels_from(scales: ChannelScales, channel: int) -> ChannelScales:
    """What belongs to the channels from one of them on."""
    word = 4 * channel
    # Where FP64 numbers scale, two words of the shifts belong to a channel.
    shifts = scales.shifts + (2 if scales.scaling == codes.DOUBLE_PRODUCTS else 1) * word
    real_bias = scales.real_bias + word if scales.real_bias != 0 else 0
    return ChannelScales(scales.starts + word, scales.multipliers + word, shifts, scales.scaling, real_bias)


@inlined
def numbers_of(steps: RequantizationSteps) -> Any:
    """The numbers of the steps in the order of `compiler/integer_endings.Numbers`, whose register blocks hold them."""
    return (
        steps.sum_low, steps.sum_high, steps.sum_multiplier, steps.residual_multiplier, steps.low, steps.high,
        steps.last_multiplier, steps.last_low, steps.last_high, steps.residual_zero, steps.zero_point,
    )  # fmt: skip
