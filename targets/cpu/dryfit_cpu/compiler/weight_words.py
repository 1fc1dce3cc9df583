"""Narrow weights as they lie in memory, decoded in registers: 32-bit words of 8 or 4 of a channel's weights.

A panel of 32 output channels is rows of 32 words, each with consecutive weights of its channel, the first in the
lowest bits: of a vector of words, one shift gives a vector of weights k, channel by channel. So 4-bit weights lie two a
byte, along k, in the order in which devices pack them.

What is decoded is `code * scale`, rounded to FP32: what a dequantize layer gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.codes import FP4, FP8, INT4, INT8
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, INT, Builder, Loop, Value, load, offset, store, word
from dryfit_cpu.compiler.narrow_numbers import widened_fp4, widened_fp8, widened_int4, widened_int8
from dryfit_cpu.compiler.register_block import PANEL_ROW_BYTES, VECTORS
from dryfit_cpu.compiler.tier import is_x86
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES

_VECTOR_BYTES = 4 * LANES
_FP4_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_TABLES = {INT4: (*range(8), *range(-8, 0)), FP4: (*_FP4_MAGNITUDES, *(-one for one in _FP4_MAGNITUDES))}
_WIDEN: dict[int, Callable[[Builder, Value], Value]] = {
    INT4: widened_int4,
    FP4: widened_fp4,
    INT8: widened_int8,
    FP8: widened_fp8,
}


def weights_of_word(kind: int) -> int:
    """Weights in a word of 32 bits."""
    return 8 if kind in (INT4, FP4) else 4


def _decoded(builder: Builder, words: Value, kind: int, shift: Value) -> Value:
    """FP32 of the codes that begin so many bits up in each word; the shift is a vector."""
    # Sixteen codes are a table of sixteen numbers, which is one register of AVX512: a permutation decodes as many
    # weights as it has lanes, and needs no mask, as it ignores the bits above.
    if is_x86() and kind in _TABLES and LANES == 16:
        # The instruction looks at the lowest four bits only.
        table = ir.Constant(FLOATS, [float(number) for number in _TABLES[kind]])
        index = builder.lshr(words, shift)
        return emit.call(builder, "llvm.x86.avx512.permvar.sf.512", FLOATS, [table, index])
    # With AVX2 a register has the eight magnitudes; the sign is the code's highest bit, shifted to where FP32 has it.
    if is_x86() and kind == FP4 and LANES == 8:
        table = ir.Constant(FLOATS, list(_FP4_MAGNITUDES))
        index = builder.lshr(words, shift)
        magnitude = emit.call(builder, "llvm.x86.avx2.permps", FLOATS, [table, index])
        sign = builder.shl(builder.and_(index, emit.constant(INTS, 8)), emit.constant(INTS, 28))
        return builder.bitcast(builder.xor(builder.bitcast(magnitude, INTS), sign), FLOATS)
    return _WIDEN[kind](builder, builder.lshr(words, shift))


def _shift(kind: int, place: int) -> Value:
    return emit.constant(INTS, 32 // weights_of_word(kind) * place)


def _words(builder: Builder, address: Value) -> list[Value]:
    return [load(builder, INTS, offset(builder, address, _VECTOR_BYTES * vector), 4) for vector in range(VECTORS)]


def _scales(builder: Builder, address: Value) -> list[Value]:
    return [load(builder, FLOATS, offset(builder, address, _VECTOR_BYTES * vector), 4) for vector in range(VECTORS)]


def panel_decoder(kind: int) -> Any:
    """An operation that writes a block's weights k as FP32 rows of a panel.

    Its arguments, all integers:
        words: address of the first row's words of the block.
        count: weights k of each channel, filled up to whole words.
        scales: address of FP32 scales, one for each channel of the block.
        output: address of the first of the rows, `PANEL_ROW_BYTES` apart.
    """
    units = weights_of_word(kind)

    @emit.outlined_operation(f"decode_panel_{kind}", *[types.int64] * 4)
    def decode(builder: Builder, words: Value, count: Value, scales: Value, output: Value) -> None:
        factors = _scales(builder, scales)
        turns = builder.sdiv(builder.add(count, word(units - 1)), word(units))
        loop = Loop(builder, turns, [words, output])
        source, to = loop.values
        for vector, codes in enumerate(_words(builder, source)):
            for place in range(units):
                weights = builder.fmul(_decoded(builder, codes, kind, _shift(kind, place)), factors[vector])
                store(builder, weights, offset(builder, to, PANEL_ROW_BYTES * place + _VECTOR_BYTES * vector), 4)
        loop.finish([offset(builder, source, PANEL_ROW_BYTES), offset(builder, to, PANEL_ROW_BYTES * units)])

    return decode


def row_kernel(kind: int) -> Any:
    """An operation that adds the products of one row of FP32 values and a block's weights to sums.

    Every sum is added to in the order of k, each product by one fused operation where the machine has it: as
    `register_block.py` does, so that both give the same bits.

    Its arguments, all integers:
        input: address of the row's first value.
        words: address of the first row's words of the block.
        count: values k.
        block: values that share a scale: a multiple of a word's, or at least `count`.
        scales: address of FP32 scales of the block's channels; those of the next values are `PANEL_ROW_BYTES` on.
        sums: address of the block's sums.
    """
    units = weights_of_word(kind)

    def add(builder: Builder, sums: list[Value], x: Value, codes: list[Value], factors: list[Value], by: Value) -> None:
        value = emit.splat(builder, load(builder, FLOAT, x), LANES)
        for vector in range(VECTORS):
            # The weight is rounded to FP32 before it is multiplied, as a dequantize layer rounds it: scaling whole sums
            # instead would save this product, and give other bits than the network that it stands for.
            weights = builder.fmul(_decoded(builder, codes[vector], kind, by), factors[vector])
            sums[vector] = emit.multiply_add(builder, value, weights, sums[vector])

    @emit.outlined_operation(f"add_row_{kind}", *[types.int64] * 6)
    def add_row(
        builder: Builder, input: Value, words: Value, count: Value, block: Value, scales: Value, sums: Value
    ) -> None:
        start = _scales(builder, sums)
        blocks = builder.sdiv(builder.add(count, builder.sub(block, word(1))), block)
        outer = Loop(builder, blocks, [count, input, words, scales, *start])
        left, x, at, scale, *totals = outer.values
        factors = _scales(builder, scale)
        here = builder.select(builder.icmp_signed("<", left, block), left, block)
        whole = builder.sdiv(here, word(units))
        inner = Loop(builder, whole, [x, at, *totals])
        x, at, *totals = inner.values
        codes, added = _words(builder, at), list(totals)
        for place in range(units):
            add(builder, added, offset(builder, x, 4 * place), codes, factors, _shift(kind, place))
        x, at, *totals = inner.finish([offset(builder, x, 4 * units), offset(builder, at, PANEL_ROW_BYTES), *added])
        rest = Loop(builder, builder.sub(here, builder.mul(whole, word(units))), [x, *totals])
        x, *totals = rest.values
        added = list(totals)
        shift = builder.trunc(builder.mul(rest.index, word(32 // units)), INT)
        add(builder, added, x, _words(builder, at), factors, emit.splat(builder, shift, LANES))
        x, *totals = rest.finish([offset(builder, x, 4), *added])
        after = [builder.sub(left, here), x, at, offset(builder, scale, PANEL_ROW_BYTES), *totals]
        for vector, value in enumerate(outer.finish(after)[4:]):
            store(builder, value, offset(builder, sums, _VECTOR_BYTES * vector), 4)

    return add_row
