"""Elements of an input, picked along each axis by tables of places, and elements that a condition chooses."""

from __future__ import annotations

from dryfit_cpu.compiler.byte_tables import load_code
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.memory import copy_bytes, load_int
from dryfit_cpu.descriptors import Chunk, Elements, Extents
from dryfit_cpu.native.indices import element, indices, share


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
        for i3 in range(extents.axis3):
            is_first = load_code(asked + i3 * condition.stride3) != 0
            at = one + i3 * first.stride3 if is_first else other + i3 * second.stride3
            copy_bytes(to + i3 * output.stride3, at, size)
