"""The register block in integers: exact sums of products of signed bytes, kept in 32 bits.

What a block is stands in `register_block.py`, what a word of k is in `word_products.py`. How a block ends is in
`integer_endings.py`; where it is in another way, the sums are stored as they are, and what follows is in
`native/integer_convolution.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from numba import types

from dryfit_cpu.codes import TILE_WORDS
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.block_arguments import (
    PANEL_OUTPUT,
    PANEL_RESIDUAL,
    PANEL_START,
    TILE_OUTPUTS,
    TILE_RESIDUALS,
    Held,
    HeldArguments,
    blocks_operation,
    places,
)
from dryfit_cpu.compiler.emit import WORD, Builder, Value, load, offset, operation, store, word
from dryfit_cpu.compiler.integer_endings import ENDINGS, StepNumbers, bounds_of, finish
from dryfit_cpu.compiler.register_block import BLOCK_ROW_BYTES, LANES, VECTORS, BlockTerms, pixels_of, terms_of
from dryfit_cpu.compiler.word_products import SUMS, IntegerProduct, sum_pairs, sum_words

_WORDS = (
    "input", "weights", "starts", "multipliers", "real_bias", "input_stride", "segments", "segment_count",
    "segment_length", "product_argument", "ending", "sums", "ahead_step", "output_stride", "residual_stride",
)  # fmt: skip
"""Integers that are the same for many blocks, in the order in which they lie; the fields of `StepNumbers` follow."""

_NUMBERS = tuple(field.name for field in attrs.fields(StepNumbers))
_HELD = HeldArguments(_WORDS, _NUMBERS)
"""Behind these lie the limits of results, of all of them as registers of bytes."""


@operation(types.int64, *_HELD.types)
def held_arguments(builder: Builder, *arguments: Value) -> Value:
    """Where the arguments that are the same for many blocks lie, in the function's own memory.

    In the order of `_WORDS`, and of the fields of `StepNumbers`:
        input, weights: addresses that the offsets of tiles and panels count from.
        starts, multipliers: addresses of what the sums of each channel begin at, INT32, and are scaled by, FP32.
        real_bias: address of what is then added to them, FP32; 0 for nothing.
        input_stride, segments, segment_count, segment_length: those of `BlockTerms`.
        product_argument: where all products are of unsigned and signed bytes, the bits of a pixel's word that are
            flipped: 0x80808080 makes bytes 128 above their values of signed ones. Where words are joined, the table of
            `JoinedWords`. Other products have no use for it.
        ending: one of the codes of `integer_endings.py`, or `LEAVES_SUMS`.
        sums: where sums are left, INT32, `BLOCK_ROW_BYTES` a pixel, the second run's pixels after the first's.
        ahead_step: bytes between what a block asks for and what the next one does.
        output_stride, residual_stride: bytes between the pixels of a run.
    """
    numbers = StepNumbers(*arguments[len(_WORDS) :])
    bounds = bounds_of(builder, arguments[_WORDS.index("ending")], numbers)
    address = _HELD.write(builder, arguments, len(bounds) * 4 * LANES)
    for index, value in enumerate(bounds):
        store(builder, value, offset(builder, address, _HELD.size + 4 * LANES * index), 4 * LANES)
    return address


def pair_micro_kernel(rows: int) -> Any:
    """An operation that computes one block of products of 16-bit integers; its sums begin at 0 and are stored.

    Its arguments, all integers:
        input, input_stride: address of the first pixel, and bytes from one to the next.
        segments: address of the byte offset of the one run of values that a pixel sums over, a word.
        words: pairs in that run.
        weights, ahead: those of `BlockTerms`.
        output, output_stride: address of the first pixel's sums, INT32, and bytes from one to the next.
    """
    run = rows // 2

    @emit.outlined_operation(f"pair_block_{rows}", *[types.int64] * 8)
    def block(builder: Builder, *arguments: Value) -> None:
        at, input_stride, segments, words, weights, ahead, output, output_stride = arguments
        second = builder.add(at, builder.mul(input_stride, word(run)))
        terms = BlockTerms([at, second], input_stride, segments, word(1), words, weights, ahead)
        sums = sum_pairs(builder, run, terms, [emit.constant(SUMS, 0)] * (rows * VECTORS))
        # No ending: positions of Winograd's tiles mean nothing before the output transform has added them up.
        other = builder.add(output, builder.mul(output_stride, word(run)))
        for pixel, address in enumerate(pixels_of(builder, run, [output, other], output_stride)):
            for vector in range(VECTORS):
                store(builder, sums[pixel * VECTORS + vector], offset(builder, address, 4 * LANES * vector))

    return block


def integer_micro_kernel(rows: int, runs: int, product: IntegerProduct) -> Any:
    """An operation that computes blocks of `rows` pixels in so many runs (1 or 2), by a kind of product.

    Its arguments, all integers:
        count: how many blocks. They are computed here, and not called one by one, as a call and what surrounds it took
            as many instructions as the products with eight words of k.
        tile: address of a row of the table of `kernels/matrix_products.py`; those of the next blocks follow it.
        ahead: address of what is needed after the first block, and a step on after each.
        held: what `held_arguments` gave.
        panel: address of a row of that table, the same for all blocks.
        output, residual: addresses that the offsets of tiles and panels count from: of the results, INT8, and of what
            is added, INT8; 0 for nothing.
    """

    def block(builder: Builder, *arguments: Value) -> None:
        _block(builder, rows // runs, runs, product, *arguments)

    def moved(builder: Builder, tile: Value, ahead: Value, held: Value, *_fixed: Value) -> list[Value]:
        step = Held(builder, _HELD, emit.opaque(builder, held))["ahead_step"]
        return [offset(builder, tile, 8 * TILE_WORDS), builder.add(ahead, step)]

    return blocks_operation(f"integer_block_{rows}_{runs}", 2, 4, block, moved)


def _block(
    builder: Builder,
    run: int,
    runs: int,
    product: IntegerProduct,
    tile: Value,
    ahead: Value,
    held: Value,
    panel: Value,
    output: Value,
    residual: Value,
) -> None:
    """The body of a block: prologue, loops over segments and their words, one of the endings."""
    outputs = places(builder, output, (panel, PANEL_OUTPUT), (tile, TILE_OUTPUTS[:runs]))
    residuals = places(builder, residual, (panel, PANEL_RESIDUAL), (tile, TILE_RESIDUALS[:runs]))
    common = Held(builder, _HELD, held)
    with builder.if_else(builder.icmp_signed("!=", residual, word(0))) as (with_residual, without):
        with with_residual:
            # Not the outputs too: stores wait for their lines without holding up anything. Measured with 64 inputs.
            for address in pixels_of(builder, run, residuals, common["residual_stride"]):
                emit.prefetch(builder, address)
        with without:
            for address in pixels_of(builder, run, outputs, common["output_stride"]):
                emit.prefetch(builder, address, write=True)
    channels = load(builder, WORD, offset(builder, panel, PANEL_START), 8)
    starts = builder.add(common["starts"], channels)
    # All pixels of a channel begin alike, with bias and correction: so the sums need no addition at their end.
    first = [load(builder, SUMS, offset(builder, starts, 4 * LANES * vector)) for vector in range(VECTORS)]
    words = product(builder, common["product_argument"])
    sums = sum_words(builder, words, run, terms_of(builder, runs, common, tile, panel, ahead), first * (run * runs))

    # What the ending needs is read again: kept from the beginning it would be in the way, and written to the stack.
    common = Held(builder, _HELD, emit.opaque(builder, held))
    _end(
        builder, common, run, sums, lambda: load(builder, WORD, offset(builder, panel, PANEL_START), 8), outputs,
        residuals,
    )  # fmt: skip


def integer_ending(pixels: int) -> Any:
    """An operation that requantizes and stores sums that lie in memory, as a block of so many pixels in a run ends.

    Its arguments, all integers:
        held: what `held_arguments` gave; its ending is not `LEAVES_SUMS`.
        sums: address of the INT32 sums, `BLOCK_ROW_BYTES` a pixel.
        channels: bytes to the first channel's values, in arrays of a word a channel.
        output, residual: addresses of the first pixel's results, and of what is added; 0 for nothing.
    """

    @emit.outlined_operation(f"integer_ending_{pixels}", *[types.int64] * 5)
    def ending(builder: Builder, held: Value, sums: Value, channels: Value, output: Value, residual: Value) -> None:
        places = range(0, pixels * BLOCK_ROW_BYTES, 4 * LANES)
        values = [load(builder, SUMS, offset(builder, sums, place)) for place in places]
        _end(builder, Held(builder, _HELD, held), pixels, values, lambda: channels, [output], [residual])

    return ending


def _end(
    builder: Builder,
    common: Held,
    run: int,
    sums: Sequence[Value],
    channels: Callable[[], Value],
    outputs: Sequence[Value],
    residuals: Sequence[Value],
) -> None:
    """One of the endings, for `run` pixels from each output on; or the sums are stored.

    Outputs and residuals are the addresses of each run's first pixel; `channels` gives the bytes to the first channel's
    values.
    """
    end, leave = builder.append_basic_block("end"), builder.append_basic_block("leave_sums")
    # The endings that networks have are code; which one is asked once a block, after some hundred products. A function
    # for each ending would be as many copies of the loop, and of its compile time.
    choice = builder.switch(common["ending"], leave)
    builder.position_at_end(leave)
    left = common["sums"]
    for index, value in enumerate(sums):
        store(builder, value, offset(builder, left, 4 * LANES * index), 4 * LANES)
    builder.branch(end)
    for code, form in ENDINGS.items():
        block = builder.append_basic_block(f"ending_{code}")
        choice.add_case(word(code), block)
        builder.position_at_end(block)
        at_channel = channels()
        multipliers, real_bias = builder.add(common["multipliers"], at_channel), common["real_bias"]
        is_there = builder.icmp_signed("!=", real_bias, word(0))
        real_bias = builder.select(is_there, builder.add(real_bias, at_channel), real_bias)
        to = pixels_of(builder, run, outputs, common["output_stride"])
        added = pixels_of(builder, run, residuals, common["residual_stride"]) if form.adds else []
        finish(
            builder, form, sums, (multipliers, real_bias), to, added,
            StepNumbers(*(common[name] for name in _NUMBERS)), common.behind,
        )  # fmt: skip
        builder.branch(end)
    builder.position_at_end(end)
