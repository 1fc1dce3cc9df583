"""Elements that are found, and not computed.

Functions of one or two INT8 values by a table of their 256 or 65,536 results; elements of an input, picked along each
axis by tables of places; and elements that a condition chooses. An image is resized by tables of places too: each
output is from two rows and two columns of the input, a vector of channels at a time.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, INT8, WORD_INT64
from dryfit_cpu.compiler.byte_tables import load_code, look_up_apart, look_up_bytes, look_up_pairs_apart
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import (
    VECTOR_BYTES,
    copy_bytes,
    load,
    load_apart,
    load_float,
    load_int,
    read,
    store,
    write,
)
from dryfit_cpu.compiler.vectors import LANES, splat, where_equal
from dryfit_cpu.compiler.whole_memory import load_whole, store_whole
from dryfit_cpu.descriptors import Chunk, Elements, Extents, Image, SampleSteps
from dryfit_cpu.native.indices import blocks_of, element, indices, pixel, run_of_row, share
from dryfit_cpu.native.requantization import limited, rounded

# Bytes of a cache line, so that threads seldom write into the same line of a dense output.
_BLOCK = 64
_VALUE_BYTES = 4
_SHORT_BYTES = 8 * VECTOR_BYTES
"""Of pieces that are copied before a call of the system's copy would have begun."""


@native
def look_up(chunk: Chunk, table: Elements, source: Elements, output: Elements, extents: Extents) -> None:
    """`output = table[source]` over four axes, the table in the order of unsigned bytes, of the output's type.

    A stride of the table says how far apart tables lie that serve different indices of an axis; 0 where they are one.
    """
    block, stop = share(chunk, blocks_of(extents, _BLOCK))
    while block < stop:
        i0, i1, i2, i3, count, done = run_of_row(block, stop, extents, _BLOCK)
        block += done
        at, to = element(source, i0, i1, i2, i3), element(output, i0, i1, i2, i3)
        here = element(table, i0, i1, i2, i3)
        if table.stride3 != 0:
            # Channels last with a table for each channel: neighbours read different tables, so no vector of lookups.
            for i in range(count):
                look_up_apart(
                    to + i * output.stride3, 0, at + i * source.stride3, 0, 1, here + i * table.stride3,
                    output.kind == FP32,
                )  # fmt: skip
        elif output.kind == INT8 and source.stride3 == 1 and output.stride3 == 1:
            # 256 bytes are four registers of AVX512: `look_up_bytes` permutes them instead of loading byte by byte.
            look_up_bytes(to, at, count, here)
        else:
            look_up_apart(to, output.stride3, at, source.stride3, count, here, output.kind == FP32)


@native
def look_up_pairs(
    chunk: Chunk, table: int, first: Elements, second: Elements, output: Elements, extents: Extents
) -> None:
    """`output = table[first, second]` over four axes, all of bytes; the table in the order of unsigned bytes."""
    # 64 KiB of table do not fit the first-level cache: each load may wait for the second, so rows are not cut further.
    for row in range(*share(chunk, extents.axis0 * extents.axis1 * extents.axis2)):
        i0, i1, i2 = indices(row, extents.axis1, extents.axis2)
        look_up_pairs_apart(
            element(output, i0, i1, i2, 0), output.stride3, element(first, i0, i1, i2, 0), first.stride3,
            element(second, i0, i1, i2, 0), second.stride3, extents.axis3, table,
        )  # fmt: skip


@native
def pick(
    chunk: Chunk,
    source: int,
    places0: int,
    places1: int,
    places2: int,
    places3: int,
    fill: int,
    output: Elements,
    extents: Extents,
    size: int,
) -> None:
    """Copy pieces of `size` bytes from the sum of four byte offsets, or from `fill` where one of these is negative.

    Places are addresses of INT64 tables, one offset for each index of an axis.
    """
    # Offsets of an axis do not depend on the others, so four short tables say what one of the output's size would.
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * extents.axis2)):
        i0, i1, i2 = indices(index, extents.axis1, extents.axis2)
        a, b, c = load_int(places0 + 8 * i0), load_int(places1 + 8 * i1), load_int(places2 + 8 * i2)
        to = element(output, i0, i1, i2, 0)
        # Each is looked at by itself: the sum of a negative offset and a large one may be inside again.
        is_outside = min(a, b, c) < 0
        for i3 in range(extents.axis3):
            d = load_int(places3 + 8 * i3)
            at = fill if is_outside or d < 0 else source + a + b + c + d
            copy_bytes(to + i3 * output.stride3, at, size)


@native
def gather(
    chunk: Chunk,
    source: int,
    outer: int,
    outer_bytes: int,
    indices: int,
    index_kind: int,
    width: int,
    vectors: int,
    axes: int,
    output: int,
    size: int,
    fault: int,
) -> None:
    """Copy a piece of `size` bytes for each vector of `width` indices, from each of `outer` parts of the source.

    Axes are addresses of (extent, bytes) for each index of a vector. Indices below 0 count from the end. One that is
    outside is written to `fault`, behind a 1, and 0 is taken in its place.
    """
    for number in range(*share(chunk, outer * vectors)):
        part = number // vectors
        at = source + part * outer_bytes
        first = (number - part * vectors) * width
        for k in range(width):
            index = load_whole(indices + (first + k) * (8 if index_kind == WORD_INT64 else 4), index_kind, 0)
            extent = load_int(axes + 16 * k)
            if index < -extent or index >= extent:
                store_whole(fault + 8, WORD_INT64, index)
                store_whole(fault, WORD_INT64, 1)
                index = 0
            at += (index + extent if index < 0 else index) * load_int(axes + 16 * k + 8)
        to = output + number * size
        if size <= _SHORT_BYTES and size % VECTOR_BYTES == 0:
            for i in range(0, size, VECTOR_BYTES):
                store(to + i, load(at + i))
        else:
            copy_bytes(to, at, size)


@native
def select(
    chunk: Chunk,
    condition: Elements,
    first: Elements,
    second: Elements,
    output: Elements,
    extents: Extents,
    size: int,
) -> None:
    """Copy an element of the first operand where the condition's byte is not 0, else of the second."""
    for index in range(*share(chunk, extents.axis0 * extents.axis1 * extents.axis2)):
        i0, i1, i2 = indices(index, extents.axis1, extents.axis2)
        asked, to = element(condition, i0, i1, i2, 0), element(output, i0, i1, i2, 0)
        one, other = element(first, i0, i1, i2, 0), element(second, i0, i1, i2, 0)
        start = 0
        if size == _VALUE_BYTES and condition.stride3 == 1 and output.stride3 == size:
            # The bits are chosen, not the numbers: integers of four bytes are FP32 to a register too.
            start = extents.axis3 // LANES * LANES
            if first.stride3 == size and second.stride3 == 0:
                same = read(other, 0, FP32, LANES)
                for i in range(0, start, LANES):
                    store(to + 4 * i, _chosen(asked + i, load(one + 4 * i), same))
            elif first.stride3 == 0 and second.stride3 == size:
                same = read(one, 0, FP32, LANES)
                for i in range(0, start, LANES):
                    store(to + 4 * i, _chosen(asked + i, same, load(other + 4 * i)))
            elif first.stride3 == 0 and second.stride3 == 0:
                same, rest = read(one, 0, FP32, LANES), read(other, 0, FP32, LANES)
                for i in range(0, start, LANES):
                    store(to + 4 * i, _chosen(asked + i, same, rest))
            elif first.stride3 == size and second.stride3 == size:
                for i in range(0, start, LANES):
                    store(to + 4 * i, _chosen(asked + i, load(one + 4 * i), load(other + 4 * i)))
            else:
                start = 0
        for i3 in range(start, extents.axis3):
            is_first = load_code(asked + i3 * condition.stride3) != 0
            at = one + i3 * first.stride3 if is_first else other + i3 * second.stride3
            copy_bytes(to + i3 * output.stride3, at, size)


@inlined
def _chosen(condition: int, first: Any, second: Any) -> Any:
    """Of each lane the first where the condition's byte is not 0, else the second."""
    return where_equal(read(condition, 1, INT8, LANES), splat(float32(0.0)), second, first)


@native
def resize(
    chunk: Chunk,
    source: Image,
    output: Image,
    row_offsets: int,
    row_weights: int,
    column_offsets: int,
    column_weights: int,
    is_nearest: int,
    steps: SampleSteps,
) -> None:
    """The weighted sum of four pixels, rows first, or the first of them.

    Then its distance from a zero point, times a multiplier, is limited, and where it is INT8 rounded; of real numbers
    the zero points are 0 and the multiplier is 1.

    The offset tables hold two byte offsets for each output row and column, the weight tables two FP32 weights.
    """
    # Where an output lies between pixels is in tables that the reference makes: so all its modes of coordinates are one
    # loop here, and its rounding of coordinates is that of the oracle.
    for index in range(*share(chunk, output.images * output.rows)):
        image = index // output.rows
        row = index - image * output.rows
        start = source.address + image * source.image_stride
        upper, lower = start + load_int(row_offsets + row * 16), start + load_int(row_offsets + row * 16 + 8)
        upper_weight, lower_weight = splat(float32(0.0)), splat(float32(0.0))
        if not is_nearest:
            upper_weight = splat(load_float(row_weights + row * 8))
            lower_weight = splat(load_float(row_weights + row * 8 + 4))
        for column in range(output.columns):
            left, right = load_int(column_offsets + column * 16), load_int(column_offsets + column * 16 + 8)
            to = pixel(output, image, row, column)
            for channel in range(0, output.channels, LANES):
                count = output.channels - channel
                at, step, kind = channel * source.channel_stride, source.channel_stride, source.kind
                value = read(upper + left + at, step, kind, count)
                if not is_nearest:
                    left_weight = splat(load_float(column_weights + column * 8))
                    right_weight = splat(load_float(column_weights + column * 8 + 4))
                    on_left = value * upper_weight + read(lower + left + at, step, kind, count) * lower_weight
                    on_right = read(upper + right + at, step, kind, count) * upper_weight
                    on_right = on_right + read(lower + right + at, step, kind, count) * lower_weight
                    value = on_left * left_weight + on_right * right_weight
                value = _finished(value, steps, output.kind)
                write(to + channel * output.channel_stride, output.channel_stride, output.kind, value, count)


@inlined
def _finished(value: Any, steps: SampleSteps, kind: int) -> Any:
    distance = (value - splat(steps.source_zero)) * splat(steps.multiplier)
    value = limited(distance, steps.low, steps.high)
    if kind == INT8:
        value = rounded(value, steps.rounding) + splat(steps.zero_point)
    return value


@native
def resize_planes(
    chunk: Chunk,
    source: Image,
    output: Image,
    row_offsets: int,
    row_weights: int,
    column_offsets: int,
    column_weights: int,
    is_nearest: int,
    rows: int,
    steps: SampleSteps,
) -> None:
    """The same of images of which not the channels but the pixels of a row lie together.

    First a row of FP32 sums of two rows is made, one for each chunk, and columns are picked from it. The column tables
    hold the first offset of all columns, in such a row, and then the second; so do their weights. They fill whole
    vectors.
    """
    row_bytes = -(-source.columns // LANES) * VECTOR_BYTES
    places = -(-output.columns // LANES) * LANES
    sums = rows + chunk.number * row_bytes
    for index in range(*share(chunk, output.images * output.channels * output.rows)):
        image, channel, row = indices(index, output.channels, output.rows)
        start = source.address + image * source.image_stride + channel * source.channel_stride
        upper, lower = start + load_int(row_offsets + row * 16), start + load_int(row_offsets + row * 16 + 8)
        for column in range(0, source.columns, LANES):
            count, at = source.columns - column, column * source.pixel_stride
            value = read(upper + at, source.pixel_stride, source.kind, count)
            if not is_nearest:
                value = value * splat(load_float(row_weights + row * 8))
                below = read(lower + at, source.pixel_stride, source.kind, count)
                value = value + below * splat(load_float(row_weights + row * 8 + 4))
            store(sums + 4 * column, value)
        to = pixel(output, image, row, 0) + channel * output.channel_stride
        for column in range(0, output.columns, LANES):
            value = load_apart(sums, column_offsets + 8 * column)
            if not is_nearest:
                value = value * load(column_weights + 4 * column)
                right = load_apart(sums, column_offsets + 8 * (places + column))
                value = value + right * load(column_weights + 4 * (places + column))
            value = _finished(value, steps, output.kind)
            write(to + column * output.pixel_stride, output.pixel_stride, output.kind, value, output.columns - column)
