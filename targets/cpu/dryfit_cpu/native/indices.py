"""How work is cut: the share of a chunk, and where the pieces lie that are counted through over several axes."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.memory import load_int
from dryfit_cpu.descriptors import Chunk, Elements, Extents, Image

BLOCK_BYTES = 32
"""Of a row of the table of blocks: first channel, width, number of the code, address of the panel."""


@inlined
def share(chunk: Chunk, total: int) -> tuple[int, int]:
    """The first of a chunk's pieces of work, and the end of them; chunks differ by one piece at most.

    What is computed must not depend on it: any thread may run any chunk, and there is one chunk for one thread.
    """
    return total * chunk.number // chunk.chunks, total * (chunk.number + 1) // chunk.chunks


@inlined
def alike(word: int, row_bytes: int, rows: int) -> int:
    """How many rows of a table, at most so many, have the word of the first one; from that word's address."""
    count, first = 1, load_int(word)
    while count < rows and load_int(word + count * row_bytes) == first:
        count += 1
    return count


@inlined
def parted(chunk: Chunk, inner_parts: int, inner: int) -> tuple[int, int, int, int]:
    """Of chunks that cut an outer loop, and an inner one of so many turns into parts.

    Returns:
        The chunk's part of the outer loop, of how many, the first turn of the inner one, and the one behind the last.
    """
    parts = min(inner_parts, chunk.chunks)
    part = chunk.number % parts
    return chunk.number // parts, chunk.chunks // parts, inner * part // parts, inner * (part + 1) // parts


@inlined
def indices(number: int, extent1: int, extent2: int) -> tuple[int, int, int]:
    """The indices along three axes of so many pieces, of which the last axis comes first in counting."""
    i01 = number // extent2
    i0 = i01 // extent1
    return i0, i01 - i0 * extent1, number - i01 * extent2


@inlined
def element(array: Elements, i0: int, i1: int, i2: int, i3: int) -> int:
    """Address of an element, or of what is known of an operand at these indices."""
    at = array.address + i0 * array.stride0 + i1 * array.stride1 + i2 * array.stride2
    return at + i3 * array.stride3


@inlined
def run_of_row(block: int, stop: int, extents: Extents, block_values: int) -> tuple[int, int, int, int, int, int]:
    """Of work cut into blocks of values of the last axis: what can be done from one of them on before the row ends.

    Returns:
        Indices of the row along three axes and of the first value in it, how many values, and how many blocks.
    """
    # The unit is a block, not a row: then a tensor of a single long row is shared among threads too.
    blocks = (extents.axis3 + block_values - 1) // block_values
    row = block // blocks
    first = block - row * blocks
    last = min(blocks, first + stop - block)
    i0, i1, i2 = indices(row, extents.axis1, extents.axis2)
    i3 = first * block_values
    return i0, i1, i2, i3, min(last * block_values, extents.axis3) - i3, last - first


@inlined
def blocks_of(extents: Extents, block_values: int) -> int:
    """How many blocks `run_of_row` cuts the rows of three axes into."""
    blocks = (extents.axis3 + block_values - 1) // block_values
    return extents.axis0 * extents.axis1 * extents.axis2 * blocks


@inlined
def pixel(image: Image, number: int, row: int, column: int) -> int:
    """Address of a pixel's first channel."""
    at = image.address + number * image.image_stride
    return at + row * image.row_stride + column * image.pixel_stride


@inlined
def blocks_of_line(index: int, stop: int, block_count: int) -> tuple[int, int, int]:
    """The line of a piece of work, and the first block and the end of the blocks of it that are before `stop`."""
    line = index // block_count
    first = index - line * block_count
    return line, first, min(block_count, first + stop - index)


@inlined
def inside(first: int, dilation: int, window: int, start: int, stop: int) -> tuple[int, int]:
    """Which places of a window, `first + index * dilation`, lie from `start` to before `stop`: first and end."""
    begin = max(0, (start - first + dilation - 1) // dilation)
    return begin, max(begin, min(window, (stop - first + dilation - 1) // dilation))
