"""Sums of products of integers, as each kind of machine adds them: what a word of k is in the integer register block.

A word is

* four bytes where the machine multiplies bytes. On x86 (VNNI) the pixel's become unsigned, 128 above their values, when
  they are loaded, and the sums begin 128 times the sum of the weights below the bias; so the products are those of
  signed bytes. Arm (`sdot`, `smmla`) multiplies signed bytes, and sums begin at the bias;
* a pair of 16-bit integers on all other machines.

All give the same sums.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, SHORT, WORD, Builder, Value, load, offset, operation, store
from dryfit_cpu.compiler.register_block import (
    LANES,
    PANEL_ROW_BYTES,
    UNROLL,
    VECTORS,
    BlockProduct,
    BlockTerms,
    JoinedWords,
    sum_segments,
)
from dryfit_cpu.compiler.tier import IntegerProducts, current_tier, is_arm

SUMS = emit.vector_of(INT, LANES)
"""LLVM type of a vector of sums."""
_BYTES, _WORDS = emit.vector_of(BYTE, 4 * LANES), emit.vector_of(WORD, LANES // 2)
_SHORTS = emit.vector_of(SHORT, 2 * LANES)


IntegerProduct = Callable[[Builder, Value], BlockProduct]
"""Of (builder, product argument): what a word adds to sums. The argument is what `held_arguments` says."""


def tier_product(builder: Builder, flip: Value) -> BlockProduct:
    """Products of bytes, or where the machine has none of these, of pairs."""
    products = current_tier().products
    if products is IntegerProducts.UNSIGNED_BYTES:
        return _unsigned_bytes(builder, flip)
    return {
        IntegerProducts.PAIRS: _PAIRS,
        IntegerProducts.SIGNED_BYTES: _SIGNED_BYTES,
        IntegerProducts.BYTE_MATRICES: _BYTE_MATRICES,
    }[products]


def sum_words(builder: Builder, product: BlockProduct, run: int, terms: BlockTerms, starts: list[Value]) -> list[Value]:
    """The sums over words, from where each starts."""
    if product is not _BYTE_MATRICES:
        return sum_segments(builder, product, run, terms, starts)
    matrices = sum_segments(builder, product, run, terms, _matrices_of(builder, starts))
    return _pixels_of(builder, matrices, len(starts))


def sum_pairs(builder: Builder, run: int, terms: BlockTerms, starts: list[Value]) -> list[Value]:
    """The sums over pairs of 16-bit integers."""
    return sum_segments(builder, _PAIRS, run, terms, starts)


# VNNI multiplies unsigned by signed bytes. Activations are the unsigned ones: 128 above their values, which is one flip
# of the highest bit where a word is loaded, and `sum((a + 128) * w) = sum(a * w) + 128 * sum(w)`, whose second part is
# known when weights are packed. The other way round the correction would be one for each pixel.
def _unsigned_bytes(builder: Builder, flip: Value) -> BlockProduct:
    """Four products of an unsigned and a signed byte."""
    # Hidden, so that LLVM does not flip before the word goes to all lanes: with AVX512 one instruction loads, goes to
    # all lanes and flips.
    flips = emit.opaque_vector(builder, emit.splat(builder, builder.trunc(flip, INT), LANES))

    def add(builder: Builder, pixel: Value, weights: list[Value], vector: int, sums: Value) -> Value:
        # Named with its older signature of 32-bit lanes, which every LLVM takes.
        unsigned = builder.xor(pixel, flips)
        return emit.call(builder, f"llvm.x86.avx512.vpdpbusd.{32 * LANES}", SUMS, [sums, unsigned, weights[vector]])

    return BlockProduct(INT, SUMS, add)


def add_signed_bytes(builder: Builder, a: Value, b: Value, sums: Value) -> Value:
    """Four products of signed bytes (`sdot`), the words of b multiplied where they are the same in all lanes."""
    terms = [sums, builder.bitcast(a, _BYTES), builder.bitcast(b, _BYTES)]
    return emit.call(builder, "llvm.aarch64.neon.sdot.v4i32.v16i8", SUMS, terms)


_SIGNED_BYTES = BlockProduct(
    INT,
    SUMS,
    lambda builder, pixel, weights, vector, sums: add_signed_bytes(builder, weights[vector], pixel, sums),
)


# Machines without VNNI multiply bytes too (`vpmaddubsw`), and add two products in 16 bits, which saturate: two of 255
# and 127 are already wrong. Two of 127 and -128 fit. So where no code of the input is negative, as behind a ReLU, it is
# exact, and four products take three instructions instead of four.
def unsigned_product(_builder: Builder, table: Value) -> BlockProduct:
    """Four products of a byte from 0 to 127 and a signed one; the table is that of `JoinedWords`."""

    def add(builder: Builder, pixel: Value, weights: list[Value], vector: int, sums: Value) -> Value:
        return _add_shorts(builder, _short_products(builder, pixel, weights[vector]), sums)

    joined = JoinedWords(_add_joined, table) if current_tier().joins_words else None
    return BlockProduct(INT, SUMS, add, is_apart=True, joined=joined)


def _short_products(builder: Builder, pixel: Value, weights: Value) -> Value:
    """Sums of two products, in 16 bits."""
    wide = "avx512.pmaddubs.w.512" if LANES == 16 else "avx2.pmadd.ub.sw"
    values = [builder.bitcast(pixel, _BYTES), builder.bitcast(weights, _BYTES)]
    return emit.call(builder, f"llvm.x86.{wide}", _SHORTS, values)


def _add_shorts(builder: Builder, pairs: Value, sums: Value) -> Value:
    return _add_pairs(builder, pairs, [emit.constant(_SHORTS, 1)], 0, sums)


# The products of two words add up in 16 bits too where the weights are small enough: no four of one sign may sum to
# more than 258. In trained networks 92 to 98 of 100 turns of a block pass. These take five instructions instead of six,
# and three multiply where four did: a turn takes 21.5 cycles instead of 25.5 (AMD EPYC, Zen 3).
def _add_joined(builder: Builder, pixels: list[Value], weight: Value, sums: list[Value]) -> list[Value]:
    """The sums with the words of a turn, whose products are added in 16 bits first."""
    sums = list(sums)
    for pixel, address in enumerate(pixels):
        # Weights are operands in memory, read again for each pixel: in registers they would leave none to the products.
        if pixel:
            last = slice((pixel - 1) * VECTORS, pixel * VECTORS)
            weight, *sums[last] = emit.one_after_the_other(builder, weight, *sums[last])
        words = [load(builder, INT, offset(builder, address, 4 * k)) for k in range(UNROLL)]
        values = [emit.splat(builder, word, LANES) for word in words]
        for vector in range(VECTORS):
            joined = None
            for k, value in enumerate(values):
                weights = load(builder, SUMS, offset(builder, weight, 4 * LANES * vector + PANEL_ROW_BYTES * k))
                products = _short_products(builder, value, weights)
                joined = products if joined is None else builder.add(joined, products)
            index = pixel * VECTORS + vector
            sums[index] = _add_shorts(builder, joined, sums[index])
    return sums


_LARGEST_SHARE = 32767 // 127
"""What the positive weights of products that are joined may sum to, and the negative ones."""


@operation(types.void, types.int64, types.int64)
def mark_joined(builder: Builder, weights: Value, mark: Value) -> None:
    """Write a byte: 1 where a turn may join the words that begin at an address of weights, for all channels of a block.

    What is joined are an even place of a word and the odd one behind it, and the same two of the next word.
    """
    zero, ones = emit.constant(_BYTES, 0), emit.constant(_BYTES, 1)
    largest = None
    for vector in range(VECTORS):
        at = [offset(builder, weights, 4 * LANES * vector + PANEL_ROW_BYTES * k) for k in range(UNROLL)]
        words = [load(builder, _BYTES, address) for address in at]
        for sign in (">", "<"):
            # Of -128 the magnitude is 128 as an unsigned byte.
            one_sign = [builder.select(builder.icmp_signed(sign, word, zero), word, zero) for word in words]
            magnitudes = [builder.sub(zero, word) if sign == "<" else word for word in one_sign]
            shares = [_short_products(builder, magnitude, ones) for magnitude in magnitudes]
            share = functools.reduce(builder.add, shares)
            is_larger = None if largest is None else builder.icmp_signed(">", share, largest)
            largest = share if largest is None else builder.select(is_larger, share, largest)
    most = emit.call(builder, f"llvm.vector.reduce.smax.v{2 * LANES}i16", SHORT, [largest])
    store(builder, builder.zext(builder.icmp_signed("<=", most, SHORT(_LARGEST_SHARE)), BYTE), mark)


# Pairs of 16-bit integers are exact for all codes: 2 * 128 * 128 fits 32 bits. It is written in plain LLVM, which
# becomes `vpmaddwd` or `pmaddwd`, at a quarter of VNNI's speed (132 to 136 against 520 to 570 GOP/s on one core with
# AVX512).
def _add_pairs(builder: Builder, pixel: Value, weights: list[Value], vector: int, sums: Value) -> Value:
    """Two products of 16-bit integers; x86 has an instruction for this form."""
    wide = emit.vector_of(INT, 2 * LANES)
    a, b = (builder.sext(builder.bitcast(x, _SHORTS), wide) for x in (pixel, weights[vector]))
    products = builder.mul(a, b)
    even, odd = (emit.shuffled(builder, products, products, range(start, 2 * LANES, 2)) for start in (0, 1))
    return builder.add(sums, builder.add(even, odd))


def _accumulate_pairs(builder: Builder, pixel: Value, weights: list[Value], vector: int, sums: Value) -> Value:
    """The same in one instruction, which comes with the products of bytes. Sums wrap around in both."""
    return emit.call(builder, f"llvm.x86.avx512.vpdpwssd.{32 * LANES}", SUMS, [sums, pixel, weights[vector]])


# Arm has no instruction that adds both products of a pair. It has one for four products of a register's half by a lane
# of another (`smlal`): so the first and the second weights of the pairs of two vectors go to a register each, once for
# all pixels, and a pair takes two instructions.
def _apart(builder: Builder, weights: list[Value]) -> list[Value]:
    """Two vectors of pairs as the first ones of all pairs, and the second ones."""
    a, b = (builder.bitcast(one, _SHORTS) for one in weights)
    return [emit.shuffled(builder, a, b, range(start, 4 * LANES, 2)) for start in (0, 1)]


def _pair_apart(builder: Builder, words: Value, index: int) -> list[Value]:
    """A pair as its first value in each lane, and its second one."""
    values = builder.bitcast(words, _SHORTS)
    return [emit.shuffled(builder, values, values, [2 * index + place] * LANES) for place in (0, 1)]


def _add_pairs_by_lanes(builder: Builder, pair: list[Value], weights: list[Value], vector: int, sums: Value) -> Value:
    """Two products of 16-bit integers, both sides apart."""
    for value, apart in zip(pair, weights, strict=True):
        sums = add_shorts(builder, half_of(builder, apart, vector), value, sums)
    return sums


def half_of(builder: Builder, shorts: Value, half: int) -> Value:
    """A half of a register of 16-bit integers, on Arm."""
    return emit.shuffled(builder, shorts, shorts, range(half * LANES, half * LANES + LANES))


def add_shorts(builder: Builder, a: Value, b: Value, sums: Value) -> Value:
    """Products of half a register of 16-bit integers (`smlal`)."""
    return builder.add(sums, emit.call(builder, f"llvm.aarch64.neon.smull.v{LANES}i32", SUMS, [a, b]))


def _pairs() -> BlockProduct:
    if is_arm():
        return BlockProduct(INT, SUMS, _add_pairs_by_lanes, _pair_apart, _apart)
    if current_tier().has_byte_products:
        return BlockProduct(INT, SUMS, _accumulate_pairs)
    return BlockProduct(INT, SUMS, _add_pairs, is_apart=True)


_PAIRS = _pairs()


# A matrix holds the sums of two pixels by two channels. An instruction (`smmla`) adds the products of eight bytes, two
# words, of both pixels and both channels: twice as many as `sdot`, for a zip of the pixels' registers. Weights of two
# words lie as `matrix_rows` of `kernels/integer_products.py` says; what is left of a run keeps the rows of words, and
# half of its products are with zeros.
_PAIRED = ((0, 1, LANES, LANES + 1), (2, 3, LANES + 2, LANES + 3))
"""Lanes of two vectors: the first halves of both, and the second ones."""


def _paired(builder: Builder, a: Value, b: Value) -> list[Value]:
    """The sums of two pixels' four channels as two matrices; or two matrices as the sums of two pixels."""
    return [emit.shuffled(builder, a, b, order) for order in _PAIRED]


def _matrices_of(builder: Builder, sums: list[Value]) -> list[Value]:
    """Sums, pixel by pixel, as matrices: of two pixels each, the last one with itself where their number is odd."""
    pixels = [sums[first : first + VECTORS] for first in range(0, len(sums), VECTORS)]
    both = [(pixels[first], pixels[min(first + 1, len(pixels) - 1)]) for first in range(0, len(pixels), 2)]
    return [matrix for a, b in both for of_both in zip(a, b, strict=True) for matrix in _paired(builder, *of_both)]


def _pixels_of(builder: Builder, matrices: list[Value], count: int) -> list[Value]:
    """So many vectors of sums, pixel by pixel, of matrices."""
    sums: list[Value] = []
    for first in range(0, len(matrices), 2 * VECTORS):
        of_both = [_paired(builder, *matrices[at : at + 2]) for at in range(first, first + 2 * VECTORS, 2)]
        sums += [vector for pixel in zip(*of_both, strict=True) for vector in pixel]
    return sums[:count]


def _add_matrices(
    builder: Builder, pixels: list[Value], weight: Value, words: int, matrices: list[Value]
) -> list[Value]:
    """Matrices with so many words k of each pixel: two of them at a time, or the one that is left with zeros."""
    whole = words == UNROLL
    weights = _matrix_weights(builder, weight) if whole else [_word_weights(builder, weight)]
    pairs = [[pixels[first], pixels[min(first + 1, len(pixels) - 1)]] for first in range(0, len(pixels), 2)]
    values = [_of_both(builder, both) if whole else [_word_of_both(builder, both)] for both in pairs]
    result = list(matrices)
    for index, columns in enumerate(weights):
        for pair, value in enumerate(values):
            for place, column in enumerate(columns, start=pair * 2 * VECTORS):
                terms = [result[place], builder.bitcast(value[index], _BYTES), builder.bitcast(column, _BYTES)]
                result[place] = emit.call(builder, "llvm.aarch64.neon.smmla.v4i32.v16i8", SUMS, terms)
    return result


def _matrix_weights(builder: Builder, weight: Value) -> list[list[Value]]:
    """The weights of four words: for each two of them, two channels in a register."""
    rows = [offset(builder, weight, PANEL_ROW_BYTES * row) for row in range(UNROLL)]
    registers = [[load(builder, SUMS, offset(builder, row, place)) for place in (0, 4 * LANES)] for row in rows]
    return [registers[row] + registers[row + 1] for row in range(0, UNROLL, 2)]


def _word_weights(builder: Builder, weight: Value) -> list[Value]:
    """The weights of one word, with zeros in the place of a second one."""
    zero = emit.constant(SUMS, 0)
    loaded = [load(builder, SUMS, offset(builder, weight, 4 * LANES * vector)) for vector in range(VECTORS)]
    orders = [(first, LANES, first + 1, LANES) for first in range(0, LANES, 2)]
    return [emit.shuffled(builder, one, zero, order) for one in loaded for order in orders]


def _of_both(builder: Builder, addresses: list[Value]) -> list[Value]:
    """Four words of two pixels: the first two of both, then the others."""
    a, b = (load(builder, _WORDS, address) for address in addresses)
    return [emit.shuffled(builder, a, b, [place, place + LANES // 2]) for place in range(LANES // 2)]


def _word_of_both(builder: Builder, addresses: list[Value]) -> Value:
    """A word of two pixels, each with zeros behind."""
    values = emit.constant(SUMS, 0)
    for place, address in enumerate(addresses):
        values = builder.insert_element(values, load(builder, INT, address), INT(place * LANES // 2))
    return values


def _never(*_arguments: Any) -> Value:
    raise NotImplementedError("pixels are multiplied two at a time")


_BYTE_MATRICES = BlockProduct(INT, SUMS, _never, add_words=_add_matrices)
