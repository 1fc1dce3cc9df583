"""How work in blocks of channels is cut: line by line of the output, and within a line block by block."""

from __future__ import annotations

from dryfit_cpu.compiler.compilation import inlined

BLOCK_BYTES = 32
"""Of a row of the table of blocks: first channel, width, number of the code, address of the panel."""


@inlined
def blocks_of_line(index: int, stop: int, block_count: int) -> tuple[int, int, int]:
    """The line of a piece of work, and the first block and the end of the blocks of it that are before `stop`."""
    line = index // block_count
    first = index - line * block_count
    return line, first, min(block_count, first + stop - index)
