"""Histograms of magnitudes with bins of a power of two; they widen when a larger magnitude comes.

Each chunk counts in a table of its own. A table has a head of 16 words, four 32-bit counters for each of 2048 bins of
the positive and of the negative values, and room for the places of a block's values.
"""

from __future__ import annotations

from typing import Any

from dryfit_cpu import codes
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.counters import (
    double_bits,
    find_places,
    float_of,
    increment,
    increment_places,
    load_counter,
    scan_ends,
    store_counter,
)
from dryfit_cpu.compiler.memory import clear_bytes, load_int, store_int
from dryfit_cpu.compiler.vectors import LANES
from dryfit_cpu.descriptors import Chunk
from dryfit_cpu.native.indices import share

_HIGHEST, _LOWEST, _LARGEST, _ZEROS, _NAN, _INFINITE, _VALUES, _FOUND = range(16, 80, 8)
"""Byte offsets in a head, after two exponents: ends, as `scan_ends` tells them; counts; the ends of the last block."""

_NO_EXPONENT = -(1 << 15)
_LEAST_EXPONENT = -115
_NO_VALUE = 0xFFFFFFFF
_LEAST_INT = -(1 << 31)
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000


@native
def clear_tables(chunk: Chunk, tables: int, number: int) -> None:
    """Make tables empty."""
    for index in range(*share(chunk, number)):
        table = tables + index * codes.TABLE_BYTES
        clear_bytes(table, codes.PLACES)
        store_int(table, _NO_EXPONENT)
        store_int(table + 8, _NO_EXPONENT)
        store_int(table + _LOWEST, _NO_VALUE)
        store_int(table + _LARGEST, _LEAST_INT)


@native
def count_values(chunk: Chunk, source: int, values: int, tables: int) -> None:
    """Count so many FP32 values that lie side by side; each chunk in its own table."""
    # Tables of its own, added up at the end: threads that counted in one would wait for each other's cache lines.
    table = tables + chunk.number * codes.TABLE_BYTES
    start, end = share(chunk, values)
    store_int(table + _VALUES, load_int(table + _VALUES) + end - start)
    while start < end:
        vectors = min(codes.BLOCK, end - start) // LANES
        address = source + 4 * start
        if vectors and _takes_ends(address, vectors, table):
            positive, negative = _inverse_width(load_int(table)), _inverse_width(load_int(table + 8))
            # Places first, for a block, then the counting: vectors find places, and counting is one value after the
            # other anyway. Counters of a bin stand four times, taken in turns, since an addition to memory that has
            # just been added to waits for it: a peak in the distribution would cost five cycles a value.
            places = table + codes.PLACES
            find_places(address, vectors, places, positive, negative)
            increment_places(places, vectors, table + codes.HEAD_BYTES)
            start += vectors * LANES
        else:
            # The rest of a chunk, and blocks with NaN or infinity.
            some = min(codes.BLOCK, end - start)
            for index in range(some):
                _count_one(load_counter(address + 4 * index), table)
            start += some


@inlined
def _takes_ends(address: int, vectors: int, table: int) -> bool:
    """Widen the table for some vectors and note their ends; False, and nothing done, where one is not finite."""
    found = table + _FOUND
    scan_ends(address, vectors, found)
    highest, largest = load_int(found), load_int(found + 16)
    if largest >= _INFINITY or highest & _MAGNITUDE >= _INFINITY:
        return False
    _take_ends(highest, load_int(found + 8), largest, load_int(found + 24), table)
    return True


@inlined
def _take_ends(highest: int, lowest: int, largest: int, zeros: int, table: int) -> None:
    store_int(table + _HIGHEST, max(highest, load_int(table + _HIGHEST)))
    store_int(table + _LOWEST, min(lowest, load_int(table + _LOWEST)))
    store_int(table + _LARGEST, max(largest, load_int(table + _LARGEST)))
    store_int(table + _ZEROS, load_int(table + _ZEROS) + zeros)
    _widen(table, 0, max(0, largest))
    _widen(table, 1, highest & _MAGNITUDE if highest > _MAGNITUDE else 0)


@inlined
def _widen(table: int, side: int, magnitude: int) -> None:
    """Make the bins of a side wide enough for a magnitude, as bits; 0 for none."""
    if not magnitude:
        return
    # Bins of a power of two: a wider range merges them in pairs, and counts stay exact. So one pass is enough, and
    # shards that were counted apart add up to the same histogram.
    wanted = max((magnitude >> 23) - 126, _LEAST_EXPONENT)
    exponent = load_int(table + 8 * side)
    if wanted <= exponent:
        return
    store_int(table + 8 * side, wanted)
    shift = min(wanted - exponent, codes.BIN_BITS)
    counters = table + codes.HEAD_BYTES + side * codes.SIDE_BYTES
    if exponent == _NO_EXPONENT:
        return
    for place in range(codes.BINS):
        for column in range(codes.COLUMNS):
            address = counters + 4 * (place * codes.COLUMNS + column)
            count = load_counter(address)
            store_counter(address, 0)
            to = counters + 4 * ((place >> shift) * codes.COLUMNS + column)
            store_counter(to, load_counter(to) + count)


@inlined
def _inverse_width(exponent: int) -> Any:
    """`2^(11 - exponent)`; 0 where no value has the sign."""
    return float_of(0 if exponent == _NO_EXPONENT else (127 + codes.BIN_BITS - exponent) << 23)


@inlined
def _count_one(bits: int, table: int) -> None:
    """Count one value, given as bits; it may be anything."""
    magnitude = bits & _MAGNITUDE
    if magnitude > _INFINITY:
        store_int(table + _NAN, load_int(table + _NAN) + 1)
    elif magnitude == _INFINITY:
        store_int(table + _INFINITE, load_int(table + _INFINITE) + 1)
    else:
        side = 1 if bits > 0x80000000 else 0
        if magnitude == 0:
            bits = 0
        _take_ends(bits, bits, bits - (bits >> 31 << 32), 1 if magnitude == 0 else 0, table)
        place = int(float_of(magnitude) * _inverse_width(load_int(table + 8 * side)))
        increment(table + codes.HEAD_BYTES + side * codes.SIDE_BYTES + 4 * place * codes.COLUMNS)


@native
def write_record(_chunk: Chunk, tables: int, number: int, output: int) -> None:
    """The record of all tables, as `dryfit.network.layers.histogram` describes it: `int64[4104]`."""
    clear_bytes(output, 64 + 16 * codes.BINS)
    highest, lowest, largest = 0, _NO_VALUE, _LEAST_INT
    for index in range(number):
        table = tables + index * codes.TABLE_BYTES
        highest = max(highest, load_int(table + _HIGHEST))
        lowest = min(lowest, load_int(table + _LOWEST))
        largest = max(largest, load_int(table + _LARGEST))
        for word, field in ((4, _ZEROS), (5, _NAN), (6, _INFINITE), (7, _VALUES)):
            store_int(output + 8 * word, load_int(output + 8 * word) + load_int(table + field))
    for side in range(2):
        _write_side(tables, number, output, side)
    first = output + 64
    store_int(first, load_int(first) - load_int(output + 32))
    if lowest == _NO_VALUE:
        store_int(output + 16, 0x7FF << 52)
        store_int(output + 24, -1 << 52)
    else:
        store_int(output + 16, double_bits(highest if highest > _MAGNITUDE else lowest))
        store_int(output + 24, double_bits(largest if largest >= 0 else lowest))


@inlined
def _write_side(tables: int, number: int, output: int, side: int) -> None:
    """Exponent and counts of one sign."""
    exponent = _NO_EXPONENT
    for index in range(number):
        exponent = max(exponent, load_int(tables + index * codes.TABLE_BYTES + 8 * side))
    store_int(output + 8 * side, exponent)
    counts = output + 64 + side * 8 * codes.BINS
    for index in range(number):
        table = tables + index * codes.TABLE_BYTES
        shift = min(exponent - load_int(table + 8 * side), codes.BIN_BITS)
        counters = table + codes.HEAD_BYTES + side * codes.SIDE_BYTES
        for place in range(codes.BINS):
            count = 0
            for column in range(codes.COLUMNS):
                count += load_counter(counters + 4 * (place * codes.COLUMNS + column))
            to = counts + 8 * (place >> shift)
            store_int(to, load_int(to) + count)
