"""Whole numbers in memory, one at a time: BOOL, INT32 and INT64, and FP32 for casts from them and to them."""

from __future__ import annotations

from typing import Any

from numba import types

from dryfit_cpu.codes import WORD_BYTES, WORD_INT32, WORD_INT64
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.emit import BYTE, FLOAT, INT, WORD, Builder, Value, operation

_int = types.int64


@operation(_int, _int)
def _load_byte(builder: Builder, address: Value) -> Value:
    return builder.zext(emit.load(builder, BYTE, address), WORD)


@operation(_int, _int)
def _load_int32(builder: Builder, address: Value) -> Value:
    return builder.sext(emit.load(builder, INT, address), WORD)


@operation(_int, _int)
def _load_int64(builder: Builder, address: Value) -> Value:
    return emit.load(builder, WORD, address)


def _cut_off(kind: Any) -> Any:
    @operation(_int, _int)
    def load(builder: Builder, address: Value) -> Value:
        """The FP32 number at an address without its fraction, within the ends of a type; 0 for NaN."""
        value = emit.load(builder, FLOAT, address)
        whole = emit.call(builder, f"llvm.fptosi.sat.i{kind.width}.f32", kind, [value])
        return whole if kind is WORD else builder.sext(whole, WORD)

    return load


_load_fp32, _load_short_fp32 = _cut_off(WORD), _cut_off(INT)


@inlined
def load_whole(address: int, kind: int, is_short: int) -> int:
    """The number at an address; of FP32 without its fraction, within the ends of INT64 or, `is_short`, of INT32."""
    if kind == WORD_INT64:
        return int(_load_int64(address))
    if kind == WORD_INT32:
        return int(_load_int32(address))
    if kind == WORD_BYTES:
        return int(_load_byte(address))
    return int(_load_short_fp32(address)) if is_short else int(_load_fp32(address))


@operation(types.void, _int, _int)
def _store_byte(builder: Builder, address: Value, value: Value) -> None:
    emit.store(builder, builder.trunc(value, BYTE), address)


@operation(types.void, _int, _int)
def _store_int32(builder: Builder, address: Value, value: Value) -> None:
    emit.store(builder, builder.trunc(value, INT), address)


@operation(types.void, _int, _int)
def _store_int64(builder: Builder, address: Value, value: Value) -> None:
    emit.store(builder, value, address)


@operation(types.void, _int, _int)
def _store_fp32(builder: Builder, address: Value, value: Value) -> None:
    emit.store(builder, builder.sitofp(value, FLOAT), address)


@inlined
def store_whole(address: int, kind: int, value: int) -> None:
    """Write the low bytes of a number, or as FP32 the nearest one."""
    if kind == WORD_INT64:
        _store_int64(address, value)
    elif kind == WORD_INT32:
        _store_int32(address, value)
    elif kind == WORD_BYTES:
        _store_byte(address, value)
    else:
        _store_fp32(address, value)
