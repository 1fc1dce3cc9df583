"""The axes of a reduction as native functions walk them: some are kept, the others are runs of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.copying import joined_axes
from dryfit_cpu.kernels.operands import require_extents

_KEPT_AXES = 3


@attrs.frozen(eq=False)
class ReducedAxes:
    """How arrays of one shape are walked, the first array first.

    Attributes:
        bases: addresses of the arrays, once for each index of the axes beyond three that are kept.
        extents: of the last three kept axes.
        strides: bytes along them, of each array.
        places: byte offsets int64[places, arrays] of the runs.
        run: elements in a run.
        run_strides: bytes along a run, of each array.
        is_across: whether a vector lies along the last kept axis, rather than along a run.
    """

    bases: Sequence[Sequence[int]]
    extents: Sequence[int]
    strides: Sequence[Sequence[int]]
    places: Array
    run: int
    run_strides: Sequence[int]
    is_across: bool

    def fields(self, base: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Addresses and strides by the names of the arrays; those of the first have no prefix."""
        for number, name in enumerate(names):
            prefix = f"{name}_" if number else ""
            yield name, base[number]
            yield f"{prefix}run_stride", self.run_strides[number]
            for axis, strides in enumerate(self.strides):
                yield f"{prefix}stride{axis}", strides[number]

    @classmethod
    def of(cls, arrays: Sequence[Array], reduced: Sequence[int]) -> ReducedAxes:
        """The walk over arrays of one shape, of which these axes are reduced.

        Axes that all arrays step over evenly are joined.
        """
        for array in arrays:
            require_extents(array.shape, arrays[0].shape, "operand of a reduction")
        kept = joined_axes([_along(array, set(range(array.ndim)) - set(reduced)) for array in arrays])
        *outer, (run, run_strides) = joined_axes([_along(array, set(reduced)) for array in arrays])
        bases = [
            [array.ctypes.data + _offset(index, kept[:-_KEPT_AXES], number) for number, array in enumerate(arrays)]
            for index in np.ndindex(*(extent for extent, _ in kept[:-_KEPT_AXES]))
        ]
        inner = [(1, [0] * len(arrays))] * (_KEPT_AXES - len(kept)) + kept[-_KEPT_AXES:]
        places = [
            [_offset(index, outer, number) for number in range(len(arrays))]
            for index in np.ndindex(*(extent for extent, _ in outer))
        ]
        last, last_strides = inner[-1]
        is_across = last > 1 and (abs(last_strides[0]) < abs(run_strides[0]) or 2 * run <= current_tier().lanes < last)
        return cls(
            bases=bases,
            extents=[extent for extent, _ in inner],
            strides=[strides for _, strides in inner],
            places=np.array(places, np.int64).reshape(-1, len(arrays)),
            run=run,
            run_strides=run_strides,
            is_across=is_across,
        )


def _along(array: Array, axes: set[int]) -> Array:
    """The array's first elements along some axes."""
    chosen = sorted(axes)
    shape, strides = ([whole[axis] for axis in chosen] for whole in (array.shape, array.strides))
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _offset(index: Sequence[int], axes: Sequence[tuple[int, Sequence[int]]], number: int) -> int:
    return sum(i * strides[number] for i, (_, strides) in zip(index, axes, strict=True))
