"""Indexing layers: gather, scatter, one-hot and non-zero."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import (
    INDEX_TYPES,
    check_axis,
    check_index_type,
    check_same_types,
    known_ints,
    merged_extent,
    normalized_axes,
)
from dryfit.network.tensor import Shape, Tensor, TensorSpec


class GatherMode(enum.Enum):
    """TensorRT's `GatherMode`: ONNX `Gather`, `GatherElements` and `GatherND`."""

    DEFAULT = "default"
    ELEMENT = "element"
    ND = "nd"


@layer_kind("gather")
class Gather(Layer):
    """Elements of `data` (input 0) at `indices` (input 1). A negative index counts from the end.

    Attributes:
        mode: DEFAULT gathers slices of `axis`; ELEMENT gathers single elements, one per index, along `axis`; ND gathers
            the sub-tensors addressed by the vectors on the last axis of the indices.
        axis: axis for DEFAULT and ELEMENT, counted from 0.
        num_elementwise_dims: number of leading batch axes that data and indices share, for DEFAULT and ND.

    Source: TensorRT `IGatherLayer`; ONNX `Gather`, `GatherElements`, `GatherND`.
    """

    mode: GatherMode = GatherMode.DEFAULT
    axis: int = 0
    num_elementwise_dims: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape of the gathered elements, with the type of the data."""
        data, indices = self.required(inputs, 0), self.required(inputs, 1)
        check_index_type(self, indices, "The indices")
        shapes = {GatherMode.DEFAULT: self._slices, GatherMode.ELEMENT: self._elements, GatherMode.ND: self._tensors}
        return [TensorSpec(shapes[self.mode](data.shape, indices.shape), data.dtype)]

    def _slices(self, data: Shape, indices: Shape) -> Shape:
        check_axis(self, self.axis, len(data))
        shared = self._shared(data, indices)
        if self.axis < len(shared):
            raise self.problem(
                "`axis` must come after the elementwise dimensions",
                found=self.axis,
                allowed=f"{len(shared)} or more",
                remedy="Set `axis`, or lower `num_elementwise_dims`",
            )
        return (*shared, *data[len(shared) : self.axis], *indices[len(shared) :], *data[self.axis + 1 :])

    def _elements(self, data: Shape, indices: Shape) -> Shape:
        check_axis(self, self.axis, len(data))
        if len(data) != len(indices):
            raise self.problem(
                "Data and indices must have the same rank",
                found=f"{data} and {indices}",
                remedy="Add a shuffle layer that reshapes one of them",
            )
        if self.num_elementwise_dims:
            raise self.problem(
                "`num_elementwise_dims` must be 0 in mode ELEMENT",
                found=self.num_elementwise_dims,
                remedy="Set `num_elementwise_dims` to 0",
            )
        for axis, (extent, count) in enumerate(zip(data, indices, strict=True)):
            if axis != self.axis and -1 not in (extent, count) and count > extent:
                raise self.problem(
                    f"The indices must not be larger than the data along axis {axis}",
                    found=f"{indices} into {data}",
                    is_mendable=True,
                    remedy="Slice the indices",
                )
        return indices

    def _tensors(self, data: Shape, indices: Shape) -> Shape:
        shared = self._shared(data, indices)
        if len(indices) <= len(shared) or indices[-1] < 0:
            raise self.problem(
                "The last dimension of the indices must be static",
                found=indices,
                remedy="Use indices of a fixed shape",
            )
        used = len(shared) + indices[-1]
        if used > len(data):
            raise self.problem(
                "An index vector must have at most one element per axis of the data",
                found=f"{indices[-1]} elements for {data}",
                allowed=f"0 to {len(data) - len(shared)}",
                remedy="Shorten the last axis of the indices",
            )
        return (*shared, *indices[len(shared) : -1], *data[used:])

    def _shared(self, data: Shape, indices: Shape) -> Shape:
        count = self.num_elementwise_dims
        if not 0 <= count <= min(len(data), len(indices)):
            raise self.problem(
                "`num_elementwise_dims` must not exceed the rank of data or indices",
                found=count,
                allowed=f"0 to {min(len(data), len(indices))}",
                remedy="Set `num_elementwise_dims`",
            )
        return tuple(
            merged_extent(
                self, data[axis], indices[axis], f"The extents of data and indices along elementwise axis {axis}"
            )
            for axis in range(count)
        )


class ScatterMode(enum.Enum):
    """TensorRT's `ScatterMode`: ONNX `ScatterElements` and `ScatterND`."""

    ELEMENT = "element"
    ND = "nd"


class ScatterReduction(enum.Enum):
    """How an update combines with the existing value: ONNX's `reduction`. TensorRT supports NONE only."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"


@layer_kind("scatter")
class Scatter(Layer):
    """A copy of `data` (input 0) with `updates` (input 2) at `indices` (input 1). A negative index counts from the end.

    Attributes:
        mode: ELEMENT writes each update at its own position, with `axis` replaced by the index; ND writes sub-tensors
            at the positions addressed by the vectors on the last axis of the indices.
        axis: axis for ELEMENT, counted from 0.
        reduction: NONE replaces, and the last update of a position wins; the others combine all updates (host only).

    Source: TensorRT `IScatterLayer`; ONNX `ScatterElements`, `ScatterND`.
    """

    inputs_of_one_type = (0, 2)

    mode: ScatterMode
    axis: int = 0
    reduction: ScatterReduction = ScatterReduction.NONE

    @property
    def is_host_only(self) -> bool:
        """Whether no device supports this form of the layer."""
        return self.reduction is not ScatterReduction.NONE

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the data's shape and type."""
        data, indices, updates = (self.required(inputs, index) for index in range(3))
        check_index_type(self, indices, "The indices")
        check_same_types(self, data, updates)
        if self.mode is ScatterMode.ELEMENT:
            check_axis(self, self.axis, data.rank)
            expected = indices.shape
            if indices.rank != data.rank:
                raise self.problem(
                    "Data and indices must have the same rank",
                    found=f"{data.shape} and {indices.shape}",
                    remedy="Add a shuffle layer that reshapes one of them",
                )
        else:
            width = indices.shape[-1] if indices.rank else -1
            if not 0 <= width <= data.rank:
                raise self.problem(
                    "An index vector must have at most one element per axis of the data",
                    found=f"indices of {indices.shape} for {data.shape}",
                    allowed=f"0 to {data.rank} on the last axis",
                    remedy="Shorten the last axis of the indices",
                )
            expected = (*indices.shape[:-1], *data.shape[width:])
        if updates.rank != len(expected):
            raise self.problem(
                "The shape of the updates must match data and indices",
                found=updates.shape,
                allowed=expected,
                remedy="Reshape the updates",
            )
        for axis, (extent, other) in enumerate(zip(updates.shape, expected, strict=True)):
            merged_extent(self, extent, other, f"The extents of axis {axis} of updates and indices")
        return [TensorSpec(data.shape, data.dtype)]


@layer_kind("one_hot")
class OneHot(Layer):
    """A new axis of extent `depth` with the value `on` at the index and `off` elsewhere.

    Inputs: 0 the indices, 1 the values `[off, on]`, 2 the depth, a scalar. A negative index counts from the end; an
    index out of range sets all values to `off`.

    Attributes:
        axis: position of the new axis in the output; a negative value counts from the end.

    Source: TensorRT `IOneHotLayer`; ONNX `OneHot`.
    """

    axis: int = -1

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape of the indices with the new axis, with the type of the values."""
        indices, values, depth = (self.required(inputs, index) for index in range(3))
        check_index_type(self, indices, "The indices")
        check_index_type(self, depth, "The depth")
        if values.shape not in ((2,), (-1,)):
            raise self.problem(
                "The values input must have two elements: off and on",
                found=values.shape,
                remedy="Connect a tensor of shape (2,)",
            )
        if depth.shape not in ((), (1,)):
            raise self.problem(
                "The depth must be a scalar", found=depth.shape, remedy="Add a shuffle layer that reshapes it to ()"
            )
        known = known_ints(depth)
        if known is not None and known[0] < 1:
            raise self.problem("The depth must be at least 1", found=known[0], remedy="Connect another depth")
        (axis,) = normalized_axes(self, (self.axis,), indices.rank + 1)
        shape = list(indices.shape)
        shape.insert(axis, -1 if known is None else known[0])
        return [TensorSpec(tuple(shape), values.dtype)]


@layer_kind("non_zero")
class NonZero(Layer):
    """Indices of the non-zero elements, in row-major order: `[rank, count]` with a dynamic count.

    Attributes:
        indices_type: type of the output, INT32 or INT64.

    Source: TensorRT `INonZeroLayer`; ONNX `NonZero`.
    """

    indices_type: DataType = DataType.INT32

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `[rank, -1]`: the number of indices depends on the data."""
        if self.indices_type not in INDEX_TYPES:
            raise self.problem(
                "`indices_type` must be INT32 or INT64",
                found=self.indices_type.text,
                remedy="Set `indices_type` to INT32 or INT64",
            )
        return [TensorSpec((self.required(inputs, 0).rank, -1), self.indices_type)]

    def largest_outputs(self, inputs: Inputs, outputs: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
        """Return one index per element of the input."""
        x = self.required(inputs, 0)
        return [TensorSpec((x.rank, math.prod(x.shape)), self.indices_type)] if x.is_static else outputs


class AddIndexing:
    """The builder methods of layers on indices."""

    def add_gather(self: LayerOwner, input: Tensor, indices: Tensor, axis: int) -> Gather:
        """Add a layer that gathers slices of one axis; TensorRT's `add_gather`."""
        return self.add_layer(Gather(axis=axis), [input, indices])

    def add_gather_v2(self: LayerOwner, input: Tensor, indices: Tensor, mode: GatherMode) -> Gather:
        """Add a gather layer; TensorRT's `add_gather_v2`. Set `axis` and `num_elementwise_dims` on the layer."""
        return self.add_layer(Gather(mode=mode), [input, indices], is_finished=False)

    def add_scatter(self: LayerOwner, data: Tensor, indices: Tensor, updates: Tensor, mode: ScatterMode) -> Scatter:
        """Add a scatter layer; TensorRT's `add_scatter`. Set `axis` on the layer."""
        return self.add_layer(Scatter(mode=mode), [data, indices, updates])

    def add_one_hot(self: LayerOwner, indices: Tensor, values: Tensor, depth: Tensor, axis: int) -> OneHot:
        """Add a one-hot layer; TensorRT's `add_one_hot`."""
        return self.add_layer(OneHot(axis=axis), [indices, values, depth])

    def add_non_zero(self: LayerOwner, input: Tensor, indices_type: DataType = DataType.INT32) -> NonZero:
        """Add a non-zero layer; TensorRT's `add_non_zero`."""
        return self.add_layer(NonZero(indices_type=indices_type), [input])
