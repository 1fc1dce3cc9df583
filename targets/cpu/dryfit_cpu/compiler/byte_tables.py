"""Looking up INT8 values in a table of 256 results, and pairs of them in one of 65,536."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, FLOAT, WORD, Builder, Loop, Value, load, operation, store, word
from dryfit_cpu.compiler.tier import current_tier, host_features

_HAS_BYTE_PERMUTATION = current_tier().lanes == 16 and bool(host_features().get("avx512vbmi"))
"""Whether two registers are a table of 128 bytes, from which one instruction takes 64."""
_WIDTH = 64


def _index(builder: Builder, source: Value) -> Value:
    """The unsigned byte at an address: where its result stands in the table."""
    return builder.zext(load(builder, BYTE, source), WORD)


@operation(types.int64, types.int64)
def load_code(builder: Builder, address: Value) -> Value:
    """The INT8 value at an address."""
    return builder.sext(load(builder, BYTE, address), WORD)


@operation(types.void, types.int64, types.int64)
def store_integer(builder: Builder, address: Value, value: Value) -> None:
    """Write a 64-bit integer as FP32, rounded to nearest even."""
    store(builder, builder.sitofp(value, FLOAT), address)


def _look_up_vectors(builder: Builder, destination: Value, source: Value, count: Value, table: Value) -> Value:
    """Look up as many whole registers as there are; returns how many values those were."""
    kind = emit.vector_of(BYTE, _WIDTH)
    parts = [load(builder, kind, emit.offset(builder, table, _WIDTH * part)) for part in range(4)]
    vectors = builder.sdiv(count, word(_WIDTH))
    loop = Loop(builder, vectors, [])
    place = builder.mul(loop.index, word(_WIDTH))
    values = load(builder, kind, builder.add(source, place))
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    low = emit.call(builder, name, kind, [parts[0], values, parts[1]])
    high = emit.call(builder, name, kind, [parts[2], values, parts[3]])
    is_high = builder.icmp_signed("<", values, emit.constant(kind, 0))
    store(builder, builder.select(is_high, high, low), builder.add(destination, place))
    loop.finish([])
    return builder.mul(vectors, word(_WIDTH))


@emit.outlined_operation("look_up_bytes", types.int64, types.int64, types.int64, types.int64)
def look_up_bytes(builder: Builder, destination: Value, source: Value, count: Value, table: Value) -> None:
    """Write the INT8 results of so many INT8 values that lie together; the table is in the order of unsigned bytes."""
    done = word(0)
    if _HAS_BYTE_PERMUTATION:
        done = _look_up_vectors(builder, destination, source, count, table)
    loop = Loop(builder, builder.sub(count, done), [])
    place = builder.add(loop.index, done)
    at = builder.add(table, _index(builder, builder.add(source, place)))
    store(builder, load(builder, BYTE, at), builder.add(destination, place))
    loop.finish([])


@emit.outlined_operation("look_up_apart", *[types.int64] * 7)
def look_up_apart(
    builder: Builder,
    destination: Value,
    step: Value,
    source: Value,
    source_step: Value,
    count: Value,
    table: Value,
    is_real: Value,
) -> None:
    """The same for values at any distance, and for FP32 results where `is_real` is not 0."""
    loop = Loop(builder, count, [destination, source])
    to, at = loop.values
    index = _index(builder, at)
    with builder.if_else(builder.icmp_signed("!=", is_real, ir.Constant(WORD, 0))) as (real, whole):
        with real:
            store(builder, load(builder, FLOAT, builder.add(table, builder.mul(index, word(4)))), to)
        with whole:
            store(builder, load(builder, BYTE, builder.add(table, index)), to)
    loop.finish([builder.add(to, step), builder.add(at, source_step)])


@emit.outlined_operation("look_up_pairs_apart", *[types.int64] * 8)
def look_up_pairs_apart(
    builder: Builder,
    destination: Value,
    step: Value,
    first: Value,
    first_step: Value,
    second: Value,
    second_step: Value,
    count: Value,
    table: Value,
) -> None:
    """Write the bytes that a table of 65,536 has for so many pairs of values, at any distance."""
    loop = Loop(builder, count, [destination, first, second])
    to, at_first, at_second = loop.values
    row = builder.shl(_index(builder, at_first), word(8))
    place = builder.or_(row, _index(builder, at_second))
    store(builder, load(builder, BYTE, builder.add(table, place)), to)
    loop.finish([builder.add(to, step), builder.add(at_first, first_step), builder.add(at_second, second_step)])
