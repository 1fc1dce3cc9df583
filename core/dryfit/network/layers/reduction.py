"""Reductions over axes, and cumulative operations along an axis."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import checked_axes
from dryfit.network.tensor import Tensor, TensorSpec


class ReduceOperation(enum.Enum):
    """TensorRT's `ReduceOperation`, except NONE, which applies to collectives between devices."""

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
        axes: bit mask with at least one bit set; bit i is axis i.
        keep_dims: whether reduced axes are kept, with extent 1.

    Source: TensorRT `IReduceLayer`.
    """

    op: ReduceOperation
    axes: int
    keep_dims: bool

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape without the reduced axes (or with 1 there), in the input's type."""
        x = self.required(inputs, 0)
        reduced = checked_axes(self, self.axes, x.rank)
        if x.dtype is DataType.BOOL and self.op not in (ReduceOperation.MAX, ReduceOperation.MIN):
            raise self.problem(f"{self.op.name} requires a numeric input", found="BOOL", remedy="Add a cast layer")
        if self.keep_dims:
            shape = tuple(1 if axis in reduced else extent for axis, extent in enumerate(x.shape))
        else:
            shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in reduced)
        return [TensorSpec(shape, x.dtype)]


class CumulativeOperation(enum.Enum):
    """TensorRT's `CumulativeOperation`; PROD is ONNX's and host only."""

    SUM = "sum"
    PROD = "prod"

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the operation."""
        return self is CumulativeOperation.PROD


@layer_kind("cumulative")
class Cumulative(Layer):
    """The cumulative sum (or product) along the axis given by input 1, an integer scalar.

    Attributes:
        op: SUM or PROD.
        exclusive: whether each element excludes itself; the first result is then 0 (or 1).
        reverse: whether the operation starts from the end.

    Source: TensorRT `ICumulativeLayer`; ONNX `CumSum`, `CumProd`.
    """

    needs_real_numbers = True

    op: CumulativeOperation = CumulativeOperation.SUM
    exclusive: bool = False
    reverse: bool = False

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the operation."""
        return self.op.is_host_only

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x, axis = self.required(inputs, 0), self.required(inputs, 1)
        if x.dtype is DataType.BOOL:
            raise self.problem("A cumulative layer requires a numeric input", found="BOOL", remedy="Add a cast layer")
        if not axis.dtype.is_integer or axis.shape not in ((), (1,), (-1,)):
            raise self.problem(
                "Input 1 (the axis) must be an integer scalar",
                found=f"{axis.dtype.text}{list(axis.shape)}",
                remedy="Connect a constant scalar of INT32 or INT64",
            )
        if axis.value is not None and not -x.rank <= int(axis.value.item()) < x.rank:
            raise self.problem(
                "The axis must be an axis of the input",
                found=int(axis.value.item()),
                allowed=f"{-x.rank} to {x.rank - 1}",
                remedy="Connect another axis",
            )
        return [TensorSpec(x.shape, x.dtype)]


class AddReduction:
    """The builder methods of reductions and running sums."""

    def add_reduce(self: LayerOwner, input: Tensor, op: ReduceOperation, axes: int, keep_dims: bool) -> Reduce:
        """Add a reduction over the axes of a bit mask; TensorRT's `add_reduce`."""
        return self.add_layer(Reduce(op=op, axes=axes, keep_dims=keep_dims), [input])

    def add_cumulative(
        self: LayerOwner, input: Tensor, axis: Tensor, op: CumulativeOperation, exclusive: bool, reverse: bool
    ) -> Cumulative:
        """Add a cumulative layer; TensorRT's `add_cumulative`. `axis` is a tensor with one integer."""
        return self.add_layer(Cumulative(op=op, exclusive=exclusive, reverse=reverse), [input, axis])
