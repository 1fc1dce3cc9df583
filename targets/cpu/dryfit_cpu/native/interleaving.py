"""Copies between a few planes and the pixels that they make."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.memory import clear_bytes
from dryfit_cpu.compiler.plane_interleaving import BLOCK_PIXELS, copy_byte, copy_int, copy_short, interleave_blocks


@native
def interleave(
    chunk: int,
    chunks: int,
    number: int,
    size: int,
    planes: int,
    pitch: int,
    makes_pixels: int,
    clears: int,
    source: int,
    output: int,
    plane_stride0: int,
    plane_stride1: int,
    plane_step: int,
    pixel_stride0: int,
    pixel_stride1: int,
    extent0: int,
    extent1: int,
    columns: int,
) -> None:
    """Copy values of `size` bytes, `planes` of which lie side by side in pixels that are `pitch` values apart.

    `number` is that of the interleaving; where it `clears`, what is left in a pixel becomes zero. Values of one plane
    lie together. Strides and steps are in bytes.
    """
    plane, pixel = (source, output) if makes_pixels else (output, source)
    # The value behind the last pixel may be nobody's.
    blocks = (columns - (1 if pitch > planes and not clears else 0)) // BLOCK_PIXELS
    total = extent0 * extent1
    for index in range(total * chunk // chunks, total * (chunk + 1) // chunks):
        i0 = index // extent1
        i1 = index - i0 * extent1
        at = plane + i0 * plane_stride0 + i1 * plane_stride1
        pixels = pixel + i0 * pixel_stride0 + i1 * pixel_stride1
        interleave_blocks(number, at, plane_step, pixels, blocks)
        for column in range(blocks * BLOCK_PIXELS, columns):
            for place in range(planes):
                one = at + place * plane_step + column * size
                other = pixels + (column * pitch + place) * size
                if makes_pixels:
                    _copy_value(size, other, one)
                else:
                    _copy_value(size, one, other)
            if clears:
                clear_bytes(pixels + (column * pitch + planes) * size, (pitch - planes) * size)


@inlined
def _copy_value(size: int, to: int, at: int) -> None:
    if size == 4:
        copy_int(to, at)
    elif size == 2:
        copy_short(to, at)
    else:
        copy_byte(to, at)
