"""The register block in integers: exact sums of products of signed bytes, kept in 32 bits.

What a block is stands in `register_block.py`. A word of k is

* four bytes where the machine multiplies bytes (VNNI): the pixel's become unsigned, 128 above their values, when they
  are loaded, and the sums begin 128 times the sum of the weights below the bias; so the products are those of signed
  bytes;
* a pair of 16-bit integers on all other machines.

Both give the same sums. How a block ends is in `integer_endings.py`; where it is in another way, the sums are stored as
they are, and what follows is in `native/integer_convolution.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import INT, SHORT, Builder, Value, load, offset, store, word
from dryfit_cpu.compiler.integer_endings import ENDINGS, Numbers, finish
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.register_block import LANES, VECTORS, Product, Strides, Terms, sum_segments
from dryfit_cpu.compiler.tier import current_tier

BLOCK_ROW_BYTES = 4 * LANES * VECTORS
"""Bytes from one pixel's sums to the next one's, where a block leaves them."""

_SUMS = emit.vector_of(INT, LANES)
_INTEGERS, _NUMBERS = 19, 9


def _byte_products(builder: Builder, flip: Value) -> Product:
    """Four products of an unsigned and a signed byte, where the machine has them."""
    # Hidden, so that LLVM does not flip before the word goes to all lanes: with AVX512 one instruction loads, goes to
    # all lanes and flips.
    flips = emit.opaque_vector(builder, emit.splat(builder, builder.trunc(flip, INT), LANES))

    def add(builder: Builder, pixel: Value, weights: Value, sums: Value) -> Value:
        # Named with its older signature of 32-bit lanes, which every LLVM takes.
        unsigned = builder.xor(pixel, flips)
        return emit.call(builder, f"llvm.x86.avx512.vpdpbusd.{32 * LANES}", _SUMS, [sums, unsigned, weights])

    return Product(INT, _SUMS, add)


def _add_pairs(builder: Builder, pixel: Value, weights: Value, sums: Value) -> Value:
    """Two products of 16-bit integers; x86 has an instruction for this form."""
    wide = emit.vector_of(INT, 2 * LANES)
    a, b = (builder.sext(builder.bitcast(x, emit.vector_of(SHORT, 2 * LANES)), wide) for x in (pixel, weights))
    products = builder.mul(a, b)
    even, odd = (
        builder.shuffle_vector(products, products, ir.Constant(_SUMS, list(range(start, 2 * LANES, 2))))
        for start in (0, 1)
    )
    return builder.add(sums, builder.add(even, odd))


def integer_micro_kernel(rows: int, *, runs: int) -> Any:
    """An operation that computes one block of `rows` pixels in so many runs (1 or 2).

    Its arguments, all integers but the numbers at the end: the fields of `Terms` (with two inputs), then
        flip: the bits of a pixel's word that are flipped: 0x80808080 makes bytes 128 above their values of signed ones.
            Machines that multiply pairs have no use for it.
        starts, multipliers: addresses of what the sums of each channel begin at, INT32, and are scaled by, FP32.
        ending: one of the codes of `integer_endings.py`, or `LEAVES_SUMS`.
        sums: where sums are left, INT32, `BLOCK_ROW_BYTES` a pixel, the second run's pixels after the first's.
        output0, output1, output_stride: addresses of the results, INT8.
        residual0, residual1, residual_stride: addresses of what is added, INT8.
        The fields of `Numbers`.
    """
    name = f"integer_block_{rows}_{runs}"

    def body(builder: Builder, *arguments: Value) -> None:
        _block(builder, rows // runs, runs, *arguments)

    @operation(types.void, *[types.int64] * _INTEGERS, *[types.float32] * _NUMBERS)
    def block(builder: Builder, *arguments: Value) -> None:
        emit.outlined(builder, name, arguments, body)

    return block


def _block(
    builder: Builder,
    run: int,
    runs: int,
    input0: Value,
    input1: Value,
    input_stride: Value,
    segments: Value,
    segment_count: Value,
    segment_length: Value,
    weights: Value,
    ahead: Value,
    flip: Value,
    starts: Value,
    multipliers: Value,
    ending: Value,
    left: Value,
    output0: Value,
    output1: Value,
    output_stride: Value,
    residual0: Value,
    residual1: Value,
    residual_stride: Value,
    *numbers: Value,
) -> None:
    """The body of a block: prologue, loops over segments and their words, one of the endings."""

    def pixels(base0: Value, base1: Value, distance: Value) -> list[Value]:
        strides = Strides.of(builder, distance)
        return [strides.address(base, pixel) for base in (base0, base1)[:runs] for pixel in range(run)]

    outputs, residuals = pixels(output0, output1, output_stride), pixels(residual0, residual1, residual_stride)
    for address in outputs:
        emit.prefetch(builder, address, write=True)
    with builder.if_then(builder.icmp_signed("!=", residual0, word(0))):
        for address in residuals:
            emit.prefetch(builder, address)
    product = _byte_products(builder, flip) if current_tier().has_byte_products else Product(INT, _SUMS, _add_pairs)
    terms = Terms((input0, input1)[:runs], input_stride, segments, segment_count, segment_length, weights, ahead)
    first = [load(builder, _SUMS, offset(builder, starts, 4 * LANES * vector)) for vector in range(VECTORS)]
    sums = sum_segments(builder, product, run, terms, first * (run * runs))

    end, leave = builder.append_basic_block("end"), builder.append_basic_block("leave_sums")
    choice = builder.switch(ending, leave)
    builder.position_at_end(leave)
    for index, value in enumerate(sums):
        store(builder, value, offset(builder, left, 4 * LANES * index), 4 * LANES)
    builder.branch(end)
    for code, form in ENDINGS.items():
        block = builder.append_basic_block(f"ending_{code}")
        choice.add_case(word(code), block)
        builder.position_at_end(block)
        finish(builder, form, sums, multipliers, outputs, residuals, Numbers(*numbers))
        builder.branch(end)
    builder.position_at_end(end)
