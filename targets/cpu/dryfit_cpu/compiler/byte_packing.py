"""Four vectors of numbers as one run of INT8: rounded together, and narrowed by the instructions made for it."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, SHORT, Builder, Value
from dryfit_cpu.compiler.memory import rounded_bits
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.tier import current_tier, is_x86
from dryfit_cpu.compiler.vectors import INTS, LANES, VECTOR

PACKED_VALUES = 4 * LANES
"""Values that are stored at once."""

_PACKED = emit.vector_of(BYTE, PACKED_VALUES)
_HAS_PACKS = is_x86() and current_tier().lanes > 4


@operation(types.void, types.int64, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)
def store_packed(builder: Builder, address: Value, *values: Value) -> None:
    """Write four vectors as INT8, rounded to nearest even, within limits between -128 and 127.

    The last two values are the limits, the same number in all lanes. Numbers are between -2**22 and 2**22, not NaN.
    """
    *numbers, low, high = values
    # Numbers that 1.5 * 2**23 has been added to are in the order of their bits, and hold the rounded one in the lowest.
    low, high = (_in_all_bytes(builder, builder.trunc(rounded_bits(builder, one), _bytes())) for one in (low, high))
    packed = _packed(builder, numbers)
    for name, limit in (("smax", low), ("smin", high)):
        packed = emit.call(builder, f"llvm.{name}.v{PACKED_VALUES}i8", _PACKED, [packed, limit])
    emit.store(builder, packed, address)


def _bytes() -> ir.VectorType:
    return emit.vector_of(BYTE, LANES)


def _in_all_bytes(builder: Builder, value: Value) -> Value:
    """The first byte of a vector, which is in all its lanes, in as many as are stored."""
    return builder.shuffle_vector(value, value, ir.Constant(emit.vector_of(INT, PACKED_VALUES), [0] * PACKED_VALUES))


def _packed(builder: Builder, numbers: list[Value]) -> Value:
    """Whole numbers nearest to four vectors of numbers, saturated to INT8, one vector after the other."""
    whole = [_nearest_integers(builder, one) for one in numbers]
    if not _HAS_PACKS:
        for name, limit in (("smax", -128), ("smin", 127)):
            whole = [
                emit.call(builder, f"llvm.{name}.v{LANES}i32", INTS, [one, emit.constant(INTS, limit)]) for one in whole
            ]
        a, b, c, d = (builder.trunc(one, _bytes()) for one in whole)
        return _joined(builder, _joined(builder, a, b), _joined(builder, c, d))
    words, octets = emit.vector_of(SHORT, 2 * LANES), _PACKED
    width = "avx512" if LANES == 16 else "avx2"
    suffix = ".512" if LANES == 16 else ""
    first, second = (
        emit.call(builder, f"llvm.x86.{width}.packssdw{suffix}", words, pair) for pair in (whole[:2], whole[2:])
    )
    packed = emit.call(builder, f"llvm.x86.{width}.packsswb{suffix}", octets, [first, second])
    # Each 128 bits hold four numbers of each vector: bring those of a vector together.
    quarters = LANES // 4
    order = [4 * quarter + vector for vector in range(4) for quarter in range(quarters)]
    fours = builder.bitcast(packed, INTS)
    return builder.bitcast(builder.shuffle_vector(fours, fours, ir.Constant(INTS, order)), octets)


def _nearest_integers(builder: Builder, value: Value) -> Value:
    """The whole numbers nearest to numbers between -2**22 and 2**22, even at a half, as INT32."""
    if _HAS_PACKS and LANES == 16:
        arguments = [value, emit.constant(INTS, 0), ir.Constant(SHORT, -1), ir.Constant(INT, 4)]
        return emit.call(builder, "llvm.x86.avx512.mask.cvtps2dq.512", INTS, arguments)
    if _HAS_PACKS:
        return emit.call(builder, "llvm.x86.avx.cvt.ps2dq.256", INTS, [value])
    return builder.sub(rounded_bits(builder, value), emit.constant(INTS, 0x4B400000))


def _joined(builder: Builder, a: Value, b: Value) -> Value:
    count = 2 * a.type.count
    return builder.shuffle_vector(a, b, ir.Constant(emit.vector_of(INT, count), list(range(count))))
