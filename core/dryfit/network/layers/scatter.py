"""Scatter: a copy of a tensor with elements or sub-tensors replaced at indices."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import check_axis, check_index_type, check_same_types, merged_extent
from dryfit.network.tensor import Tensor, TensorSpec


class ScatterMode(enum.Enum):
    """TensorRT's `ScatterMode`: ONNX `ScatterElements` and `ScatterND`."""

    ELEMENT = "element"
    ND = "nd"


class ScatterReduction(enum.Enum):
    """How an update meets what is there: ONNX's `reduction`. TensorRT has NONE only."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"


@layer_kind("scatter")
class Scatter(Layer):
    """A copy of `data` (input 0) with `updates` (input 2) at `indices` (input 1). A negative index counts from the end.

    Attributes:
        mode: ELEMENT puts each update at its own place with the index on `axis`; ND puts sub-tensors at the places
            that the vectors on the last axis of the indices point to.
        axis: for ELEMENT, counted from 0.
        reduction: NONE replaces, and the last update of a place wins; the others combine all of them, on the host only.

    Source: TensorRT `IScatterLayer`; ONNX `ScatterElements`, `ScatterND`.
    """

    inputs_of_one_type = (0, 2)

    mode: ScatterMode
    axis: int = 0
    reduction: ScatterReduction = ScatterReduction.NONE

    @property
    def is_host_only(self) -> bool:
        """Whether no device has this form of the layer."""
        return self.reduction is not ScatterReduction.NONE

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The data's shape and type."""
        data, indices, updates = (self.required(inputs, index) for index in range(3))
        check_index_type(self, indices, "The indices")
        check_same_types(self, data, updates)
        if self.mode is ScatterMode.ELEMENT:
            check_axis(self, self.axis, data.rank)
            expected = indices.shape
            if indices.rank != data.rank:
                raise self.problem("Data and indices have equal ranks", found=f"{data.shape} and {indices.shape}")
        else:
            width = indices.shape[-1] if indices.rank else -1
            if not 0 <= width <= data.rank:
                raise self.problem(
                    "An index vector has at most one element an axis of the data",
                    found=f"indices of {indices.shape} for {data.shape}",
                    allowed=f"0 to {data.rank} on the last axis",
                )
            expected = (*indices.shape[:-1], *data.shape[width:])
        if updates.rank != len(expected):
            raise self.problem("The updates do not fit the indices", found=updates.shape, allowed=expected)
        for axis, (extent, other) in enumerate(zip(updates.shape, expected, strict=True)):
            merged_extent(self, extent, other, f"The extents of axis {axis} of updates and indices")
        return [TensorSpec(data.shape, data.dtype)]


class AddScatter:
    """The builder method of scatters."""

    def add_scatter(self: LayerOwner, data: Tensor, indices: Tensor, updates: Tensor, mode: ScatterMode) -> Scatter:
        """Add a scatter; TensorRT's `add_scatter`. Set `axis` on the layer."""
        return self.add_layer(Scatter(mode=mode), [data, indices, updates])
