"""Where the pieces of work lie that are counted through over several axes."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined


@inlined
def indices(number: int, extent1: int, extent2: int) -> tuple[int, int, int]:
    """The indices along three axes of so many pieces, of which the last axis comes first in counting."""
    i01 = number // extent2
    i0 = i01 // extent1
    return i0, i01 - i0 * extent1, number - i01 * extent2
