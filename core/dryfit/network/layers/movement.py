"""Layers that move values without changing them: concatenation, identity, padding, reversal, squeeze, unsqueeze."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.data_types import EXCHANGED_TYPES, STAND_IN_TYPES, DataType
from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import (
    check_axis,
    check_index_type,
    check_same_types,
    default_axis,
    known_ints,
    merged_extent,
    normalized_axes,
)
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("concatenation")
class Concatenation(Layer):
    """The inputs concatenated on `axis`; the other extents must be equal.

    Attributes:
        axis: concatenation axis, counted from 0.

    Source: TensorRT `IConcatenationLayer`; ONNX `Concat`.
    """

    inputs_of_one_type = ALL_INPUTS

    axis: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the common shape, with the extents on the axis added up."""
        specs = [self.required(inputs, index) for index in range(max(len(inputs), 1))]
        first = specs[0]
        check_axis(self, self.axis, first.rank)
        check_same_types(self, *specs)
        shape = list(first.shape)
        for spec in specs[1:]:
            if spec.rank != first.rank:
                raise self.problem(
                    "The inputs must have the same rank",
                    found=f"{first.shape} and {spec.shape}",
                    remedy="Add a shuffle layer that reshapes one of them",
                )
            for axis, extent in enumerate(spec.shape):
                if axis != self.axis:
                    # `axis` may still be TensorRT's default: users set it after adding the layer.
                    what = f"The extents of the inputs along axis {axis}, which is not the concatenation axis,"
                    shape[axis] = merged_extent(self, shape[axis], extent, what, is_mendable=True)
        extents = [spec.shape[self.axis] for spec in specs]
        shape[self.axis] = -1 if -1 in extents else sum(extents)
        return [TensorSpec(tuple(shape), first.dtype)]


@layer_kind("identity")
class Identity(Layer):
    """The unchanged input; with `set_output_type`, a cast to that type.

    In a weakly typed network, FLOAT, HALF, BF16 and, with a scale, INT8 are interchangeable: between these, the output
    type defines how the output is stored, as for every other layer.

    Source: TensorRT `IIdentityLayer`; ONNX `Identity`.
    """

    only_moves_values = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape, type and value; for a cast, the requested type."""
        x = self.required(inputs, 0)
        asked = self.cast_type(x.dtype)
        return [TensorSpec(x.shape, x.dtype, x.value) if asked is None else TensorSpec(x.shape, asked)]

    def cast_type(self, dtype: DataType) -> DataType | None:
        """Return the type to which elements of `dtype` are cast; None if they are unchanged."""
        asked = self.output_types.get(0)
        is_exchange = dtype in EXCHANGED_TYPES and asked in STAND_IN_TYPES
        return None if asked is dtype or is_exchange else asked


@layer_kind("padding")
class Padding(Layer):
    """Zeros before and after the last two axes; a negative count crops.

    Attributes:
        pre_padding_nd, post_padding_nd: one count per axis, for the last two axes.

    Source: TensorRT `IPaddingLayer`.
    """

    pre_padding_nd: tuple[int, ...] = attrs.field(converter=ints)
    post_padding_nd: tuple[int, ...] = attrs.field(converter=ints)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape with the last two extents padded, and its type."""
        x = self.required(inputs, 0)
        if x.rank < 2 or len(self.pre_padding_nd) != 2 or len(self.post_padding_nd) != 2:
            raise self.problem(
                "Padding must have one value for each of the last two axes",
                found=f"pre {self.pre_padding_nd}, post {self.post_padding_nd} for an input of {x.shape}",
                allowed="2 values each, and rank 2 or more",
                remedy="Set `pre_padding_nd` and `post_padding_nd`",
            )
        extents = tuple(
            -1 if extent < 0 else extent + pre + post
            for extent, pre, post in zip(x.shape[-2:], self.pre_padding_nd, self.post_padding_nd, strict=True)
        )
        for extent, pre, post in zip(x.shape[-2:], self.pre_padding_nd, self.post_padding_nd, strict=True):
            if extent >= 0 and (extent + pre + post < 1 or extent + min(pre, 0) < 0 or extent + min(post, 0) < 0):
                raise self.problem(
                    "The crop removes the whole input",
                    found=f"pre {self.pre_padding_nd}, post {self.post_padding_nd} for an input of {x.shape}",
                    allowed="at least one element per axis that is left",
                    remedy="Crop less",
                )
        return [TensorSpec((*x.shape[:-2], *extents), x.dtype)]


@layer_kind("reverse_sequence")
class ReverseSequence(Layer):
    """The first `sequence_lens[b]` (input 1) elements of sequence `b` in reverse order, then the others unchanged.

    Attributes:
        batch_axis, sequence_axis: two different axes of the input, counted from 0.

    Source: TensorRT `IReverseSequenceLayer`; ONNX `ReverseSequence`.
    """

    batch_axis: int = 1
    sequence_axis: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape and type."""
        x, lengths = self.required(inputs, 0), self.required(inputs, 1)
        check_axis(self, self.batch_axis, x.rank, "`batch_axis`")
        check_axis(self, self.sequence_axis, x.rank, "`sequence_axis`")
        if self.batch_axis == self.sequence_axis:
            raise self.problem(
                "`batch_axis` and `sequence_axis` must be different",
                found=self.batch_axis,
                remedy="Set one of them to another axis",
            )
        check_index_type(self, lengths, "The lengths")
        if lengths.rank != 1:
            raise self.problem(
                "The lengths must be a vector", found=lengths.shape, remedy="Add a shuffle layer that reshapes them"
            )
        what = "The batch and the number of lengths"
        merged_extent(self, x.shape[self.batch_axis], lengths.shape[0], what, is_mendable=True)
        return [TensorSpec(x.shape, x.dtype)]


@layer_kind("squeeze")
class Squeeze(Layer):
    """Input 0 without the axes listed in input 1, a constant. A negative axis counts from the end.

    Source: TensorRT `ISqueezeLayer`; ONNX `Squeeze`.
    """

    only_moves_values = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the remaining extents, with the type of the input."""
        x, axes_input = self.required(inputs, 0), self.required(inputs, 1)
        known = known_ints(axes_input)
        if known is None:
            raise self.problem("The axes (input 1) must be known at build time", remedy="Connect a constant")
        axes = normalized_axes(self, known, x.rank)
        if any(x.shape[axis] not in (1, -1) for axis in axes):
            raise self.problem(
                "A squeezed axis must have extent 1",
                found=f"axes {known} of {x.shape}",
                remedy="Leave out the other axes",
            )
        return [TensorSpec(tuple(e for axis, e in enumerate(x.shape) if axis not in axes), x.dtype)]


@layer_kind("unsqueeze")
class Unsqueeze(Layer):
    """Input 0 with new axes of extent 1; input 1, a constant, lists them as axes of the output.

    Source: TensorRT `IUnsqueezeLayer`; ONNX `Unsqueeze`.
    """

    only_moves_values = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the extents with 1 inserted, with the type of the input."""
        x, axes_input = self.required(inputs, 0), self.required(inputs, 1)
        known = known_ints(axes_input)
        if known is None:
            raise self.problem("The axes (input 1) must be known at build time", remedy="Connect a constant")
        shape = list(x.shape)
        for axis in normalized_axes(self, known, x.rank + len(known)):
            shape.insert(axis, 1)
        return [TensorSpec(tuple(shape), x.dtype)]


class AddMovement:
    """The builder methods of layers that move values."""

    def add_concatenation(self: LayerOwner, inputs: Sequence[Tensor]) -> Concatenation:
        """Add a concatenation; TensorRT's `add_concatenation`. The default axis is the third from the end."""
        axis = default_axis(len(inputs[0].shape)) if inputs else 0
        return self.add_layer(Concatenation(axis=axis), inputs, is_finished=False)

    def add_identity(self: LayerOwner, input: Tensor) -> Identity:
        """Add an identity layer; TensorRT's `add_identity`."""
        return self.add_layer(Identity(), [input])

    def add_padding_nd(
        self: LayerOwner, input: Tensor, pre_padding: Sequence[int], post_padding: Sequence[int]
    ) -> Padding:
        """Pad or crop the last two axes; TensorRT's `add_padding_nd`."""
        layer = Padding(pre_padding_nd=tuple(pre_padding), post_padding_nd=tuple(post_padding))
        return self.add_layer(layer, [input])

    def add_reverse_sequence(self: LayerOwner, input: Tensor, sequence_lens: Tensor) -> ReverseSequence:
        """Add a reverse-sequence layer; TensorRT's `add_reverse_sequence`. Set the axes on the layer."""
        return self.add_layer(ReverseSequence(), [input, sequence_lens], is_finished=False)

    def add_squeeze(self: LayerOwner, input: Tensor, axes: Tensor) -> Squeeze:
        """Add a squeeze layer; TensorRT's `add_squeeze`."""
        return self.add_layer(Squeeze(), [input, axes])

    def add_unsqueeze(self: LayerOwner, input: Tensor, axes: Tensor) -> Unsqueeze:
        """Add an unsqueeze layer; TensorRT's `add_unsqueeze`."""
        return self.add_layer(Unsqueeze(), [input, axes])
