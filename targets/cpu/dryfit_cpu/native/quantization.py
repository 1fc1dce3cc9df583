"""Real numbers become INT8: what lies together, and pictures, of which three planes become pixels of three bytes."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import FP32, INT8
from dryfit_cpu.compiler.byte_packing import PACKED_VALUES, store_packed
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import store_pixels
from dryfit_cpu.compiler.memory import load, read, write
from dryfit_cpu.compiler.vector_functions import nearest_whole
from dryfit_cpu.compiler.vectors import HAS_FUSED_PRODUCTS, LANES, maximum, minimum, multiply_add, splat
from dryfit_cpu.descriptors import Chunk, Image
from dryfit_cpu.native.indices import pixel, share

_LOWEST: Any = float32(-128.0)
_HIGHEST: Any = float32(127.0)


@native
def quantize(
    chunk: Chunk,
    source: int,
    output: int,
    count: int,
    scale: float,
    reciprocal: float,
    zero_point: float,
    is_ordinary: int,
) -> None:
    """`saturate(round(x / scale) + zero_point)` of FP32 that lies together, ties to even; NaN becomes the lowest.

    The reciprocal is that of the scale, rounded to nearest. `is_ordinary` says that it and 1000 scales are neither
    near the largest nor near the smallest FP32 numbers.
    """
    blocks = (count + PACKED_VALUES - 1) // PACKED_VALUES
    first, end = share(chunk, blocks)
    start, stop = first * PACKED_VALUES, min(count, end * PACKED_VALUES)
    done = start
    if is_ordinary:
        done = start + (stop - start) // PACKED_VALUES * PACKED_VALUES
        # A division takes as long as a dozen products, and memory would bring values faster. So the quotient comes from
        # the reciprocal and one correction; it is the correctly rounded one, whatever the value. Values are first
        # brought within 400 scales: what is beyond saturates anyway, and the correction needs a finite product.
        low, high = splat(_LOWEST), splat(_HIGHEST)
        factors = (splat(scale), splat(reciprocal), splat(float32(-400.0) * scale), splat(float32(400.0) * scale))
        for i in range(start, done, PACKED_VALUES):
            a, b = _quotient(source + i * 4, factors), _quotient(source + (i + LANES) * 4, factors)
            c = _quotient(source + (i + 2 * LANES) * 4, factors)
            d = _quotient(source + (i + 3 * LANES) * 4, factors)
            if zero_point != 0.0:
                a, b = _shifted(a, zero_point), _shifted(b, zero_point)
                c, d = _shifted(c, zero_point), _shifted(d, zero_point)
            store_packed(output + i, a, b, c, d, low, high)
    for i in range(done, stop, LANES):
        x = read(source + i * 4, 4, FP32, stop - i) / splat(scale)
        write(output + i, 1, INT8, _shifted(x, zero_point), stop - i)


@inlined
def _shifted(x: Any, zero_point: float) -> Any:
    """The nearest whole numbers, with the zero point added to them."""
    return nearest_whole(x) + splat(zero_point)


@inlined
def _quotient(address: int, factors: Any) -> Any:
    """FP32 values, first brought between limits, divided by the scale, correctly rounded.

    Source: P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990, theorem 8.1:
    with the rounded reciprocal and the exact remainder of a product with it, one fused multiply-add gives the quotient.
    """
    scale, reciprocal, low, high = factors
    x = minimum(maximum(load(address), low), high)
    if not HAS_FUSED_PRODUCTS:
        return x / scale
    near = x * reciprocal
    return multiply_add(multiply_add(splat(float32(-1.0)) * near, scale, x), reciprocal, near)


@native
def quantize_planes(
    chunk: Chunk,
    source: Image,
    output: Image,
    scale: float,
    zero_point: float,
) -> None:
    """`saturate(round(x / scale) + zero_point)` of FP32 `[images, 3, rows, columns]`, ties to even.

    Rows have at least one vector.
    """
    # Planes are what cameras and numpy give, pixels what the first convolution reads: one pass quantizes and turns
    # them. As plain loops over values this took twenty times as long.
    divisor = splat(scale)
    for index in range(*share(chunk, output.images * output.rows)):
        image = index // output.rows
        row = index - image * output.rows
        start, to = pixel(source, image, row, 0), pixel(output, image, row, 0)
        for place in range(0, output.columns, LANES):
            # The last vector overlaps the one before.
            column = min(place, output.columns - LANES)
            at = start + column * 4
            red = _shifted(load(at) / divisor, zero_point)
            green = _shifted(load(at + source.channel_stride) / divisor, zero_point)
            blue = _shifted(load(at + 2 * source.channel_stride) / divisor, zero_point)
            store_pixels(to + column * 3, red, green, blue)
