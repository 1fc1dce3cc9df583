"""Weights with a fixed share of zeros, such as 2:4: how the pattern is found, and how weights are made to have it."""

from __future__ import annotations

import attrs
import numpy as np

from dryfit.network.tensor import Array


@attrs.frozen
class SparsePattern:
    """At most `kept` values other than 0 in each aligned group of `group` neighbours along one axis.

    A last group that is not full counts as if zeros filled it up.

    Attributes:
        kept: how many of a group may be other than 0.
        group: how many neighbours make a group.
        axis: of the weights, along which the neighbours lie; 1 is the input channels of a convolution's `[K, C, R, S]`.

    Example:
        >>> pattern = SparsePattern(kept=2, group=4, axis=0)
        >>> pattern.dense_groups(np.array([1, 0, 0, 2, 3, 4, 5, 0]))
        1
        >>> pattern.pruned(np.array([1.0, -3.0, 2.0, -1.0]))
        array([ 0., -3.,  2.,  0.])
    """

    kept: int
    group: int
    axis: int = 1

    @property
    def text(self) -> str:
        """As people write it: `2:4`."""
        return f"{self.kept}:{self.group}"

    def groups(self, shape: tuple[int, ...]) -> int:
        """How many groups weights of a shape have."""
        extent = shape[self.axis]
        others = int(np.prod(shape, dtype=np.int64)) // max(extent, 1)
        return others * -(-extent // self.group)

    def dense_groups(self, values: Array) -> int:
        """How many groups have more values other than 0 than the pattern allows; 0 means that it holds."""
        counts = np.count_nonzero(self._grouped(values != 0), axis=self.axis + 1)
        return int(np.count_nonzero(counts > self.kept))

    def kept_places(self, magnitudes: Array) -> Array:
        """Which values of each group are kept: the largest; of equal ones those that stand first.

        Args:
            magnitudes: of the weights, at least 0.

        Returns:
            bool, in the shape of `magnitudes`.
        """
        grouped = self._grouped(magnitudes, absent=-1)
        along = self.axis + 1
        largest_first = np.argsort(-grouped, axis=along, kind="stable")
        first = np.take(largest_first, np.arange(self.kept), axis=along)
        places = np.zeros(grouped.shape, np.bool_)
        np.put_along_axis(places, first, True, axis=along)
        extents = list(magnitudes.shape)
        extents[self.axis] = -1
        return np.take(places.reshape(extents), np.arange(magnitudes.shape[self.axis]), axis=self.axis)

    def pruned(self, values: Array, magnitudes: Array | None = None, zero: Array | int = 0) -> Array:
        """A copy of weights of which only the largest of each group are left.

        Args:
            values: real numbers, or the integers of quantized ones.
            magnitudes: what is compared; None: the absolute values.
            zero: what stands for 0 among quantized values; broadcasts against `values`.
        """
        if magnitudes is None:
            wide = np.float64 if values.dtype == np.float64 else np.float32  # |-128| is no int8
            magnitudes = np.abs(values.astype(wide))
        return np.where(self.kept_places(magnitudes), values, np.asarray(zero, values.dtype))

    def _grouped(self, values: Array, absent: float = 0) -> Array:
        """The values with the axis split into (groups, members); what a last group lacks is `absent`."""
        extent = values.shape[self.axis]
        missing = -extent % self.group
        if missing:
            widths = [(0, missing if axis == self.axis else 0) for axis in range(values.ndim)]
            values = np.pad(values, widths, constant_values=absent)
        shape = values.shape
        return values.reshape((*shape[: self.axis], -1, self.group, *shape[self.axis + 1 :]))
