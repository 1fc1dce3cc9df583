"""What register blocks are told: rows of the tables of tiles and panels, and what is the same for many blocks.

That is written to memory once. A block then takes a few addresses, and reads what it needs where it needs it. Handing
over some thirty arguments for each block took longer than the products of the shortest blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types

from dryfit.attrs_classes import frozen
from dryfit_cpu.compiler import emit
from dryfit_cpu.compiler.emit import BYTE, FLOAT, INT, WORD, Builder, Loop, Value, load, offset, store
from dryfit_cpu.compiler.tier import current_tier

_TURNS_INSIDE = current_tier().lanes == 8
"""Whether the loop over blocks is in the function that computes one, which spares calls: with AVX2, MobileNetV2 INT8
takes 3 % less time. With registers of other lengths LLVM then writes sums to the stack in the loop over words."""

TILE_INPUTS, TILE_OUTPUTS, TILE_RESIDUALS = (0, 8), (16, 24), (32, 40)
PANEL_WEIGHTS, PANEL_START, PANEL_INPUT, PANEL_OUTPUT, PANEL_RESIDUAL, PANEL_WIDTH = 0, 8, 16, 24, 32, 40
"""Bytes at which a tile's and a panel's row have what a block reads of them."""


def places(builder: Builder, base: Value, panel: tuple[Value, int], tile: tuple[Value, Sequence[int]]) -> list[Value]:
    """The addresses of the first pixel of each run, from offsets in rows of the tables."""
    base = builder.add(base, load(builder, WORD, offset(builder, *panel), 8))
    return [builder.add(base, load(builder, WORD, offset(builder, tile[0], at), 8)) for at in tile[1]]


@frozen
class HeldArguments:
    """The arguments that are the same for many blocks.

    Attributes:
        words: names of integers, in the order in which they lie.
        numbers: names of FP32 numbers, which follow.
    """

    words: tuple[str, ...]
    numbers: tuple[str, ...]

    @property
    def types(self) -> list[Any]:
        """Numba's types of the arguments."""
        return [types.int64] * len(self.words) + [types.float32] * len(self.numbers)

    @property
    def size(self) -> int:
        """Bytes that they take, to the end of a cache line."""
        return (8 * len(self.types) + 63) // 64 * 64

    def write(self, builder: Builder, arguments: Sequence[Value], more_bytes: int = 0) -> Value:
        """Where the arguments lie, in the function's own memory, with room for more behind them."""
        with builder.goto_entry_block():
            memory = builder.alloca(BYTE, size=ir.Constant(INT, self.size + more_bytes))
            memory.align = 64
        address = builder.ptrtoint(memory, WORD)
        for index, value in enumerate(arguments):
            store(builder, value, offset(builder, address, 8 * index), 8)
        return address


class Held:
    """Reads held arguments by their names."""

    def __init__(self, builder: Builder, arguments: HeldArguments, address: Value) -> None:
        self._builder, self._arguments, self._address = builder, arguments, address
        self.behind = offset(builder, address, arguments.size)

    def __getitem__(self, name: str) -> Value:
        words, numbers = self._arguments.words, self._arguments.numbers
        kind, index = (WORD, words.index(name)) if name in words else (FLOAT, len(words) + numbers.index(name))
        return load(self._builder, kind, offset(self._builder, self._address, 8 * index), 4)


def blocks_operation(
    name: str, moving: int, fixed: int, block: Callable[..., None], moved: Callable[..., Sequence[Value]]
) -> Any:
    """An operation that computes so many blocks: (count, moving arguments of the first one, fixed arguments).

    `block(builder, *moving, *fixed)` computes one, and `moved` gives the moving arguments of the next one. All are
    integers.
    """
    whole = name if _TURNS_INSIDE else name.replace("block", "blocks")

    @emit.outlined_operation(whole, *[types.int64] * (1 + moving + fixed))
    def blocks(builder: Builder, count: Value, *arguments: Value) -> None:
        turn = Loop(builder, count, arguments[:moving])
        one = (*turn.values, *arguments[moving:])
        if _TURNS_INSIDE:
            block(builder, *one)
        else:
            emit.outlined(builder, name, one, block)
        turn.finish(moved(builder, *one))

    return blocks
