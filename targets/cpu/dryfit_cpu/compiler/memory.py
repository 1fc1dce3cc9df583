"""Vectors in memory: loads and stores of whole vectors, of their first lanes, and of lanes at any stride.

FP16 exists in memory only: it becomes FP32 when it is loaded, and is rounded to nearest even when it is stored.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from dryfit_cpu.codes import FP32
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.emit import FLOAT, INT, WORD, Builder, Value
from dryfit_cpu.compiler.half_precision import narrowed, widened
from dryfit_cpu.compiler.operations import operation
from dryfit_cpu.compiler.vectors import FLOATS, LANES, SHORTS, VECTOR, WORDS, first_mask

VECTOR_BYTES = 4 * LANES
STACK_BYTES = 2048
"""Enough for a register block of 14 pixels by 32 channels."""


def _addresses(builder: Builder, address: Value, stride: Value, element: Any) -> Value:
    lanes = ir.Constant(WORDS, list(range(LANES)))
    spread = builder.mul(lanes, emit.splat(builder, stride, LANES))
    return builder.inttoptr(
        builder.add(spread, emit.splat(builder, address, LANES)), emit.vector_of(element.as_pointer(), LANES)
    )


def _masked(builder: Builder, what: str, kind: Any, arguments: list[Value], result: Any) -> Value:
    element = "f32" if kind.element == FLOAT else "i16"
    pointers = f"v{LANES}p0" if what in {"gather", "scatter"} else "p0"
    return emit.call(builder, f"llvm.masked.{what}.v{LANES}{element}.{pointers}", result, arguments)


def _loader(kind: Any) -> tuple[Any, Any, Any]:
    """Operations that load all lanes, the first `count` lanes, and lanes at a stride, of one element type."""

    def finished(builder: Builder, value: Value) -> Value:
        return value if kind is FLOATS else widened(builder, value)

    @operation(VECTOR, types.int64)
    def whole(builder: Builder, address: Value) -> Value:
        return finished(builder, emit.load(builder, kind, address))

    @operation(VECTOR, types.int64, types.int64)
    def part(builder: Builder, address: Value, count: Value) -> Value:
        pointer = builder.inttoptr(address, kind.as_pointer())
        arguments = [pointer, ir.Constant(INT, 1), first_mask(builder, count), emit.constant(kind, 0)]
        return finished(builder, _masked(builder, "load", kind, arguments, kind))

    @operation(VECTOR, types.int64, types.int64, types.int64)
    def strided(builder: Builder, address: Value, stride: Value, count: Value) -> Value:
        pointers = _addresses(builder, address, stride, kind.element)
        arguments = [pointers, ir.Constant(INT, 1), first_mask(builder, count), emit.constant(kind, 0)]
        return finished(builder, _masked(builder, "gather", kind, arguments, kind))

    return whole, part, strided


def _storer(kind: Any) -> tuple[Any, Any, Any]:
    """Operations that store all lanes, the first `count` lanes, and lanes at a stride, of one element type."""

    def finished(builder: Builder, value: Value) -> Value:
        return value if kind is FLOATS else narrowed(builder, value)

    @operation(types.void, types.int64, VECTOR)
    def whole(builder: Builder, address: Value, value: Value) -> None:
        emit.store(builder, finished(builder, value), address)

    @operation(types.void, types.int64, VECTOR, types.int64)
    def part(builder: Builder, address: Value, value: Value, count: Value) -> None:
        pointer = builder.inttoptr(address, kind.as_pointer())
        arguments = [finished(builder, value), pointer, ir.Constant(INT, 1), first_mask(builder, count)]
        _masked(builder, "store", kind, arguments, ir.VoidType())

    @operation(types.void, types.int64, types.int64, VECTOR, types.int64)
    def strided(builder: Builder, address: Value, stride: Value, value: Value, count: Value) -> None:
        pointers = _addresses(builder, address, stride, kind.element)
        arguments = [finished(builder, value), pointers, ir.Constant(INT, 1), first_mask(builder, count)]
        _masked(builder, "scatter", kind, arguments, ir.VoidType())

    return whole, part, strided


load, _load_part, _load_strided = _loader(FLOATS)
_load_half, _load_half_part, _load_half_strided = _loader(SHORTS)
store, _store_part, _store_strided = _storer(FLOATS)
_store_half, _store_half_part, _store_half_strided = _storer(SHORTS)


@operation(types.int64)
def stack_memory(builder: Builder) -> Value:
    """The address of `STACK_BYTES` of the function's own, aligned to 64."""
    with builder.goto_entry_block():
        memory = builder.alloca(ir.IntType(8), size=ir.Constant(INT, STACK_BYTES))
        memory.align = 64
    return builder.ptrtoint(memory, WORD)


@operation(types.int64, types.int64)
def load_int(builder: Builder, address: Value) -> Value:
    """The 64-bit integer at an address."""
    return emit.load(builder, WORD, address, 8)


@operation(types.float32, types.int64)
def load_float(builder: Builder, address: Value) -> Value:
    """The FP32 value at an address."""
    return emit.load(builder, FLOAT, address, 4)


@inlined
def read(address: int, stride: int, kind: int, count: int) -> Any:
    """The first `count` lanes (at most `LANES`) from memory, `stride` bytes apart, zero in the others.

    Stride 0 gives one value in all lanes.
    """
    if kind == FP32:
        if stride == 4:
            if count >= LANES:
                return load(address)
            return _load_part(address, count)
        return _load_strided(address, stride, count)
    if stride == 2:
        if count >= LANES:
            return _load_half(address)
        return _load_half_part(address, count)
    return _load_half_strided(address, stride, count)


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
    elif stride == 2:
        if count >= LANES:
            _store_half(address, value)
        else:
            _store_half_part(address, value, count)
    else:
        _store_half_strided(address, stride, value, count)
