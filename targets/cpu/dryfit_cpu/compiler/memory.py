"""Vectors in memory: loads and stores of whole vectors, of their first lanes, and of lanes at any stride.

FP16, BF16 and INT8 exist in memory only: they become FP32 when they are loaded. When they are stored, FP32 is rounded
to nearest even, and for INT8 saturated. FP16 and BF16 lie in shorts; the operations on these take the element code as
well.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.codes import FP32, INT8
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.emit import FLOAT, INT, WORD, Builder, Value, operation
from dryfit_cpu.compiler.half_precision import narrowed, widened
from dryfit_cpu.compiler.tier import is_arm
from dryfit_cpu.compiler.vectors import (
    BYTES,
    FLOATS,
    HAS_MASKED_STORES,
    INTS,
    LANES,
    SHORTS,
    VECTOR,
    WORDS,
    first_mask,
    store_first,
)

VECTOR_BYTES = 4 * LANES
# On the stack and not in memory that kernels bring: it is in the first-level cache whenever it is used, each thread has
# its own, and no kernel has to plan for it.
STACK_BYTES = 2304
"""Enough for a tile of 6 x 6 vectors, and for a register block of 14 pixels by 32 channels."""
SPARE_BYTES, STAGED_BYTES = 1024, 81 * 1024
"""Enough for a line of a transposition's tile, and for that and what it stages of the tile on both sides."""


def _addresses(builder: Builder, address: Value, stride: Value, element: Any) -> Value:
    lanes = ir.Constant(WORDS, list(range(LANES)))
    # A gather takes about as long as its lanes' loads one by one. It is for strides that nobody optimized for: each
    # kernel has a way for what lies together, and copies into place what is read often.
    spread = builder.mul(lanes, emit.splat(builder, stride, LANES))
    return builder.inttoptr(
        builder.add(spread, emit.splat(builder, address, LANES)), emit.vector_of(element.as_pointer(), LANES)
    )


# Adding rounds in the unit's mode, to nearest even, on every machine: also on those without an instruction that rounds,
# and one step earlier than a conversion, as the byte is already in the low bits.
_ROUND = 12582912.0
"""1.5 * 2**23: added to a smaller number, it leaves the whole number nearest to it, even at a half, in the low bits."""


def _from_bytes(builder: Builder, value: Value) -> Value:
    return builder.sitofp(builder.sext(value, INTS), FLOATS)


def rounded_bits(builder: Builder, value: Value) -> Value:
    """Numbers from -128 to 127, rounded to nearest even, in the low bytes of 32-bit integers, whatever stands above."""
    return builder.bitcast(builder.fadd(value, emit.constant(FLOATS, _ROUND)), INTS)


def _to_bytes(builder: Builder, value: Value) -> Value:
    return builder.trunc(rounded_bits(builder, value), BYTES)


def saturated(builder: Builder, value: Value) -> Value:
    """Numbers within the range of INT8; NaN becomes the lowest."""
    return limited_lanes(builder, value, emit.constant(FLOATS, -128.0), emit.constant(FLOATS, 127.0))


def limited_lanes(builder: Builder, value: Value, low: Value, high: Value) -> Value:
    """Numbers within limits; not NaN."""
    value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
    return builder.select(builder.fcmp_ordered("<", value, high), value, high)


def whole_lanes(builder: Builder, value: Value) -> Value:
    """The 32-bit integers nearest to numbers below 2**31, even at a half."""
    lanes = value.type.count
    # On Arm one instruction, where `lrint` becomes two.
    name = "aarch64.neon.fcvtns" if is_arm() else "lrint"
    return emit.call(builder, f"llvm.{name}.v{lanes}i32.v{lanes}f32", emit.vector_of(INT, lanes), [value])


def _loader(kind: Any) -> tuple[Any, Any, Any]:
    """Operations that load all lanes, the first `count` lanes, and lanes at a stride, of one element type."""
    codes = [types.int64] if kind is SHORTS else []

    def finished(builder: Builder, value: Value, code: tuple[Value, ...]) -> Value:
        if kind is SHORTS:
            return widened(builder, value, *code)
        return _from_bytes(builder, value) if kind is BYTES else value

    @operation(VECTOR, types.int64, *codes)
    def whole(builder: Builder, address: Value, *code: Value) -> Value:
        return finished(builder, emit.load(builder, kind, address), code)

    @operation(VECTOR, types.int64, types.int64, *codes)
    def part(builder: Builder, address: Value, count: Value, *code: Value) -> Value:
        pointer = builder.inttoptr(address, kind.as_pointer())
        return finished(builder, emit.masked_load(builder, kind, pointer, first_mask(builder, count)), code)

    @operation(VECTOR, types.int64, types.int64, types.int64, *codes)
    def strided(builder: Builder, address: Value, stride: Value, count: Value, *code: Value) -> Value:
        pointers = _addresses(builder, address, stride, kind.element)
        arguments = [pointers, ir.Constant(INT, 1), first_mask(builder, count), emit.constant(kind, 0)]
        name = f"llvm.masked.gather.{emit.name_of(kind)}.v{LANES}p0"
        return finished(builder, emit.call(builder, name, kind, arguments), code)

    return whole, part, strided


def _store_first(builder: Builder, address: Value, value: Value, count: Value) -> None:
    store_first(builder, [value], [address], count)


def _storer(kind: Any) -> tuple[Any, Any, Any]:
    """Operations that store all lanes, the first `count` lanes, and lanes at a stride, of one element type."""
    codes = [types.int64] if kind is SHORTS else []

    def finished(builder: Builder, value: Value, code: tuple[Value, ...]) -> Value:
        if kind is SHORTS:
            return narrowed(builder, value, *code)
        return _to_bytes(builder, saturated(builder, value)) if kind is BYTES else value

    @operation(types.void, types.int64, VECTOR, *codes)
    def whole(builder: Builder, address: Value, value: Value, *code: Value) -> None:
        emit.store(builder, finished(builder, value, code), address)

    @operation(types.void, types.int64, VECTOR, types.int64, *codes)
    def part(builder: Builder, address: Value, value: Value, count: Value, *code: Value) -> None:
        if kind is FLOATS:
            emit.outlined(builder, "store_first", [address, value, count], _store_first)
            return
        pointer = builder.inttoptr(address, kind.as_pointer())
        emit.masked_store(builder, finished(builder, value, code), pointer, first_mask(builder, count))

    @operation(types.void, types.int64, types.int64, VECTOR, types.int64, *codes)
    def strided(builder: Builder, address: Value, stride: Value, value: Value, count: Value, *code: Value) -> None:
        pointers = _addresses(builder, address, stride, kind.element)
        arguments = [finished(builder, value, code), pointers, ir.Constant(INT, 1), first_mask(builder, count)]
        emit.call(builder, f"llvm.masked.scatter.{emit.name_of(kind)}.v{LANES}p0", ir.VoidType(), arguments)

    return whole, part, strided


load, _load_part, _load_strided = _loader(FLOATS)
_load_half, _load_half_part, _load_half_strided = _loader(SHORTS)
_load_byte, _load_byte_part, _load_byte_strided = _loader(BYTES)
store, _store_part, _store_strided = _storer(FLOATS)
_store_half, _store_half_part, _store_half_strided = _storer(SHORTS)
_store_byte, _store_byte_part, _store_byte_strided = _storer(BYTES)


@operation(types.void, types.int64, VECTOR, types.int64)
def store_some(builder: Builder, address: Value, value: Value, count: Value) -> None:
    """Store the first `count` lanes, one at least and not all, where that is done often.

    A mask takes no call. But where all lanes are stored mostly, `write` is better: LLVM would make one masked store of
    it and of the plain one, and a mask for each vector. Functions of one operand took up to a tenth longer so.
    """
    if HAS_MASKED_STORES:
        store_first(builder, [value], [address], count)
    else:
        emit.outlined(builder, "store_first", [address, value, count], _store_first)


@operation(VECTOR, types.int64, types.int64)
def load_apart(builder: Builder, address: Value, offsets: Value) -> Value:
    """FP32 values at an address plus each of `LANES` offsets in bytes, which are 64-bit integers at an address."""
    result: Value = ir.Constant(FLOATS, ir.Undefined)
    for lane in range(LANES):
        place = builder.add(address, emit.load(builder, WORD, emit.offset(builder, offsets, 8 * lane), 8))
        result = builder.insert_element(result, emit.load(builder, FLOAT, place, 4), ir.Constant(INT, lane))
    return result


@operation(VECTOR, types.int64)
def load_integers(builder: Builder, address: Value) -> Value:
    """INT32 values at an address as FP32, rounded to nearest even."""
    return builder.sitofp(emit.load(builder, INTS, address, 4), FLOATS)


def limited_bytes(builder: Builder, value: Value, low: Value, high: Value) -> Value:
    """The low bytes of numbers, rounded to nearest even, within limits between -255 and 255; not NaN.

    Limits of rounded numbers are the rounded limits. Numbers that 1.5 * 2**23 has been added to are in the order of
    their bits, as integers, so that the limits cost no floating-point unit.
    """
    bits, lowest, highest = (rounded_bits(builder, one) for one in (value, low, high))
    for name, limit in (("smax", lowest), ("smin", highest)):
        bits = emit.call(builder, f"llvm.{name}.v{LANES}i32", INTS, [bits, limit])
    return builder.trunc(bits, BYTES)


@operation(types.void, types.int64, VECTOR, VECTOR, VECTOR)
def store_bytes(builder: Builder, address: Value, value: Value, low: Value, high: Value) -> None:
    """Write numbers as `limited_bytes`."""
    emit.store(builder, limited_bytes(builder, value, low, high), address)


def _memory_of(size: int) -> Any:
    @operation(types.int64)
    def memory(builder: Builder) -> Value:
        """The address of so many bytes of the function's own, aligned to 64."""
        with builder.goto_entry_block():
            place = builder.alloca(ir.IntType(8), size=ir.Constant(INT, size))
            place.align = 64
        return builder.ptrtoint(place, WORD)

    return memory


stack_memory, staged_memory = _memory_of(STACK_BYTES), _memory_of(STAGED_BYTES)


@operation(types.int64, types.int64)
def load_int(builder: Builder, address: Value) -> Value:
    """The 64-bit integer at an address."""
    return emit.load(builder, WORD, address, 8)


@operation(types.float32, types.int64)
def load_float(builder: Builder, address: Value) -> Value:
    """The FP32 value at an address."""
    return emit.load(builder, FLOAT, address, 4)


@operation(types.void, types.int64, types.int64)
def store_int(builder: Builder, address: Value, value: Value) -> None:
    """Write a 64-bit integer."""
    emit.store(builder, value, address, 8)


@operation(types.void, types.int64, types.int64)
def store_int32(builder: Builder, address: Value, value: Value) -> None:
    """Write the lower half of a 64-bit integer."""
    emit.store(builder, builder.trunc(value, INT), address, 4)


def _mover(size: int) -> Any:
    value = ir.IntType(8 * size)

    @operation(types.void, types.int64, types.int64)
    def move(builder: Builder, destination: Value, source: Value) -> None:
        """Copy one value of so many bytes."""
        emit.store(builder, emit.load(builder, value, source, 1), destination, 1)

    return move


move_byte, move_short, move_word = (_mover(size) for size in (1, 2, 4))


@operation(types.void, types.int64, types.int64, types.int64)
def copy_bytes(builder: Builder, destination: Value, source: Value, count: Value) -> None:
    """Copy so many bytes between pieces of memory that do not overlap."""
    to, at = (builder.inttoptr(address, emit.BYTE.as_pointer()) for address in (destination, source))
    arguments = [to, at, count, ir.Constant(ir.IntType(1), 0)]
    emit.call(builder, "llvm.memcpy.p0.p0.i64", ir.VoidType(), arguments)


@operation(types.void, types.int64, types.int64)
def clear_bytes(builder: Builder, address: Value, count: Value) -> None:
    """Write so many zero bytes."""
    emit.fill(builder, address, ir.Constant(emit.BYTE, 0), count)


@operation(types.void, types.int64, types.int64, types.int64)
def fill_bytes(builder: Builder, address: Value, value: Value, count: Value) -> None:
    """Write the lowest byte of a value so many times."""
    emit.fill(builder, address, builder.trunc(value, emit.BYTE), count)


@inlined
def read(address: int, stride: int, kind: int, count: int) -> Any:
    """The first `count` lanes (at most `LANES`) from memory, `stride` bytes apart, zero in the others.

    Stride 0 gives one value in all lanes.
    """
    # Whole vectors first: where strides and kinds do not change in a loop, LLVM asks outside of it, and what is left
    # inside is one load. Only the last vector of a run is masked.
    if kind == FP32:
        if stride == 4:
            if count >= LANES:
                return load(address)
            return _load_part(address, count)
        return _load_strided(address, stride, count)
    if kind != INT8:
        if stride == 2:
            if count >= LANES:
                return _load_half(address, kind)
            return _load_half_part(address, count, kind)
        return _load_half_strided(address, stride, count, kind)
    if stride == 1:
        if count >= LANES:
            return _load_byte(address)
        return _load_byte_part(address, count)
    return _load_byte_strided(address, stride, count)


@inlined
def write(address: int, stride: int, kind: int, value: Any, count: int) -> None:
    """Store the first `count` lanes (at most `LANES`), `stride` bytes apart, rounded to the element type."""
    if kind == FP32:
        if stride == 4:
            if count >= LANES:
                store(address, value)
            else:
                _store_part(address, value, count)
        else:
            _store_strided(address, stride, value, count)
    elif kind != INT8:
        if stride == 2:
            if count >= LANES:
                _store_half(address, value, kind)
            else:
                _store_half_part(address, value, count, kind)
        else:
            _store_half_strided(address, stride, value, count, kind)
    elif stride == 1:
        if count >= LANES:
            _store_byte(address, value)
        else:
            _store_byte_part(address, value, count)
    else:
        _store_byte_strided(address, stride, value, count)
