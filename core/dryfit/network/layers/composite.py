"""Layers that other layers compute: kinds that TensorRT has as one, and that devices run as products, sums and copies.

A composite kind has a reference like any other. In a build, `dryfit.passes.decompose` puts its parts in its place, so
that each device places and fuses what it supports.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer, define_layer
from dryfit.network.layers.generators import Constant, Fill, FillOperation, ShapeLayer
from dryfit.network.layers.slice import Shuffle, Slice
from dryfit.network.tensor import Tensor


@define_layer
class CompositeLayer(Layer):
    """A layer that a build decomposes into layers of other kinds."""

    @abc.abstractmethod
    def decompose(self, parts: Parts) -> Sequence[Tensor]:
        """Add the layers that compute this one, and return the tensors that take the place of its outputs.

        The layer stays connected; the caller removes it. Each returned tensor must be the output of an added layer.
        """


class Parts:
    """Adds the parts of a composite layer to its network.

    Each part is named after the layer, as in `attention [scores]`; a part named "" takes the layer's own name when the
    layer is removed.

    Args:
        layer: layer of a network.

    Attributes:
        added: layers that were added, by the name of the part.
    """

    def __init__(self, layer: CompositeLayer) -> None:
        self._layer = layer
        self.added: list[tuple[str, Layer]] = []

    def add(self, part: str, layer: Layer, *inputs: Tensor | None) -> Tensor:
        """Add a layer and return its first output."""
        layer.name = f"{self._layer.name} [{part or 'result'}]"
        network = self._layer.network
        output: Tensor = network.add_layer(layer, list(inputs)).outputs[0]
        network.rename_tensor(output, network.free_tensor_name(layer.name))
        self.added.append((part, layer))
        return output

    def constant(self, part: str, values: np.ndarray[Any, Any]) -> Tensor:
        """Add a constant."""
        return self.add(part, Constant(shape=values.shape, weights=values))

    def scalar(self, part: str, value: float, like: Tensor) -> Tensor:
        """Add a constant with one element that broadcasts to a tensor, in its type."""
        return self.constant(part, np.full((1,) * len(like.shape), value).astype(like.dtype.numpy))

    def reshape(self, part: str, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        """Add a reshape; 0 copies the extent of the same axis, -1 is inferred."""
        return self.add(part, Shuffle(reshape_dims=tuple(dims)), tensor)

    def extents(self, part: str, tensor: Tensor) -> Tensor:
        """Return the extents of a tensor as an INT64 vector: a constant if they are static."""
        if tensor.spec.is_static:
            return self.constant(part, np.asarray(tensor.shape, np.int64))
        return self.add(part, ShapeLayer(), tensor)

    def elements(self, part: str, vector: Tensor, start: int, count: int) -> Tensor:
        """Return some elements of a vector."""
        return self.add(part, Slice(start=(start,), shape=(count,), stride=(1,)), vector)

    def positions(self, part: str, shape: Tensor, axis: int, dtype: DataType) -> Tensor:
        """Return a tensor of a shape, given as a vector, whose elements are their indices along an axis."""
        steps = np.zeros(shape.shape[0], dtype.numpy)
        steps[axis] = 1
        fill = Fill(operation=FillOperation.LINSPACE, to_type=dtype, alpha=0)
        return self.add(part, fill, shape, None, self.constant(f"{part}, steps", steps))
