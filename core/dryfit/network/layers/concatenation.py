"""Concatenation: tensors one after the other on one axis."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import check_axis, check_same_types, default_axis, merged_extent
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("concatenation")
class Concatenation(Layer):
    """The inputs one after the other on `axis`; the other extents are equal.

    Attributes:
        axis: counted from 0.

    Source: TensorRT `IConcatenationLayer`; ONNX `Concat`.
    """

    inputs_of_one_type = ALL_INPUTS

    axis: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The common shape, the extents on the axis added up."""
        specs = [self.required(inputs, index) for index in range(max(len(inputs), 1))]
        first = specs[0]
        check_axis(self, self.axis, first.rank)
        check_same_types(self, *specs)
        shape = list(first.shape)
        for spec in specs[1:]:
            if spec.rank != first.rank:
                raise self.problem("The inputs have equal ranks", found=f"{first.shape} and {spec.shape}")
            for axis, extent in enumerate(spec.shape):
                if axis != self.axis:
                    # `axis` may still be TensorRT's default: users set it after adding the layer.
                    what = f"The inputs' extents of axis {axis}, which is not the axis of the concatenation,"
                    shape[axis] = merged_extent(self, shape[axis], extent, what, is_mendable=True)
        extents = [spec.shape[self.axis] for spec in specs]
        shape[self.axis] = -1 if -1 in extents else sum(extents)
        return [TensorSpec(tuple(shape), first.dtype)]


class AddConcatenation:
    """The builder method of concatenations."""

    def add_concatenation(self: LayerOwner, inputs: Sequence[Tensor]) -> Concatenation:
        """Add a concatenation; TensorRT's `add_concatenation`. The axis is the third from the end until it is set."""
        axis = default_axis(len(inputs[0].shape)) if inputs else 0
        return self.add_layer(Concatenation(axis=axis), inputs, is_finished=False)
