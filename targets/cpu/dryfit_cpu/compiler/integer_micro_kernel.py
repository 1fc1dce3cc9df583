"""The register block in integers: exact sums of products of signed bytes, kept in 32 bits.

What a block is stands in `register_block.py`. A word of k is

* four bytes where the machine multiplies bytes (VNNI): the pixel's are unsigned, 128 above their values, and the sums
  begin 128 times the sum of the weights below the bias; so the products are those of signed bytes;
* a pair of 16-bit integers on all other machines.

Both give the same sums. They are stored as they are: what follows is in `native/integer_convolution.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import INT, SHORT, Builder, Value, load, offset, store
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.register_block import LANES, VECTORS, Product, Terms, sum_segments
from dryfit_cpu.compiler.tier import current_tier

BLOCK_ROW_BYTES = 4 * LANES * VECTORS
"""Bytes from one pixel's sums to the next one's, where a block leaves them."""

_SUMS = emit.vector_of(INT, LANES)


def _add_bytes(builder: Builder, pixel: Value, weights: Value, sums: Value) -> Value:
    """Four products of an unsigned and a signed byte."""
    # Named with its older signature of 32-bit lanes, which every LLVM takes.
    return emit.call(builder, f"llvm.x86.avx512.vpdpbusd.{32 * LANES}", _SUMS, [sums, pixel, weights])


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


_PRODUCT = Product(INT, _SUMS, _add_bytes if current_tier().has_byte_products else _add_pairs)


def integer_micro_kernel(rows: int, *, runs: int) -> Any:
    """An operation that sums one block of `rows` pixels in so many runs (1 or 2).

    Its arguments, all integers: the fields of `Terms` (with two inputs), then
        starts: address of what the sums of each channel begin at, INT32.
        output: address of the sums, INT32, `BLOCK_ROW_BYTES` a pixel, the second run's pixels after the first's.
    """
    name, run = f"integer_block_{rows}_{runs}", rows // runs

    def body(builder: Builder, *arguments: Value) -> None:
        input0, input1, *others, starts, output = arguments
        terms = Terms((input0, input1)[:runs], *others)
        first = [load(builder, _SUMS, offset(builder, starts, 4 * LANES * vector)) for vector in range(VECTORS)]
        sums = sum_segments(builder, _PRODUCT, run, terms, first * rows)
        for index, value in enumerate(sums):
            store(builder, value, offset(builder, output, 4 * LANES * index), 4 * LANES)

    @operation(types.void, *[types.int64] * 10)
    def block(builder: Builder, *arguments: Value) -> None:
        emit.outlined(builder, name, arguments, body)

    return block
