"""Reduce: one value of all the elements along some axes."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import checked_axes
from dryfit.network.tensor import Tensor, TensorSpec


class ReduceOperation(enum.Enum):
    """TensorRT's `ReduceOperation`, without NONE, which belongs to collectives between devices."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    AVG = "avg"


@layer_kind("reduce")
class Reduce(Layer):
    """`op` over the axes of a bit mask.

    Attributes:
        op: the operation.
        axes: bit i is axis i; at least one.
        keep_dims: reduced axes stay, with extent 1.

    Source: TensorRT `IReduceLayer`.
    """

    op: ReduceOperation
    axes: int
    keep_dims: bool

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape without the reduced axes (or with 1 there), of the input's type."""
        x = self.required(inputs, 0)
        reduced = checked_axes(self, self.axes, x.rank)
        if x.dtype is DataType.BOOL and self.op not in (ReduceOperation.MAX, ReduceOperation.MIN):
            raise self.problem(f"{self.op.name} takes numbers", found="BOOL", remedy="Add a cast layer")
        if self.keep_dims:
            shape = tuple(1 if axis in reduced else extent for axis, extent in enumerate(x.shape))
        else:
            shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in reduced)
        return [TensorSpec(shape, x.dtype)]


class AddReduce:
    """The builder method of reduce layers."""

    def add_reduce(self: LayerOwner, input: Tensor, op: ReduceOperation, axes: int, keep_dims: bool) -> Reduce:
        """Add a reduction over the axes of a bit mask; TensorRT's `add_reduce`."""
        return self.add_layer(Reduce(op=op, axes=axes, keep_dims=keep_dims), [input])
