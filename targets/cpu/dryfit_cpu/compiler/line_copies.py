"""Lines of bytes that are copied as they are, and a few planes that become pixels, or pixels planes.

Lines go through the cache, or past it to memory that nobody reads soon. A store past the cache spares the processor the
reading of the line that it overwrites. It has to be as long as a register, at a multiple of its length; what stands
before and behind is stored as usual.

Of planes one value of each lies beside the other in a pixel:

```
    planes        pixels of pitch 4
    a0 a1 a2 ..   a0 b0 c0 -- a1 b1 c1 -- a2 b2 c2 -- ..
    b0 b1 b2 ..
    c0 c1 c2 ..   what stands in between, here as --, stays as it is
```
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types

from dryfit.attrs_classes import frozen
from dryfit_cpu.codes import interleavings
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, INT, WORD, Builder, Loop, Value, offset, operation, word
from dryfit_cpu.compiler.tier import is_x86
from dryfit_cpu.compiler.vectors import LANES

_BYTES = 4 * LANES
_REGISTER = emit.vector_of(BYTE, _BYTES)
CACHE_LINE = 64
LINE_REGISTER = 16
"""Bytes of the shortest lines that are copied by registers which overlap."""


@operation(types.void)
def finish_streams(builder: Builder) -> None:
    """Let what this thread stored past the cache be seen before what it stores from now on."""
    if is_x86():
        emit.call(builder, "llvm.x86.sse.sfence", ir.VoidType(), [])


@operation(types.void, types.int64, types.int64)
def clear_line(builder: Builder, to: Value, count: Value) -> None:
    """Write whole registers of zeros, as many as so many bytes need: up to a register less a byte too much."""
    registers = builder.udiv(builder.add(count, word(_BYTES - 1)), word(_BYTES))
    loop = Loop(builder, registers, [to])
    emit.store(builder, emit.constant(_REGISTER, 0), loop.values[0])
    loop.finish([offset(builder, loop.values[0], _BYTES)])


def _copy_line(builder: Builder, to: Value, at: Value, count: Value) -> None:
    """Copy so many bytes; nothing else is read or written."""
    loop = Loop(builder, builder.udiv(count, word(_BYTES)), [to, at])
    there, here = loop.values
    emit.store(builder, emit.load(builder, _REGISTER, here), there)
    there, here = loop.finish([offset(builder, there, _BYTES), offset(builder, here, _BYTES)])
    _copy_rest(builder, there, here, count)


copy_line = emit.outlined_operation("copy_line", *[types.int64] * 3)(_copy_line)


@emit.outlined_operation("copy_padded_line", *[types.int64] * 4)
def copy_padded_line(builder: Builder, to: Value, at: Value, count: Value, written: Value) -> None:
    """Copy so many bytes, and write zeros behind them, so many in all; both are a register's at least.

    The last registers overlap those before.
    """
    register, zero = emit.vector_of(BYTE, LINE_REGISTER), emit.constant(emit.vector_of(BYTE, LINE_REGISTER), 0)
    missing = builder.sub(written, count)
    last = builder.add(to, offset(builder, written, -LINE_REGISTER))
    behind = Loop(builder, builder.udiv(builder.add(missing, word(LINE_REGISTER - 1)), word(LINE_REGISTER)), [last])
    emit.store(builder, zero, behind.values[0])
    behind.finish([offset(builder, behind.values[0], -LINE_REGISTER)])
    whole = Loop(builder, builder.udiv(count, word(LINE_REGISTER)), [word(0)])
    place = whole.values[0]
    emit.store(builder, emit.load(builder, register, builder.add(at, place)), builder.add(to, place))
    whole.finish([offset(builder, place, LINE_REGISTER)])
    rest = offset(builder, count, -LINE_REGISTER)
    emit.store(builder, emit.load(builder, register, builder.add(at, rest)), builder.add(to, rest))


def _copy_rest(builder: Builder, to: Value, at: Value, count: Value) -> None:
    """Copy what is left of so many bytes behind whole registers: halves of one, as the bits of the count say."""
    size = _BYTES // 2
    while size:
        has_bit = builder.icmp_unsigned("!=", builder.and_(count, word(size)), word(0))
        kind = emit.vector_of(BYTE, size)

        def copied(to: Value = to, at: Value = at, size: int = size, kind: object = kind) -> list[Value]:
            emit.store(builder, emit.load(builder, kind, at), to)
            return [offset(builder, to, size), offset(builder, at, size)]

        to, at = emit.changed_if(builder, has_bit, [to, at], copied)
        size //= 2


@emit.outlined_operation("stream_line", *[types.int64] * 3)
def stream_line(builder: Builder, to: Value, at: Value, count: Value) -> None:
    """Copy so many bytes past the cache; `finish_streams` has to follow before anybody else reads."""
    # To the first whole cache line, or to the end where that is nearer.
    missing = builder.and_(builder.neg(to), word(CACHE_LINE - 1))
    head = builder.select(builder.icmp_unsigned("<", missing, count), missing, count)
    emit.outlined(builder, "copy_line", [to, at, head], _copy_line)
    to, at, count = builder.add(to, head), builder.add(at, head), builder.sub(count, head)
    registers = builder.mul(builder.udiv(count, word(CACHE_LINE)), word(CACHE_LINE // _BYTES))
    loop = Loop(builder, registers, [to, at])
    there, here = loop.values
    value = emit.load(builder, _REGISTER, here)
    stored = builder.store(value, builder.inttoptr(there, _REGISTER.as_pointer()))
    stored.align = _BYTES
    stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(INT, 1)]))
    there, here = loop.finish([offset(builder, there, _BYTES), offset(builder, here, _BYTES)])
    emit.outlined(builder, "copy_line", [there, here, builder.and_(count, word(CACHE_LINE - 1))], _copy_line)


BLOCK_PIXELS = 16
"""Pixels that are made, or taken apart, at once."""


@frozen
class Interleaving:
    """One way to interleave.

    Attributes:
        size: bytes of a value.
        planes: how many there are.
        pitch: values from one pixel to the next.
        makes_pixels: whether planes become pixels, or pixels planes.
        clears: whether what is left in a pixel becomes zero.
    """

    size: int
    planes: int
    pitch: int
    makes_pixels: bool
    clears: bool


INTERLEAVINGS = tuple(itertools.starmap(Interleaving, interleavings()))
"""Those there are; native functions know them by their number."""


@operation(types.void, *[types.int64] * 5)
def interleave_blocks(builder: Builder, number: Value, at: Value, step: Value, pixels: Value, blocks: Value) -> None:
    """Copy blocks of pixels between planes that begin at `at` and lie `step` bytes apart, and `pixels`.

    With a pitch that is larger than the planes are many, the value behind the last pixel is written as well; and read,
    unless it becomes zero.
    """
    end = builder.append_basic_block("interleaved")
    switch = builder.switch(number, end)
    for place, kind in enumerate(INTERLEAVINGS):
        block = builder.append_basic_block(f"interleaving{place}")
        switch.add_case(ir.Constant(WORD, place), block)
        builder.position_at_end(block)

        def body(builder: Builder, *arguments: Value, kind: Interleaving = kind) -> None:
            _blocks(builder, kind, *arguments)

        emit.outlined(builder, f"interleave_{place}", [at, step, pixels, blocks], body)
        builder.branch(end)
    builder.position_at_end(end)


@emit.outlined_operation("interleave_three", *[types.int64] * 4)
def interleave_three(builder: Builder, at: Value, step: Value, pixels: Value, blocks: Value) -> None:
    """Copy blocks of FP32 pixels from three planes, such as those of a picture, that lie `step` bytes apart."""
    _blocks(builder, Interleaving(4, 3, 3, makes_pixels=True, clears=False), at, step, pixels, blocks)


def _blocks(builder: Builder, kind: Interleaving, at: Value, step: Value, pixels: Value, blocks: Value) -> None:
    element = ir.IntType(8 * kind.size)
    plane, pixel = emit.vector_of(element, BLOCK_PIXELS), emit.vector_of(element, BLOCK_PIXELS * kind.pitch)
    loop = Loop(builder, blocks, [at, pixels])
    here, there = loop.values
    places = [here]
    for _ in range(kind.planes - 1):
        places.append(builder.add(places[-1], step))
    if kind.makes_pixels:
        planes = [emit.load(builder, plane, place) for place in places]
        made = _interleaved(builder, planes, kind.pitch)
        if kind.pitch > kind.planes:
            count = pixel.count
            kept = [index if index % kind.pitch < kind.planes else count + index for index in range(count)]
            left = emit.constant(pixel, 0) if kind.clears else emit.load(builder, pixel, there)
            made = emit.shuffled(builder, made, left, kept)
        emit.store(builder, made, there)
    else:
        values = emit.load(builder, pixel, there)
        for number, place in enumerate(places):
            order = range(number, BLOCK_PIXELS * kind.pitch, kind.pitch)
            emit.store(builder, emit.shuffled(builder, values, values, order), place)
    steps = (BLOCK_PIXELS * kind.size, BLOCK_PIXELS * kind.size * kind.pitch)
    loop.finish([builder.add(value, word(size)) for value, size in zip((here, there), steps, strict=True)])


def _interleaved(builder: Builder, planes: Sequence[Value], pitch: int) -> Value:
    """One value of each plane beside the other; anything where the pitch leaves room."""
    pairs = [planes[start : start + 2] for start in range(0, len(planes), 2)]
    ends = range(2 * BLOCK_PIXELS)
    joined = [emit.shuffled(builder, pair[0], pair[-1], ends) for pair in pairs]
    order = [
        min(place, len(planes) - 1) * BLOCK_PIXELS + index for index in range(BLOCK_PIXELS) for place in range(pitch)
    ]
    return emit.shuffled(builder, joined[0], joined[-1], order)


def _copy_operation(size: int) -> Any:
    @operation(types.void, types.int64, types.int64)
    def copy_value(builder: Builder, to: Value, at: Value) -> None:
        """Copy one value."""
        emit.store(builder, emit.load(builder, ir.IntType(8 * size), at), to)

    return copy_value


copy_byte, copy_short, copy_int = (_copy_operation(size) for size in (1, 2, 4))
