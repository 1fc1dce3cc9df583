"""Functions of one or two INT8 values by a table of their 256 or 65,536 results."""

from __future__ import annotations

from dryfit_cpu.codes import FP32, INT8
from dryfit_cpu.compiler.byte_tables import look_up_apart, look_up_bytes, look_up_pairs_apart
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.native.indices import indices

_BLOCK = 64


@native
def look_up(
    chunk: int,
    chunks: int,
    table: int,
    table_stride0: int,
    table_stride1: int,
    table_stride2: int,
    table_stride3: int,
    source: int,
    source_stride0: int,
    source_stride1: int,
    source_stride2: int,
    source_stride3: int,
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
) -> None:
    """`output = table[source]` over four axes, the table in the order of unsigned bytes, of the output's type.

    A stride says how far apart tables lie that serve different indices of an axis; 0 where they are one.
    """
    blocks = (extent3 + _BLOCK - 1) // _BLOCK
    total = extent0 * extent1 * extent2 * blocks
    block, stop = total * chunk // chunks, total * (chunk + 1) // chunks
    while block < stop:
        row = block // blocks
        first = block - row * blocks
        last = min(blocks, first + stop - block)
        block += last - first
        i0, i1, i2 = indices(row, extent1, extent2)
        i3 = first * _BLOCK
        count = min(last * _BLOCK, extent3) - i3
        at = source + i0 * source_stride0 + i1 * source_stride1 + i2 * source_stride2 + i3 * source_stride3
        to = output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2 + i3 * output_stride3
        here = table + i0 * table_stride0 + i1 * table_stride1 + i2 * table_stride2 + i3 * table_stride3
        if table_stride3 != 0:
            for i in range(count):
                look_up_apart(
                    to + i * output_stride3, 0, at + i * source_stride3, 0, 1, here + i * table_stride3,
                    output_kind == FP32,
                )  # fmt: skip
        elif output_kind == INT8 and source_stride3 == 1 and output_stride3 == 1:
            look_up_bytes(to, at, count, here)
        else:
            look_up_apart(to, output_stride3, at, source_stride3, count, here, output_kind == FP32)


@native
def look_up_pairs(
    chunk: int,
    chunks: int,
    table: int,
    first: int,
    first_stride0: int,
    first_stride1: int,
    first_stride2: int,
    first_stride3: int,
    second: int,
    second_stride0: int,
    second_stride1: int,
    second_stride2: int,
    second_stride3: int,
    output: int,
    output_stride0: int,
    output_stride1: int,
    output_stride2: int,
    output_stride3: int,
    extent0: int,
    extent1: int,
    extent2: int,
    extent3: int,
) -> None:
    """`output = table[first, second]` over four axes, all of bytes; the table in the order of unsigned bytes."""
    total = extent0 * extent1 * extent2
    for row in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0, i1, i2 = indices(row, extent1, extent2)
        look_up_pairs_apart(
            output + i0 * output_stride0 + i1 * output_stride1 + i2 * output_stride2, output_stride3,
            first + i0 * first_stride0 + i1 * first_stride1 + i2 * first_stride2, first_stride3,
            second + i0 * second_stride0 + i1 * second_stride1 + i2 * second_stride2, second_stride3,
            extent3, table,
        )  # fmt: skip
