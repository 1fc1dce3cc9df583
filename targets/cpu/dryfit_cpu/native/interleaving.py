"""Copies between layouts that differ in little: a few planes and the pixels they make, and lines that are padded."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.line_copies import copy_padded_line
from dryfit_cpu.compiler.memory import clear_bytes
from dryfit_cpu.compiler.plane_interleaving import BLOCK_PIXELS, copy_byte, copy_int, copy_short, interleave_blocks
from dryfit_cpu.descriptors import Chunk, Lines
from dryfit_cpu.native.indices import share


@native
def interleave(
    chunk: Chunk,
    number: int,
    size: int,
    planes: int,
    pitch: int,
    makes_pixels: int,
    clears: int,
    source: Lines,
    output: Lines,
    extent0: int,
    extent1: int,
    columns: int,
) -> None:
    """Copy values of `size` bytes, `planes` of which lie side by side in pixels that are `pitch` values apart.

    `number` is that of the interleaving; where it `clears`, what is left in a pixel becomes zero. Values of one plane
    lie together, and planes are a step apart. Strides and steps are in bytes.
    """
    planar, pixels_at = (source, output) if makes_pixels else (output, source)
    # The value behind the last pixel may be nobody's.
    blocks = (columns - (1 if pitch > planes and not clears else 0)) // BLOCK_PIXELS
    for index in range(*share(chunk, extent0 * extent1)):
        i0 = index // extent1
        i1 = index - i0 * extent1
        at = planar.address + i0 * planar.stride0 + i1 * planar.stride1
        pixels = pixels_at.address + i0 * pixels_at.stride0 + i1 * pixels_at.stride1
        interleave_blocks(number, at, planar.step, pixels, blocks)
        for column in range(blocks * BLOCK_PIXELS, columns):
            for place in range(planes):
                one = at + place * planar.step + column * size
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


@native
def copy_lines(
    chunk: Chunk, source: Lines, output: Lines, extent0: int, extent1: int, count: int, written: int
) -> None:
    """Copy lines of `count` bytes, and write zeros behind each up to `written` bytes. Strides are in bytes."""
    # Only the outer axis is cut: lines are short, and a chunk of fewer of them than an inner axis has is not worth it.
    for i0 in range(*share(chunk, extent0)):
        at, to = source.address + i0 * source.stride0, output.address + i0 * output.stride0
        for i1 in range(extent1):
            copy_padded_line(to + i1 * output.stride1, at + i1 * source.stride1, count, written)
