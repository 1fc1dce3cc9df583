"""The axes of a reduction as native functions walk them: some are kept, the others are runs of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import Elements, Extents
from dryfit_cpu.kernels.copying import joined_axes
from dryfit_cpu.kernels.operands import element_code, require_extents

_KEPT_AXES = 3


@attrs.frozen(eq=False)
class ReducedAxes:
    """How arrays of one shape are walked, the first array first.

    Attributes:
        kinds: element codes of the arrays.
        bases: addresses of the arrays, once for each index of the axes beyond three that are kept.
        extents: of the last three kept axes, and of a run.
        strides: bytes along these, of each array.
        places: byte offsets int64[places, arrays] of the runs.
        is_across: whether a vector lies along the last kept axis, rather than along a run.
    """

    kinds: Sequence[int]
    bases: Sequence[Sequence[int]]
    extents: Extents
    strides: Sequence[Sequence[int]]
    places: Array
    is_across: bool

    @property
    def most_chunks(self) -> int:
        """How many results there are to share: a result is never cut."""
        return max(1, math.prod(self.extents[:_KEPT_AXES]))

    def elements(self, base: Sequence[int]) -> list[Elements]:
        """What native functions are told about the arrays that begin at these addresses."""
        return [
            Elements(address, self.kinds[number], *(strides[number] for strides in self.strides))
            for number, address in enumerate(base)
        ]

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
        axes = [*inner, (run, run_strides)]
        last, last_strides = inner[-1]
        is_across = last > 1 and (abs(last_strides[0]) < abs(run_strides[0]) or 2 * run <= current_tier().lanes < last)
        return cls(
            kinds=[element_code(array) for array in arrays],
            bases=bases,
            extents=Extents(*(extent for extent, _ in axes)),
            strides=[strides for _, strides in axes],
            places=np.array(places, np.int64).reshape(-1, len(arrays)),
            is_across=is_across,
        )


def _along(array: Array, axes: set[int]) -> Array:
    """The array's first elements along some axes."""
    chosen = sorted(axes)
    shape, strides = ([whole[axis] for axis in chosen] for whole in (array.shape, array.strides))
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _offset(index: Sequence[int], axes: Sequence[tuple[int, Sequence[int]]], number: int) -> int:
    return sum(i * strides[number] for i, (_, strides) in zip(index, axes, strict=True))
