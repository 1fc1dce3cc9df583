"""The register block: the one inner loop that convolution and matrix products spend their time in.

A block is `rows` pixels by two vectors of output channels, kept in registers from the first to the last of the summed
values k. With AVX512, 14 pixels by 2 x 16 channels:

                      weights[k][32]      one row of the packed panel
                    +--------+--------+
                    | vector | vector |   2 registers
                    +--------+--------+
    input0 -> x[k]  |  sum   |  sum   |
            ... 7   |  ...   |  ...   |   28 registers: sums, which begin at the bias
    input1 -> x[k]  |  sum   |  sum   |
            ... 7   |  ...   |  ...   |
                    +--------+--------+
      1 register:
      x[k] in each lane

The pixels come as two runs, each with a constant distance: so a block can be 14 neighbours, or 7 + 7 pixels of two
image rows, or overlap its neighbour at the end of a row (it then computes the same values again). The values k of a
pixel come as segments, runs that lie together in memory: one for each kernel row where channels are dense, else one
for each tap; an offset table says where they begin. That is convolution without any rearranging of the input.

A unit of k is a word of four bytes: one FP32 value, four bytes, or a pair of 16-bit integers. What a word of a pixel
and a column of weights add to a sum is the `BlockProduct`; all else is the same for every type.

On Arm an instruction multiplies by one lane of a register. There x[k] to x[k + 3] of a pixel are one load, and nothing
goes to all lanes: 8 pixels by 2 x 4 channels take 12 loads (two of weights by an instruction) for 64 products.

The block in FP32 gets its beginning (the bias, or sums of an earlier block of k) and its end (the residual is added,
the sums are clamped or end in hard swish, and are stored) here too; that in integers in `integer_micro_kernel.py`.

What is left of the channels is computed by narrow blocks: one vector wide, of which the last may be there in part. With
AVX512, half a vector or less is computed by short blocks, of registers with half of the lanes: a processor that
computes whole registers in two halves takes half of the time for them.

A single pixel uses each weight once, so that its block waits for memory. It has wide blocks: eight vectors, which are
whole rows of one or more panels. So memory is read in several streams and no line of it twice: with one row, 9216
inputs and 4096 outputs a matrix product takes 0.6 of the time (AMD EPYC, Zen 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from llvmlite import ir
from numba import types

from dryfit.attrs_classes import frozen
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.block_arguments import (
    PANEL_INPUT,
    PANEL_OUTPUT,
    PANEL_RESIDUAL,
    PANEL_START,
    PANEL_WEIGHTS,
    PANEL_WIDTH,
    TILE_INPUTS,
    TILE_OUTPUTS,
    TILE_RESIDUALS,
    Held,
    HeldArguments,
    blocks_operation,
    places,
)
from dryfit_cpu.compiler.emit import BYTE, FLOAT, WORD, Builder, Loop, Value, load, offset, store, word
from dryfit_cpu.compiler.line_copies import CACHE_LINE
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.vectors import first_mask, store_first

LANES = current_tier().lanes
# Two vectors of channels by `rows` pixels. Each turn loads two vectors of weights and broadcasts `rows` words, so that
# 28 products need 16 loads; a machine that loads two and multiplies two per cycle is then bound by its multipliers.
# Wider blocks have fewer pixels for as many registers, and more loads for as many products. With AVX512 28 sums, two
# vectors of weights and one broadcast are 31 of 32 registers.
VECTORS = 2
"""Width of a block; sums of one vector a pixel are a narrow block."""
BLOCK_ROW_BYTES = 4 * LANES * VECTORS
"""Bytes of a word's weights for all channels of a block, and of a pixel's sums."""
PANEL_ROW_BYTES = 4 * PANEL_CHANNELS
"""A panel is packed the same on every machine; narrower blocks take a part of its columns."""

_LANE_WORDS = current_tier().lane_words
# Measured: with 1 the loop's own instructions count, with 4 LLVM sometimes writes sums to the stack in the loop, which
# costs more than all that unrolling saves. On Arm a turn is a load of each pixel.
UNROLL = max(2, _LANE_WORDS)


def _in_each_lane(builder: Builder, words: Value, index: int) -> Value:
    return emit.shuffled(builder, words, words, [index] * words.type.count)


def _as_they_are(_builder: Builder, weights: list[Value]) -> list[Value]:
    return weights


@frozen
class JoinedWords:
    """The words of a turn, added together before they are added to the sums.

    Attributes:
        add: (builder, addresses of pixels, address of weights, sums) -> sums.
        table: address of a byte for each piece of weights as wide as a block, which is not 0 where the turn that begins
            there may be joined; less the address of the weights, in such pieces.
    """

    add: Callable[[Builder, list[Value], Value, list[Value]], list[Value]]
    table: Value

    def may_join(self, builder: Builder, weight: Value) -> Value:
        """Whether the turn that begins at this address may be."""
        piece = builder.lshr(weight, word(BLOCK_ROW_BYTES.bit_length() - 1))
        return builder.icmp_unsigned("!=", load(builder, BYTE, builder.add(self.table, piece)), BYTE(0))


@frozen
class BlockProduct:
    """What is multiplied, and how.

    Attributes:
        unit: LLVM type of a pixel's word.
        sums: LLVM type of a vector of sums, and of a vector of weights.
        add: (builder, what `spread` gave, weights, index of a vector, its sums) -> sums.
        spread: (builder, register of words of a pixel, index of a word) -> this word in each lane.
        prepared: what `add` takes of the vectors of weights of a word, made once for all pixels.
        add_words: where pixels are multiplied together: (builder, addresses of pixels, address of weights, words, all
            sums) -> all sums; for 1 and for `UNROLL` words.
        panel_bytes: bytes from panel to panel, where a block is wider than one.
        is_apart: whether each word of a turn begins when the one before is added, as a product takes registers of its
            own: mixed, the words would not leave enough for the sums.
        joined: what adds the words of a turn together where their weights allow that; None where no product can.
    """

    unit: Value
    sums: Value
    add: Callable[[Builder, Value, list[Value], int, Value], Value]
    spread: Callable[[Builder, Value, int], Value] = _in_each_lane
    prepared: Callable[[Builder, list[Value]], list[Value]] = _as_they_are
    add_words: Callable[[Builder, list[Value], Value, int, list[Value]], list[Value]] | None = None
    panel_bytes: Value | None = None
    is_apart: bool = False
    joined: JoinedWords | None = None

    def of_words(
        self, builder: Builder, pixels: list[Value], weight: Value, words: int, sums: list[Value]
    ) -> list[Value]:
        """The sums with so many words k of each pixel, from the addresses of these and of the first word's weights."""
        if self.add_words is not None:
            return self.add_words(builder, pixels, weight, words, sums)
        if words == _LANE_WORDS > 1:
            return self._of_lanes(builder, pixels, weight, sums)
        vectors, sums = len(sums) // len(pixels), list(sums)
        for k in range(words):
            if k and self.is_apart:
                weight, *sums = emit.one_after_the_other(builder, weight, *sums)
            columns = self.weights(builder, weight, k, vectors)
            for pixel, address in enumerate(pixels):
                unit = load(builder, self.unit, offset(builder, address, 4 * k))
                value = emit.splat(builder, unit, self.sums.count)
                value = self.spread(builder, value, 0)
                for vector in range(vectors):
                    index = pixel * vectors + vector
                    sums[index] = self.add(builder, value, columns, vector, sums[index])
        return sums

    def of_turn(
        self, builder: Builder, pixels: list[Value], weight: Value, words: int, sums: list[Value]
    ) -> list[Value]:
        """The same for all words of a turn, which may be joined."""
        if self.joined is None:
            return self.of_words(builder, pixels, weight, words, sums)
        with builder.if_else(self.joined.may_join(builder, weight), likely=True) as (together, one_by_one):
            with together:
                joined = self.joined.add(builder, pixels, weight, sums)
                first = builder.block
            with one_by_one:
                apart = self.of_words(builder, pixels, weight, words, sums)
                second = builder.block
        return emit.merged(builder, (first, joined), (second, apart))

    def _of_lanes(self, builder: Builder, pixels: list[Value], weight: Value, sums: list[Value]) -> list[Value]:
        """The same for as many words as a register has lanes."""
        vectors, sums = len(sums) // len(pixels), list(sums)
        columns = [self.weights(builder, weight, k, vectors) for k in range(_LANE_WORDS)]
        # A pixel after the other, and its lanes inside: so one register of pixels lives at a time, beside the weights.
        for pixel, address in enumerate(pixels):
            values = load(builder, emit.vector_of(self.unit, _LANE_WORDS), address)
            for k in range(_LANE_WORDS):
                value = self.spread(builder, values, k)
                for vector in range(vectors):
                    index = pixel * vectors + vector
                    sums[index] = self.add(builder, value, columns[k], vector, sums[index])
        return sums

    def weights(self, builder: Builder, weight: Value, k: int, vectors: int) -> list[Value]:
        """The weights of a word."""
        loaded = []
        for vector in range(vectors):
            panel, place = divmod(4 * LANES * vector, PANEL_ROW_BYTES)
            row = builder.add(weight, builder.mul(self.panel_bytes, word(panel))) if panel else weight
            loaded.append(load(builder, self.sums, offset(builder, row, PANEL_ROW_BYTES * k + place)))
        return self.prepared(builder, loaded)


@frozen
class BlockTerms:
    """What a block sums over, as LLVM values.

    Attributes:
        inputs: addresses of the first pixel of each run.
        input_stride: bytes between the pixels of a run.
        segments: address of `segment_count` byte offsets.
        segment_length: words in each segment.
        weights: address of the panel's first row, or of the columns of it that are wanted.
        ahead: address of what is needed next; a cache line of it is prefetched for every two words. None where nothing
            is.
        ahead_step: bytes from prefetch to prefetch; None for a line for every two words.
    """

    inputs: Sequence[Value]
    input_stride: Value
    segments: Value
    segment_count: Value
    segment_length: Value
    weights: Value
    ahead: Value | None
    ahead_step: Value | None = None


def terms_of(builder: Builder, runs: int, common: Held, tile: Value, panel: Value, ahead: Value) -> BlockTerms:
    """What a block of a tile and a panel sums over, with a line of `ahead` for every two words."""
    return BlockTerms(
        inputs=places(builder, common["input"], (panel, PANEL_INPUT), (tile, TILE_INPUTS[:runs])),
        input_stride=common["input_stride"],
        segments=common["segments"],
        segment_count=common["segment_count"],
        segment_length=common["segment_length"],
        weights=builder.add(common["weights"], load(builder, WORD, offset(builder, panel, PANEL_WEIGHTS), 8)),
        ahead=ahead,
    )


_FEW_PIXELS = 3
"""In a run of the blocks of AVX2, whose addresses take one register beside those of its two runs."""


class Strides:
    """A distance between pixels as three registers: 1, 3 and 5 times; x86 multiplies an index by 1, 2, 4 or 8."""

    def __init__(self, builder: Builder, *registers: Value) -> None:
        self._builder = builder
        self._registers = dict(zip((1, 3, 5), registers, strict=False))

    @classmethod
    def of(cls, builder: Builder, distance: Value) -> Strides:
        """Of a distance in bytes."""
        return cls(builder, distance, builder.mul(distance, word(3)), builder.mul(distance, word(5)))

    def needed(self, pixels: int) -> list[Value]:
        """The registers that the addresses of so many pixels take."""
        return [value for times, value in self._registers.items() if times < pixels]

    def address(self, base: Value, pixel: int) -> Value:
        """Where a pixel (0 to 6) lies."""
        builder, odd, shift = self._builder, pixel, 0
        while odd and odd % 2 == 0:
            odd, shift = odd // 2, shift + 1
        if not odd:
            return base
        if odd not in self._registers:
            return builder.add(base, builder.mul(self._registers[1], word(pixel)))
        distance = self._registers[odd]
        return builder.add(base, builder.shl(distance, word(shift)) if shift else distance)


def pixels_of(builder: Builder, run: int, bases: Sequence[Value], distance: Value) -> list[Value]:
    """The addresses of the pixels of each run."""
    strides = Strides.of(builder, distance)
    return [strides.address(base, pixel) for base in bases for pixel in range(run)]


def sum_segments(
    builder: Builder, product: BlockProduct, run: int, terms: BlockTerms, sums: list[Value]
) -> list[Value]:
    """The sums over all words of all segments, of `run` pixels in each run: pixel by pixel, vector by vector."""
    runs = len(terms.inputs)
    strides = Strides.of(builder, terms.input_stride)
    registers = strides.needed(run) if _LANE_WORDS == 1 else list[Value]()
    first_sum = 1 + runs + len(registers)
    # A block of 14 pixels lacks a register for that in the loop, and has the two addresses apart from outside.
    first_hidden = runs if run > _FEW_PIXELS else 0

    def step(state: list[Value], unroll: int) -> list[Value]:
        """`unroll` words k of each pixel."""
        weight, places, sums = state[0], state[1:first_sum], state[first_sum:]
        # LLVM would hoist the addresses of all pixels out of the loop: 14 pointers that do not fit the registers and
        # are read from the stack in each turn; or it would add in each turn what addresses have in common. Values that
        # it cannot see through keep it from that; what is left is the scaled addressing of x86, which is free. The loop
        # went from 119 to 99 instructions for 56 products, and whole networks by 3 to 5 %. Arm has registers for a
        # pointer to each of eight pixels, and loads that move it on.
        if registers:
            places = [*places[:first_hidden], *(emit.opaque(builder, value) for value in places[first_hidden:])]
        bases, here = places[:runs], Strides(builder, *places[runs:]) if registers else strides
        pixels = [here.address(base, pixel) for base in bases for pixel in range(run)]
        of_words = product.of_turn if unroll == UNROLL else product.of_words
        sums = of_words(builder, pixels, weight, unroll, sums)
        moved = [offset(builder, base, 4 * unroll) for base in bases]
        return [offset(builder, weight, PANEL_ROW_BYTES * unroll), *moved, *places[runs:], *sums]

    outer = Loop(builder, terms.segment_count, [terms.weights, terms.ahead or word(0), *sums])
    begin = load(builder, WORD, builder.add(terms.segments, builder.shl(outer.index, word(3))), 8)
    bases = [builder.add(base, begin) for base in terms.inputs]
    if first_hidden:
        bases = [emit.opaque(builder, base) for base in bases]
    # A segment is a run of memory: a whole row of the window where channels are dense. So the inner loop is long, and
    # the addresses of a segment are found once for all of it.
    turns = builder.lshr(terms.segment_length, word(UNROLL.bit_length() - 1))
    inner = Loop(builder, turns, [outer.values[1], outer.values[0], *bases, *registers, *outer.values[2:]])
    # A line for every two k, as fast as they are used up: what is asked for is a panel or tile as large as this one. To
    # the second level, since the first has no room for it beside the rows that are in use.
    for line in range(0, 32 * UNROLL if terms.ahead else 0, 64):
        emit.prefetch(builder, offset(builder, inner.values[0], line), locality=2)
    next_ahead = builder.add(inner.values[0], terms.ahead_step or word(32 * UNROLL))
    state = inner.finish([next_ahead, *step(inner.values[1:], UNROLL)])
    rest = Loop(builder, builder.and_(terms.segment_length, word(UNROLL - 1)), state[1:])
    after = rest.finish(step(rest.values, 1))
    return outer.finish([after[0], state[0], *after[first_sum:]])[2:]


_SUMS = emit.vector_of(FLOAT, LANES)


def _add_products(builder: Builder, pixel: Value, weights: list[Value], vector: int, sums: Value) -> Value:
    return emit.multiply_add(builder, pixel, weights[vector], sums)


_PRODUCT = BlockProduct(FLOAT, _SUMS, _add_products)


_HELD = HeldArguments(
    (
        "input", "weights", "bias", "output", "residual", "input_stride", "segments", "segment_count", "segment_length",
        "output_stride", "residual_stride", "ahead_step", "tile_step", "panel_step",
    ),
    ("low", "high", "slope", "shift"),
)  # fmt: skip


@emit.operation(types.int64, *_HELD.types)
def held_arguments(builder: Builder, *arguments: Value) -> Value:
    """Where the arguments that are the same for many blocks lie, in the function's own memory.

    In their order:
        input, weights, bias, output, residual: addresses that the offsets of tiles and panels count from. Without a
            bias, 0, sums begin at what the output holds; residual is 0 where nothing is added.
        input_stride, segments, segment_count, segment_length: those of `BlockTerms`.
        output_stride, residual_stride: bytes between the pixels of a run.
        ahead_step: that of `BlockTerms`.
        tile_step, panel_step: bytes from a block's row of the table of tiles, and of that of panels, to the next one's.
        low, high: limits of the results.
        slope, shift: those of hard swish, which takes the place of the limits; slope is 0 for none.
    """
    return _HELD.write(builder, arguments)


def micro_kernel(rows: int, *, runs: int, vectors: int = VECTORS, lanes: int = LANES) -> Any:
    """An operation that computes blocks of `rows` pixels in so many runs (1 or 2), `vectors` of so many lanes wide.

    A narrow block is one vector wide, of which the channels that the panel has are there; a short one is one of fewer
    lanes. A wide one is of one pixel.

    Its arguments, all integers:
        count: how many blocks.
        tile, panel: addresses of rows of the tables of `kernels/matrix_products.py` for the first one.
        ahead: address of what is needed after the first one; each turn prefetches a cache line of it.
        held: what `held_arguments` gave.
        ahead_move: bytes from what a block asks for to what the next one does.
    """
    # A function of its own, never inlined: among the code that calls it, LLVM gave some sums a place on the stack
    # (66 stores and loads in one loop).

    def block(builder: Builder, *arguments: Value) -> None:
        _block(builder, rows // runs, runs, vectors, lanes, *arguments)

    def moved(builder: Builder, tile: Value, panel: Value, ahead: Value, held: Value, ahead_move: Value) -> list[Value]:
        common = Held(builder, _HELD, emit.opaque(builder, held))
        tile, panel = builder.add(tile, common["tile_step"]), builder.add(panel, common["panel_step"])
        return [tile, panel, builder.add(ahead, ahead_move)]

    width = "narrow_" if vectors < VECTORS else "wide_" if vectors > VECTORS else ""
    width = "short_" if lanes < LANES else width
    return blocks_operation(f"{width}block_{rows}_{runs}", 3, 2, block, moved)


def _block(
    builder: Builder,
    run: int,
    runs: int,
    vectors: int,
    lanes: int,
    tile: Value,
    panel: Value,
    ahead: Value,
    held: Value,
    _ahead_move: Value,
) -> None:
    """The body of a block: prologue, loops over segments and their values, epilogue."""
    common, kind = Held(builder, _HELD, held), emit.vector_of(FLOAT, lanes)
    outputs = places(builder, common["output"], (panel, PANEL_OUTPUT), (tile, TILE_OUTPUTS[:runs]))
    stride, zero = common["output_stride"], word(0)
    # Lines of the output and the residual are on their way while k is summed: with few inputs a block ends before they
    # would be there.
    lines = range(0, 4 * lanes * vectors, CACHE_LINE)
    for address in pixels_of(builder, run, outputs, stride):
        for line in lines:
            emit.prefetch(builder, offset(builder, address, line), write=True)
    with builder.if_then(builder.icmp_signed("!=", common["residual"], zero)):
        for address in _residuals(builder, run, runs, common, tile, panel):
            for line in lines:
                emit.prefetch(builder, offset(builder, address, line))

    has_bias = builder.icmp_signed("!=", common["bias"], zero)
    bias = builder.add(common["bias"], load(builder, WORD, offset(builder, panel, PANEL_START), 8))
    starts = [builder.select(has_bias, bias, output) for output in outputs]
    sums = [
        load(builder, kind, offset(builder, address, 4 * lanes * vector))
        for address in pixels_of(builder, run, starts, builder.select(has_bias, zero, stride))
        for vector in range(vectors)
    ]
    terms = attrs.evolve(terms_of(builder, runs, common, tile, panel, ahead), ahead_step=common["ahead_step"])
    product = attrs.evolve(_PRODUCT, sums=kind)
    if vectors > VECTORS:
        # The processor foresees several streams better than these lines would: asking for them takes up to a fifth more
        # time.
        terms = attrs.evolve(terms, ahead=None)
        words = builder.mul(terms.segment_count, terms.segment_length)
        product = attrs.evolve(product, panel_bytes=builder.mul(words, word(PANEL_ROW_BYTES)))
    elif vectors < VECTORS:
        # Turns are short, and would read the step from the stack with AVX512.
        terms = attrs.evolve(terms, ahead_step=None)
    sums = sum_segments(builder, product, run, terms, sums)

    # What the end needs is read again: kept from the beginning it would be in the way, and written to the stack.
    common = Held(builder, _HELD, emit.opaque(builder, held))
    to = pixels_of(builder, run, outputs, common["output_stride"])
    channels = load(builder, WORD, offset(builder, panel, PANEL_WIDTH), 8)
    limits, gate = ([emit.splat(builder, common[name], lanes) for name in pair] for pair in _ENDS)
    has_gate = builder.fcmp_unordered("!=", common["slope"], ir.Constant(FLOAT, 0.0))
    with builder.if_else(builder.icmp_signed("!=", common["residual"], zero)) as (with_residual, without):
        for branch, adds in ((with_residual, True), (without, False)):
            with branch:
                beside = _residuals(builder, run, runs, common, tile, panel) if adds else None
                with builder.if_else(has_gate) as (with_gate, within_limits):
                    with with_gate:
                        _finish(builder, sums, to, beside, emit.gated, gate, channels)
                    with within_limits:
                        _finish(builder, sums, to, beside, emit.clamped, limits, channels)


_ENDS = (("low", "high"), ("slope", "shift"))


def _residuals(builder: Builder, run: int, runs: int, common: Held, tile: Value, panel: Value) -> list[Value]:
    """The addresses of what is added to each pixel."""
    first = places(builder, common["residual"], (panel, PANEL_RESIDUAL), (tile, TILE_RESIDUALS[:runs]))
    return pixels_of(builder, run, first, common["residual_stride"])


def _finish(
    builder: Builder,
    sums: list[Value],
    outputs: list[Value],
    residuals: list[Value] | None,
    end: Callable[[Builder, Value, Value, Value], Value],
    numbers: Sequence[Value],
    channels: Value,
) -> None:
    vectors, kind = len(sums) // len(outputs), sums[0].type
    mask = first_mask(builder, channels, kind.count) if vectors == 1 else None
    results, to = [], []
    for pixel, output in enumerate(outputs):
        for vector in range(vectors):
            # Sums become outputs in their registers: a pass of its own over the output for bias, residual and clamp
            # would read and write it once more, on 56 x 56 images from beyond the second-level cache.
            value, at = sums[pixel * vectors + vector], 4 * LANES * vector
            if residuals is not None:
                value = builder.fadd(value, _load(builder, kind, offset(builder, residuals[pixel], at), mask))
            results.append(end(builder, value, *numbers))
            to.append(offset(builder, output, at))
    if vectors == 1:
        store_first(builder, results, to, channels)
    else:
        for value, place in zip(results, to, strict=True):
            store(builder, value, place)


def _load(builder: Builder, kind: Any, address: Value, mask: Value | None) -> Value:
    """The vector at an address; zero in the lanes that the mask leaves out."""
    if mask is None:
        return load(builder, kind, address)
    # Masked, although sums of missing channels would be harmless: behind the last channel of the last pixel memory may
    # end, and what follows a pixel's channels is another pixel's.
    return emit.masked_load(builder, kind, builder.inttoptr(address, kind.as_pointer()), mask)
