"""A few planes of values and the pixels that they make, one value of each plane beside the other: there and back.

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

import attrs
from llvmlite import ir
from numba import types

from dryfit_cpu.codes import interleavings
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import INT, WORD, Builder, Loop, Value, operation, word

BLOCK_PIXELS = 16
"""Pixels that are made, or taken apart, at once."""


@attrs.frozen
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
            made = _chosen(builder, made, left, kept)
        emit.store(builder, made, there)
    else:
        values = emit.load(builder, pixel, there)
        for number, place in enumerate(places):
            order = range(number, BLOCK_PIXELS * kind.pitch, kind.pitch)
            emit.store(builder, _chosen(builder, values, values, order), place)
    steps = (BLOCK_PIXELS * kind.size, BLOCK_PIXELS * kind.size * kind.pitch)
    loop.finish([builder.add(value, word(size)) for value, size in zip((here, there), steps, strict=True)])


def _interleaved(builder: Builder, planes: Sequence[Value], pitch: int) -> Value:
    """One value of each plane beside the other; anything where the pitch leaves room."""
    pairs = [planes[start : start + 2] for start in range(0, len(planes), 2)]
    ends = range(2 * BLOCK_PIXELS)
    joined = [_chosen(builder, pair[0], pair[-1], ends) for pair in pairs]
    order = [
        min(place, len(planes) - 1) * BLOCK_PIXELS + index for index in range(BLOCK_PIXELS) for place in range(pitch)
    ]
    return _chosen(builder, joined[0], joined[-1], order)


def _chosen(builder: Builder, a: Value, b: Value, order: Sequence[int]) -> Value:
    return builder.shuffle_vector(a, b, ir.Constant(emit.vector_of(INT, len(order)), list(order)))


def _copy_operation(size: int) -> Any:
    @operation(types.void, types.int64, types.int64)
    def copy_value(builder: Builder, to: Value, at: Value) -> None:
        """Copy one value."""
        emit.store(builder, emit.load(builder, ir.IntType(8 * size), at), to)

    return copy_value


copy_byte, copy_short, copy_int = (_copy_operation(size) for size in (1, 2, 4))
