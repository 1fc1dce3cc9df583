"""What flows between ONNX nodes during an import: a known array, or a tensor of the growing network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape, Tensor, TensorSpec

Array = np.ndarray[Any, Any]
LARGEST_SHAPE_RANK = 64
"""A longer vector of integers is no list of extents: numpy arrays have at most this many axes."""
Extent = int | tuple[str, int] | None
"""One element of a shape computation: a number, the (tensor, axis) whose extent it is, or None where unknown."""


@attrs.define(eq=False)
class Operand:
    """One ONNX value.

    Attributes:
        name: its name in the model.
        spec: shape, type, and the contents where they are known.
        tensor: the network's tensor; None for a known array that no layer has needed yet.
        extents: the elements of a one-axis integer value as far as they are known, where `spec.value` is not.
    """

    name: str
    spec: TensorSpec
    tensor: Tensor | None = None
    extents: tuple[Extent, ...] | None = None

    @classmethod
    def known(cls, name: str, value: Array) -> Operand:
        """An operand whose contents are known."""
        return cls(name, TensorSpec.of(value))

    @property
    def value(self) -> Array | None:
        """The contents, or None."""
        return self.spec.value

    @property
    def shape(self) -> Shape:
        """Extents; -1 where dynamic."""
        return self.spec.shape

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.spec.shape)

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self.spec.dtype

    @property
    def is_known(self) -> bool:
        """Whether the contents are known."""
        return self.spec.value is not None

    def known_extents(self) -> tuple[Extent, ...] | None:
        """The elements as a shape computation sees them; None where nothing is known, or this is no list of extents."""
        if self.dtype not in (DataType.INT32, DataType.INT64) or self.rank > 1:
            return None
        if self.spec.value is not None and self.spec.value.size <= LARGEST_SHAPE_RANK:
            return tuple(int(element) for element in self.spec.value.reshape(-1))
        return self.extents


def specs_of(operands: Sequence[Operand | None]) -> list[TensorSpec | None]:
    """The specs of a layer's inputs."""
    return [None if operand is None else operand.spec for operand in operands]


def values_of(operands: Sequence[Operand | None]) -> list[Array | None]:
    """The contents of a layer's inputs, None where absent or not known."""
    return [None if operand is None else operand.value for operand in operands]
