"""The types, formats and tactics that `autotune` returns, and what `aot_impl` would hand to a kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dryfit_tensorrt.behaviour.plugin_faces import LINEAR
from dryfit_tensorrt.behaviour.quick_tensors import Quick, ShapeExpr

_TYPE_NAMES = {"FP32": "FLOAT", "FP16": "HALF"}
Combination = tuple[tuple[str, ...], tuple[str, ...]]


class AutoTuneCombination(Quick):
    """Types and formats that a plugin supports, and tactics for them.

    Args:
        io_types: types of each input and output, `FP32|FP16, FP32|FP16`. `|` joins alternatives that all positions
            choose together, `*` alternatives of one position.
        layouts: formats in the same form; one for all positions.
        tactics: numbers above 0 of ways to compute.
    """

    def __init__(self, io_types: str | None = None, layouts: str | None = None, tactics: Any = None) -> None:
        self.io_types: list[Any] = [] if io_types is None else [one.strip() for one in io_types.split(",")]
        self.layouts: list[Any] = [] if io_types is None else [one.strip() for one in (layouts or LINEAR).split(",")]
        if len(self.layouts) == 1:
            self.layouts *= len(self.io_types)
        if len(self.layouts) != len(self.io_types):
            raise ValueError(
                f"AutoTuneCombination has {len(self.io_types)} types and {len(self.layouts)} layouts: pass one layout, "
                "or one for each type"
            )
        self._tactics = tactics

    def pos(self, pos: Any, io_types: str, layouts: str = LINEAR) -> None:
        """Set types and formats of some positions.

        Raises:
            ValueError: They are set already.
        """
        places = [pos] if isinstance(pos, int) else list(pos)
        missing = max(places) + 1 - len(self.io_types)
        self.io_types.extend([None] * missing)
        self.layouts.extend([None] * missing)
        for place in places:
            if self.io_types[place] is not None:
                raise ValueError(f"The types of position {place} are set already")
            self.io_types[place], self.layouts[place] = io_types, layouts

    def tactics(self, tactics: Any) -> None:
        """Set the tactics."""
        self._tactics = tactics

    def _combinations(self) -> list[tuple[Combination, tuple[int, ...]]]:
        """Each combination of names of types and formats, with its tactics."""
        if None in self.io_types:
            raise ValueError(f"Position {self.io_types.index(None)} of the AutoTuneCombination has no types")
        types = [tuple(_TYPE_NAMES.get(one, one) for one in chosen) for chosen in _chosen(self.io_types)]
        tactics = tuple(int(one) for one in self._tactics or ())
        return [((chosen, layouts), tactics) for chosen in types for layouts in _chosen(self.layouts)]


def _chosen(variants: Sequence[str]) -> list[tuple[str, ...]]:
    """Every choice among variants such as `A|B` (all positions choose together) and `A*B` (each for itself)."""
    together = {len(one.split("|")) for one in variants if "|" in one}
    if len(together) > 1 or any("|" in one and "*" in one for one in variants):
        raise ValueError(f"The alternatives {', '.join(variants)} must be equally many, and use either | or *")
    found: list[tuple[str, ...]] = []
    for place in range(max(together, default=1)):
        options = [
            [one.split("|")[place]] if "|" in one else one.split("*") if "*" in one else [one] for one in variants
        ]
        found.extend(itertools.product(*([name.strip() for name in names] for names in options)))
    return found


# What a kernel that is compiled ahead of time would get ---------------------------------------------------------------


class SymExpr(Quick):
    """A number that is known when a kernel starts."""

    def __init__(self, value: Any = None) -> None:
        self.expr = value if isinstance(value, ShapeExpr) else self._own.ShapeExpr(value)


class SymInt32(SymExpr):
    """A 32-bit integer."""

    bits = 32


class SymInt16(SymExpr):
    """A 16-bit integer."""

    bits = 16


class SymInt8(SymExpr):
    """An 8-bit integer."""

    bits = 8


class SymExprs(Quick):
    """The scalars that a kernel gets."""

    def __init__(self, length: int) -> None:
        self._held: list[Any] = [None] * length

    @classmethod
    def from_tuple(cls, sym_exprs: Iterable[Any]) -> Any:
        """Return the scalars of a sequence."""
        held = list(sym_exprs)
        made = cls(len(held))
        made._held = held
        return made

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held)

    def __getitem__(self, index: int) -> Any:
        return self._held[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._held[index] = value


class SymIntExprs(SymExprs):
    """The integers that a kernel gets."""


class KernelLaunchParams(Quick):
    """How a kernel is started."""

    def __init__(
        self,
        grid_x: Any = None,
        grid_y: Any = None,
        grid_z: Any = None,
        block_x: Any = None,
        block_y: Any = None,
        block_z: Any = None,
        shared_mem: Any = None,
    ) -> None:
        self.grid_x, self.grid_y, self.grid_z = grid_x or 1, grid_y or 1, grid_z or 1
        self.block_x, self.block_y, self.block_z = block_x or 1, block_y or 1, block_z or 1
        self.shared_mem = shared_mem or 0


CLASSES = (*(AutoTuneCombination, SymExpr, SymInt8, SymInt16, SymInt32, SymExprs, SymIntExprs, KernelLaunchParams),)
