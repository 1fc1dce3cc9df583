"""Which network inputs carry dimensions: their contents have to be known before shapes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.tensor import Tensor

_INDEX_TYPES = (DataType.INT32, DataType.INT64)


def reads_dimensions(layer: Layer, index: int) -> bool:
    """Whether an input of a layer carries dimensions, so that shapes follow from its contents."""
    return index in layer.dimension_inputs


def feeds_dimensions(tensor: Tensor) -> bool:
    """Whether dimensions follow from a tensor's contents, at once or through computations with integer vectors.

    Only integers of at most one axis count on the way: what a layer finds in data, such as the number of boxes that are
    left, is known at run time only and makes no shape tensor of the data.
    """
    waiting, seen = [tensor], {id(tensor)}
    while waiting:
        current = waiting.pop()
        if not _can_carry_dimensions(current):
            continue
        for layer, index in current.consumers:
            if reads_dimensions(layer, index):
                return True
            if layer.kind == "shape":
                continue  # it looks at the shape, never at the contents
            for output in layer.outputs:
                if id(output) not in seen:
                    seen.add(id(output))
                    waiting.append(output)
    return False


def _can_carry_dimensions(tensor: Tensor) -> bool:
    return tensor.dtype in _INDEX_TYPES and len(tensor.shape) <= 1
