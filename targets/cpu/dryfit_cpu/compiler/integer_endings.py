"""The end of an integer register block: from exact sums to INT8 results, without leaving the registers.

    sums -> FP32 * multiplier -> [+ real bias] -> [round, * sum_multiplier] -> [+ (residual - its zero point) * ...]
         -> [limit, round, * last_multiplier] -> round, + zero point, limit, pack -> one store for a pixel's channels

It is the arithmetic of `kernels/requantization.py` for the forms of it that networks have, rounded to nearest even.
The last limits are applied to packed bytes, all of two pixels at once: rounding keeps the order of numbers, so that
rounding what is limited is limiting what is rounded, by rounded limits. What is outside INT32 has no whole number here:
`kernels/integer_products.py` uses these endings only where no sum can get so far.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from dryfit.attrs_classes import frozen
from dryfit_cpu import codes
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, SHORT, Builder, Value, load, offset, store, word
from dryfit_cpu.compiler.integer_memory import nearest_integers
from dryfit_cpu.compiler.memory import limited_bytes, rounded_bits
from dryfit_cpu.compiler.register_block import LANES, VECTORS
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import BYTES, FLOATS, INTS

_TOGETHER = 4
"""Pixels whose sums go through each step together."""


@frozen
class BlockEnding:
    """What happens between the first multiplication and the last rounding."""

    adds: bool = False
    rounds_sum: bool = False
    rounds_last: bool = False
    has_zero: bool = False


ENDINGS = {
    codes.SCALES: BlockEnding(),
    codes.ADDS: BlockEnding(adds=True),
    codes.ROUNDS_AND_ADDS: BlockEnding(adds=True, rounds_sum=True),
    codes.ROUNDS_LAST: BlockEnding(rounds_last=True),
    codes.ADDS_DISTANCES: BlockEnding(adds=True, has_zero=True),
    codes.ROUNDS_AND_ADDS_DISTANCES: BlockEnding(adds=True, rounds_sum=True, has_zero=True),
}
"""Code to ending."""


@frozen
class StepNumbers:
    """The numbers of `Requantization` as LLVM values, FP32; names and order are those of its fields."""

    sum_low: Value
    sum_high: Value
    sum_multiplier: Value
    residual_multiplier: Value
    low: Value
    high: Value
    last_multiplier: Value
    last_low: Value
    last_high: Value
    residual_zero: Value
    zero_point: Value


def finish(
    builder: Builder,
    ending: BlockEnding,
    sums: Sequence[Value],
    scales: tuple[Value, Value],
    outputs: Sequence[Value],
    residuals: Sequence[Value],
    numbers: StepNumbers,
    bounds: Value,
) -> None:
    """Requantize and store the sums of pixels.

    Sums are INT32 vectors, `VECTORS` for each pixel. Scales are the addresses of the first channel's multiplier and
    real bias, which is 0 where there is none; outputs and residuals the addresses of each pixel's INT8 results and of
    what is added to it; bounds the address of what `bounds_of` made.
    """
    multipliers, bias = scales
    zero = builder.fptosi(numbers.zero_point, SHORT if _packs() else BYTE)
    for first in range(0, len(outputs), _TOGETHER):
        pixels = range(first, min(first + _TOGETHER, len(outputs)))
        values = [sums[pixel * VECTORS + vector] for pixel in pixels for vector in range(VECTORS)]
        added = [
            offset(builder, address, LANES * vector)
            for address in residuals[first : first + len(pixels)]
            for vector in range(VECTORS)
        ]
        scaled = _scaled(builder, values, multipliers, bias)
        results = _requantized(builder, ending, scaled, added, numbers)
        to = [outputs[pixel] for pixel in pixels]
        if _packs():
            for pair in range(0, len(pixels), 2):
                here = results[VECTORS * pair : VECTORS * (pair + 2)]
                _store_packed(builder, here, to[pair : pair + 2], bounds, zero)
        else:
            limits = [emit.splat(builder, limit, LANES) for limit in _last_limits(ending, numbers)]
            for index, x in enumerate(results):
                at = offset(builder, to[index // VECTORS], LANES * (index % VECTORS))
                bytes_of = limited_bytes(builder, x, *limits)
                store(builder, builder.add(bytes_of, emit.splat(builder, zero, LANES)), at)


def _last_limits(ending: BlockEnding, numbers: StepNumbers) -> tuple[Value, Value]:
    return (numbers.last_low, numbers.last_high) if ending.rounds_last else (numbers.low, numbers.high)


def bounds_of(builder: Builder, code: Value, numbers: StepNumbers) -> list[Value]:
    """The limits of results as registers of bytes, for the ending of a code; none where a machine does not pack so."""
    if not _packs():
        return []
    # They are packed by the same instructions as the results: so they are rounded and shifted alike, in the order of
    # bytes that packing leaves. Once for all blocks, since that takes as long as the results of two pixels.
    is_last = builder.icmp_signed("==", code, word(codes.ROUNDS_LAST))
    last, others = (_last_limits(BlockEnding(rounds_last=rounds), numbers) for rounds in (True, False))
    limits = [builder.select(is_last, *pair) for pair in zip(last, others, strict=True)]
    zero = builder.fptosi(numbers.zero_point, SHORT)
    return [_packed(builder, [emit.splat(builder, limit, LANES)] * 4, zero) for limit in limits]


def _scaled(builder: Builder, sums: Sequence[Value], multipliers: Value, bias: Value) -> list[Value]:
    """Sums of some pixels as scaled numbers, with the bias of a layer that has a real one.

    Whether there is one is asked once for all these pixels, which costs nothing: so each ending serves both.
    """

    def of_channels(address: Value) -> list[Value]:
        vectors = [load(builder, FLOATS, offset(builder, address, 4 * LANES * vector)) for vector in range(VECTORS)]
        return vectors * (len(sums) // VECTORS)

    # A product, then a sum, and no fused operation: FP32 in numpy, which the tests compare with, has none. Sums above
    # 2**24 are rounded here, once, as the definition says.
    values = [builder.sitofp(value, FLOATS) for value in sums]
    values = [builder.fmul(x, y) for x, y in zip(values, of_channels(multipliers), strict=True)]
    has_bias = builder.icmp_signed("!=", bias, word(0))
    return emit.changed_if(
        builder, has_bias, values, lambda: [builder.fadd(x, y) for x, y in zip(values, of_channels(bias), strict=True)]
    )


def _requantized(
    builder: Builder, ending: BlockEnding, values: Sequence[Value], residuals: Sequence[Value], numbers: StepNumbers
) -> list[Value]:
    """Scaled numbers of some pixels up to the last rounding, each step for all of them before the next one.

    A processor looks ahead for no more than some dozens of instructions: one vector after the other, most of them would
    wait for the one before.
    """
    values = list(values)
    if ending.rounds_sum:
        values = _rounded(builder, values, numbers.sum_low, numbers.sum_high)
        multiplier = emit.splat(builder, numbers.sum_multiplier, LANES)
        values = [builder.fmul(x, multiplier) for x in values]
    if ending.adds:
        multiplier = emit.splat(builder, numbers.residual_multiplier, LANES)
        added = [builder.sitofp(builder.sext(load(builder, BYTES, at), INTS), FLOATS) for at in residuals]
        if ending.has_zero:
            zero = emit.splat(builder, numbers.residual_zero, LANES)
            added = [builder.fsub(x, zero) for x in added]
        added = [builder.fmul(x, multiplier) for x in added]
        values = [builder.fadd(x, y) for x, y in zip(values, added, strict=True)]
    if ending.rounds_last:
        values = _rounded(builder, values, numbers.low, numbers.high)
        multiplier = emit.splat(builder, numbers.last_multiplier, LANES)
        values = [builder.fmul(x, multiplier) for x in values]
    return values


# Limits before rounding and not after it: what is left then fits the conversion to 32 bits, which gives -2**31 for all
# that does not, NaN and infinity included.
def _rounded(builder: Builder, values: Sequence[Value], low: Value, high: Value) -> list[Value]:
    """Whole numbers within limits, as FP32."""
    low, high = (emit.splat(builder, limit, LANES) for limit in (low, high))
    values = [builder.select(builder.fcmp_ordered(">", low, x), low, x) for x in values]
    values = [builder.select(builder.fcmp_ordered("<", high, x), high, x) for x in values]
    if current_tier().has_rounding:
        return [emit.call(builder, f"llvm.rint.v{LANES}f32", FLOATS, [x]) for x in values]
    zero = rounded_bits(builder, emit.constant(FLOATS, 0.0))
    return [builder.sitofp(builder.sub(rounded_bits(builder, x), zero), FLOATS) for x in values]


# Packing: two pixels of two vectors become one register of bytes ------------------------------------------------------


def _packs() -> bool:
    """Whether the machine packs registers of more than four lanes with saturation: x86 with AVX2."""
    return LANES > 4


def _store_packed(builder: Builder, results: list[Value], outputs: Sequence[Value], bounds: Value, zero: Value) -> None:
    """Store one or two pixels."""
    # A pixel alone is packed with itself.
    packed = _packed(builder, (results * 2)[:4], zero)
    for place, name in enumerate(("smax", "smin")):
        # Read where it is needed: an operand in memory takes no register, and none of the sums makes room for it.
        bound = load(builder, packed.type, offset(builder, bounds, 4 * LANES * place), 4 * LANES)
        packed = emit.call(builder, f"llvm.{name}.v{4 * LANES}i8", packed.type, [packed, bound])
    words = builder.bitcast(packed, INTS)
    # 16 bits on the way saturate before the zero point is added with saturation: both only cut off what the bytes cut
    # off anyway.
    # Packing goes by quarters of 128 bits: of each quarter's four words, one is of each vector.
    quarters = LANES // 4
    order = [4 * quarter + vector for vector in range(4) for quarter in range(quarters)]
    for pixel, output in enumerate(outputs):
        half = order[LANES // 2 * pixel : LANES // 2 * (pixel + 1)]
        store(builder, emit.shuffled(builder, words, words, half), output)


def _packed(builder: Builder, numbers: Sequence[Value], zero: Value) -> Value:
    """Four vectors of FP32, rounded, with the zero point added, and saturated to INT8, by quarters."""
    whole = [nearest_integers(builder, x) for x in numbers]
    halves = [emit.packed(builder, *pair) for pair in (whole[:2], whole[2:])]
    # Whether there is a zero point is asked for each register, which is free.
    add = f"llvm.sadd.sat.v{2 * LANES}i16"
    is_there = builder.icmp_signed("!=", zero, ir.Constant(SHORT, 0))
    halves = emit.changed_if(
        builder,
        is_there,
        halves,
        lambda: [emit.call(builder, add, half.type, [half, emit.splat(builder, zero, 2 * LANES)]) for half in halves],
    )
    return emit.packed(builder, *halves)
