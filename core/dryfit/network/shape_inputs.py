"""Network inputs that carry dimensions: their contents must be known before shapes can be inferred."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.tensor import Tensor

_INDEX_TYPES = (DataType.INT32, DataType.INT64)


def reads_dimensions(layer: Layer, index: int) -> bool:
    """Return whether an input of a layer carries dimensions, so that shapes depend on its contents."""
    return index in layer.dimension_inputs


def feeds_dimensions(tensor: Tensor) -> bool:
    """Return whether dimensions depend on a tensor's contents, directly or through integer vectors.

    Only integers with at most one axis are followed: a data-dependent result, such as the number of selected boxes, is
    known only at run time and does not make its data a shape tensor.
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
            if layer.bodies:
                continue  # its results are known only at run time
            for output in layer.outputs:
                if id(output) not in seen:
                    seen.add(id(output))
                    waiting.append(output)
    return False


def _can_carry_dimensions(tensor: Tensor) -> bool:
    try:
        spec = tensor.spec
    except NetworkError:  # a network that is not finished: what its inputs are is known nevertheless
        if tensor.producer is not None:
            return False
        spec = tensor._stated  # noqa: SLF001  the network owns its tensors
    return spec.dtype in _INDEX_TYPES and len(spec.shape) <= 1
