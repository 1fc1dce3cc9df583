"""Reverse sequence: the first elements of each sequence of a batch in reverse order."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import check_axis, check_index_type, merged_extent
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("reverse_sequence")
class ReverseSequence(Layer):
    """The first `sequence_lens[b]` (input 1) elements of sequence `b` in reverse order, the others as they are.

    Attributes:
        batch_axis, sequence_axis: two different axes of the input, counted from 0.

    Source: TensorRT `IReverseSequenceLayer`; ONNX `ReverseSequence`.
    """

    batch_axis: int = 1
    sequence_axis: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape and type."""
        x, lengths = self.required(inputs, 0), self.required(inputs, 1)
        check_axis(self, self.batch_axis, x.rank, "`batch_axis`")
        check_axis(self, self.sequence_axis, x.rank, "`sequence_axis`")
        if self.batch_axis == self.sequence_axis:
            raise self.problem("`batch_axis` and `sequence_axis` are different axes", found=self.batch_axis)
        check_index_type(self, lengths, "The lengths")
        if lengths.rank != 1:
            raise self.problem("The lengths are a vector", found=lengths.shape)
        what = "The batch and the number of lengths"
        merged_extent(self, x.shape[self.batch_axis], lengths.shape[0], what, is_mendable=True)
        return [TensorSpec(x.shape, x.dtype)]


class AddReverseSequence:
    """The builder method of reverse-sequence layers."""

    def add_reverse_sequence(self: LayerOwner, input: Tensor, sequence_lens: Tensor) -> ReverseSequence:
        """Add a reverse-sequence layer; TensorRT's `add_reverse_sequence`. Set the axes on the layer."""
        return self.add_layer(ReverseSequence(), [input, sequence_lens], is_finished=False)
