"""Quantized values, or sums of two, in another scale: element by element over any strides."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import HALF_TO_EVEN, INT8, SUM
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import PACKED_VALUES, store_packed
from dryfit_cpu.compiler.memory import read
from dryfit_cpu.compiler.vectors import LANES, nearest, splat
from dryfit_cpu.descriptors import Chunk, Elements, Extents, RequantizationSteps
from dryfit_cpu.native.indices import blocks_of, element, run_of_row, share
from dryfit_cpu.native.requantization import last_limits, limited, requantized, rounded_as, write_limited

_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)
_MODEST: Any = float32(10000.0)
"""Multipliers of INT8 values below this give numbers that can be rounded before they are limited."""


@native
def requantize(
    chunk: Chunk,
    source: Elements,
    source_zero: float,
    multiplier: float,
    residual: Elements,
    output: Elements,
    extents: Extents,
    steps: RequantizationSteps,
) -> None:
    """The source less its zero point, times a multiplier, requantized, over four axes; no residual is address 0."""
    is_dense = (
        source.kind == INT8 and source.stride3 == 1 and output.kind == INT8 and output.stride3 == 1
        and (residual.address == 0 or (residual.kind == INT8 and residual.stride3 == 1))
        and steps.rounding == HALF_TO_EVEN and abs(multiplier) < _MODEST and abs(steps.sum_multiplier) < _MODEST
        and abs(steps.residual_multiplier) < _MODEST and abs(steps.last_multiplier) < _MODEST
        and steps.operation <= SUM
    )  # fmt: skip
    block, stop = share(chunk, blocks_of(extents, PACKED_VALUES))
    while block < stop:
        i0, i1, i2, i3, count, blocks = run_of_row(block, stop, extents, PACKED_VALUES)
        block += blocks
        at, to = element(source, i0, i1, i2, i3), element(output, i0, i1, i2, i3)
        add = element(residual, i0, i1, i2, i3) if residual.address != 0 else 0
        done = 0
        if is_dense:
            done = count // PACKED_VALUES * PACKED_VALUES
            _requantize_run(done, at, add, to, (source_zero, multiplier), steps)
        for i in range(done, count, LANES):
            x = read(at + i * source.stride3, source.stride3, source.kind, count - i)
            x = (x - splat(source_zero)) * splat(multiplier)
            x = requantized(x, add + i * residual.stride3, residual.stride3, residual.kind, count - i, steps)
            to_vector = to + i * output.stride3
            write_limited(to_vector, output.stride3, output.kind, x, count - i, steps.rounding, last_limits(steps))


@inlined
def _requantize_run(
    count: int, source: int, residual: int, output: int, scale: Any, steps: RequantizationSteps
) -> None:
    """Requantize INT8 values that lie together, rounded to nearest even: as many as are stored at once, or several.

    The scale is the source's zero point and its multiplier.
    """
    low, high, zero_point = last_limits(steps)
    lowest, highest = splat(low), splat(high)
    for i in range(0, count, PACKED_VALUES):
        # Four vectors side by side: what is packed to bytes fills a register, and no vector waits for another.
        a = _scaled(source + i, scale, residual + i, steps)
        b = _scaled(source + i + LANES, scale, residual + i + LANES, steps)
        c = _scaled(source + i + 2 * LANES, scale, residual + i + 2 * LANES, steps)
        d = _scaled(source + i + 3 * LANES, scale, residual + i + 3 * LANES, steps)
        if zero_point == 0.0:
            store_packed(output + i, a, b, c, d, lowest, highest)
        else:
            # Added to what is rounded, since the sum would be rounded otherwise.
            limits = (low, high, zero_point)
            a, b, c, d = _moved(a, limits), _moved(b, limits), _moved(c, limits), _moved(d, limits)
            store_packed(output + i, a, b, c, d, splat(_LOWEST), splat(_HIGHEST))


@inlined
def _scaled(source: int, scale: Any, residual: int, steps: RequantizationSteps) -> Any:
    x = (read(source, 1, INT8, LANES) - splat(scale[0])) * splat(scale[1])
    return rounded_as(HALF_TO_EVEN, x, residual, 1, INT8, LANES, steps)


@inlined
def _moved(x: Any, limits: Any) -> Any:
    low, high, zero_point = limits
    return nearest(limited(x, low, high)) + splat(zero_point)
