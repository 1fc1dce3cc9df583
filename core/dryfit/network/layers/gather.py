"""Gather: elements, slices or sub-tensors picked by indices."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import check_axis, check_index_type, merged_extent
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
        mode: DEFAULT picks slices of `axis`; ELEMENT picks single elements, one for each index, along `axis`;
            ND picks the sub-tensors that the vectors on the last axis of the indices point to.
        axis: for DEFAULT and ELEMENT, counted from 0.
        num_elementwise_dims: leading axes that data and indices share (batch axes), for DEFAULT and ND.

    Source: TensorRT `IGatherLayer`; ONNX `Gather`, `GatherElements`, `GatherND`.
    """

    mode: GatherMode = GatherMode.DEFAULT
    axis: int = 0
    num_elementwise_dims: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The shape of the picked elements, of the data's type."""
        data, indices = self.required(inputs, 0), self.required(inputs, 1)
        check_index_type(self, indices, "The indices")
        shapes = {GatherMode.DEFAULT: self._slices, GatherMode.ELEMENT: self._elements, GatherMode.ND: self._tensors}
        return [TensorSpec(shapes[self.mode](data.shape, indices.shape), data.dtype)]

    def _slices(self, data: Shape, indices: Shape) -> Shape:
        check_axis(self, self.axis, len(data))
        shared = self._shared(data, indices)
        if self.axis < len(shared):
            raise self.problem(
                "`axis` comes after the elementwise dimensions", found=self.axis, allowed=f"at least {len(shared)}"
            )
        return (*shared, *data[len(shared) : self.axis], *indices[len(shared) :], *data[self.axis + 1 :])

    def _elements(self, data: Shape, indices: Shape) -> Shape:
        check_axis(self, self.axis, len(data))
        if len(data) != len(indices):
            raise self.problem("Data and indices have equal ranks", found=f"{data} and {indices}")
        if self.num_elementwise_dims:
            raise self.problem("The mode ELEMENT has no elementwise dimensions", found=self.num_elementwise_dims)
        for axis, (extent, count) in enumerate(zip(data, indices, strict=True)):
            if axis != self.axis and -1 not in (extent, count) and count > extent:
                raise self.problem(
                    f"The indices reach past axis {axis} of the data", found=f"{indices} into {data}", is_mendable=True
                )
        return indices

    def _tensors(self, data: Shape, indices: Shape) -> Shape:
        shared = self._shared(data, indices)
        if len(indices) <= len(shared) or indices[-1] < 0:
            raise self.problem("The last axis of the indices has a known extent", found=indices)
        used = len(shared) + indices[-1]
        if used > len(data):
            raise self.problem(
                "An index vector has at most one element an axis of the data",
                found=f"{indices[-1]} elements for {data}",
                allowed=f"0 to {len(data) - len(shared)}",
            )
        return (*shared, *indices[len(shared) : -1], *data[used:])

    def _shared(self, data: Shape, indices: Shape) -> Shape:
        count = self.num_elementwise_dims
        if not 0 <= count <= min(len(data), len(indices)):
            raise self.problem(
                "`num_elementwise_dims` counts axes of data and indices",
                found=count,
                allowed=f"0 to {min(len(data), len(indices))}",
            )
        return tuple(
            merged_extent(self, data[axis], indices[axis], f"The extents of elementwise axis {axis}")
            for axis in range(count)
        )


class AddGather:
    """The builder methods of gathers."""

    def add_gather(self: LayerOwner, input: Tensor, indices: Tensor, axis: int) -> Gather:
        """Add a gather of slices of one axis; TensorRT's `add_gather`."""
        return self.add_layer(Gather(axis=axis), [input, indices])

    def add_gather_v2(self: LayerOwner, input: Tensor, indices: Tensor, mode: GatherMode) -> Gather:
        """Add a gather; TensorRT's `add_gather_v2`. Set `axis` and `num_elementwise_dims` on the layer."""
        return self.add_layer(Gather(mode=mode), [input, indices], is_finished=False)
