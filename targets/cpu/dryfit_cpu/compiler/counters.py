"""Counters: those by which threads find each other, with a pause and a call by address, and the bins of histograms.

A histogram needs the ends of a block of values, and one more in the bins that they belong to. Values are told apart by
their bits, so that denormals are what they are whatever the mode of the floating-point unit.
"""

from __future__ import annotations

import sys

from llvmlite import ir
from numba import types

from dryfit_cpu.codes import BINS, COLUMNS
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import FLOAT, INT, WORD, Builder, Loop, Value, operation
from dryfit_cpu.compiler.tier import is_x86
from dryfit_cpu.compiler.vectors import FLOATS, INTS, LANES

_int, _float = types.int64, types.float32


@operation(_int, _int)
def load_acquire(builder: Builder, address: Value) -> Value:
    """The counter at an address, and everything that was written before it was."""
    return builder.load_atomic(builder.inttoptr(address, WORD.as_pointer()), "acquire", 8, typ=WORD)


@operation(types.void, _int, _int)
def store_release(builder: Builder, address: Value, value: Value) -> None:
    """Write a counter, after everything that was written before."""
    builder.store_atomic(value, builder.inttoptr(address, WORD.as_pointer()), "release", 8)


@operation(_int, _int, _int)
def fetch_add(builder: Builder, address: Value, value: Value) -> Value:
    """Add to a counter; returns what it was."""
    # Sequentially consistent: on x86 an atomic addition is that anyway, and there are few of them for each chunk.
    return builder.atomic_rmw("add", builder.inttoptr(address, WORD.as_pointer()), value, "seq_cst")


@operation(_int, _int, _int, _int)
def compare_and_swap(builder: Builder, address: Value, expected: Value, value: Value) -> Value:
    """Write a counter if it still is what was expected; returns whether it was."""
    pointer = builder.inttoptr(address, WORD.as_pointer())
    result = builder.cmpxchg(pointer, expected, value, "seq_cst", "seq_cst")
    return builder.zext(builder.extract_value(result, 1), WORD)


@operation(types.void)
def pause(builder: Builder) -> None:
    """Tell the core that this is a loop that waits."""
    if is_x86():
        # Without it a waiting loop fills the pipeline with loads that are thrown away when the value changes at last,
        # and takes the core from a sibling thread.
        emit.call(builder, "llvm.x86.sse2.pause", ir.VoidType(), [])


@operation(types.void)
def give_way(builder: Builder) -> None:
    """Let another thread run on this core."""
    emit.call(builder, "SwitchToThread" if sys.platform == "win32" else "sched_yield", INT, [])


@operation(_int, _int, _int, _int, _int)
def call_function(builder: Builder, function: Value, descriptor: Value, chunk: Value, chunks: Value) -> Value:
    """Call a native function by its address."""
    kind = ir.FunctionType(WORD, [WORD, WORD, WORD])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), [descriptor, chunk, chunks])


_MAGNITUDE = 0x7FFFFFFF
_SIGN = -(1 << 31)


@operation(types.void, _int, _int, _int)
def scan_ends(builder: Builder, values: Value, vectors: Value, output: Value) -> None:
    """Four integers about so many vectors of FP32 values, -0 being 0, as bits.

    The largest and the smallest as unsigned numbers, the largest as signed ones, and how many are zero. NaN and
    infinity count as what their bits are: above everything finite of their sign.
    """
    zero = emit.constant(INTS, 0)
    start = [zero, emit.constant(INTS, -1), emit.constant(INTS, _SIGN), zero]
    loop = Loop(builder, vectors, start)
    # As integers: bits of positive numbers are in the order of the numbers, those of negative ones in the reverse, so
    # that one loop finds both ends of both signs. Comparisons of floats would not see NaN, and not denormals where they
    # are off.
    highest, lowest, largest, zeros = loop.values
    address = builder.add(values, builder.mul(loop.index, emit.word(4 * LANES)))
    bits = emit.load(builder, INTS, address, 4)
    is_zero = builder.icmp_signed("==", builder.and_(bits, emit.constant(INTS, _MAGNITUDE)), zero)
    bits = builder.select(is_zero, zero, bits)
    ends = loop.finish(
        [
            builder.select(builder.icmp_unsigned(">", bits, highest), bits, highest),
            builder.select(builder.icmp_unsigned("<", bits, lowest), bits, lowest),
            builder.select(builder.icmp_signed(">", bits, largest), bits, largest),
            builder.sub(zeros, builder.sext(is_zero, INTS)),
        ]
    )
    names = ("umax", "umin", "smax", "add")
    for index, (name, value) in enumerate(zip(names, ends, strict=True)):
        found = emit.call(builder, f"llvm.vector.reduce.{name}.v{LANES}i32", INT, [value])
        widened = builder.sext(found, WORD) if name == "smax" else builder.zext(found, WORD)
        emit.store(builder, widened, emit.offset(builder, output, 8 * index), 8)


@operation(types.void, _int, _int, _int, _float, _float)
def find_places(
    builder: Builder, values: Value, vectors: Value, places: Value, positive: Value, negative: Value
) -> None:
    """The counter of each of so many vectors of finite FP32 values, as 32-bit byte offsets.

    `positive` and `negative` are the inverses of the widths of bins. Zeros belong to the first positive bin.
    """
    sides = emit.splat(builder, positive, LANES), emit.splat(builder, negative, LANES)
    # Lanes count in turns in the columns of a bin: neighbouring values are often in the same bin, and a counter that
    # has just been stored is loaded again only after the store has reached the cache.
    columns = ir.Constant(INTS, [4 * (lane % COLUMNS) for lane in range(LANES)])
    loop = Loop(builder, vectors, [])
    step = builder.mul(loop.index, emit.word(4 * LANES))
    bits = emit.load(builder, INTS, builder.add(values, step), 4)
    is_negative = builder.icmp_unsigned(">", bits, emit.constant(INTS, _SIGN))
    magnitude = builder.bitcast(builder.and_(bits, emit.constant(INTS, _MAGNITUDE)), FLOATS)
    scaled = builder.fmul(magnitude, builder.select(is_negative, sides[1], sides[0]))
    side = builder.select(is_negative, emit.constant(INTS, BINS), emit.constant(INTS, 0))
    bins = builder.add(builder.fptosi(scaled, INTS), side)
    offsets = builder.add(builder.mul(bins, emit.constant(INTS, 4 * COLUMNS)), columns)
    emit.store(builder, offsets, builder.add(places, step), 4)
    loop.finish([])


@operation(types.void, _int, _int, _int)
def increment_places(builder: Builder, places: Value, vectors: Value, counters: Value) -> None:
    """One more in each of so many vectors of counters."""
    loop = Loop(builder, vectors, [])
    base = builder.add(places, builder.mul(loop.index, emit.word(4 * LANES)))
    # No scatter: two lanes may have the same counter, of which a scatter would keep one.
    for lane in range(LANES):
        place = emit.load(builder, INT, emit.offset(builder, base, 4 * lane), 4)
        _increment(builder, builder.add(counters, builder.zext(place, WORD)))
    loop.finish([])


def _increment(builder: Builder, address: Value) -> None:
    emit.store(builder, builder.add(emit.load(builder, INT, address, 4), ir.Constant(INT, 1)), address, 4)


@operation(types.void, _int)
def increment(builder: Builder, address: Value) -> None:
    """One more in a 32-bit counter."""
    _increment(builder, address)


@operation(_int, _int)
def load_counter(builder: Builder, address: Value) -> Value:
    """The 32-bit counter at an address, which is no negative number."""
    return builder.zext(emit.load(builder, INT, address, 4), WORD)


@operation(types.void, _int, _int)
def store_counter(builder: Builder, address: Value, value: Value) -> None:
    """Write a 32-bit counter."""
    emit.store(builder, builder.trunc(value, INT), address, 4)


@operation(_float, _int)
def float_of(builder: Builder, bits: Value) -> Value:
    """The FP32 number that has these bits."""
    return builder.bitcast(builder.trunc(bits, INT), FLOAT)


@operation(_int, _int)
def double_bits(builder: Builder, bits: Value) -> Value:
    """The bits, as binary64, of the FP32 number that has these bits; a denormal is no zero."""
    bits = builder.trunc(bits, INT)
    double = ir.DoubleType()
    is_denormal = builder.icmp_unsigned(
        "<", builder.and_(bits, ir.Constant(INT, _MAGNITUDE)), ir.Constant(INT, 1 << 23)
    )
    magnitude = builder.uitofp(builder.and_(bits, ir.Constant(INT, _MAGNITUDE)), double)
    small = builder.fmul(magnitude, ir.Constant(double, 2.0**-149))
    small = builder.select(builder.icmp_signed("<", bits, ir.Constant(INT, 0)), builder.fneg(small), small)
    value = builder.select(is_denormal, small, builder.fpext(builder.bitcast(bits, FLOAT), double))
    return builder.bitcast(value, WORD)
