"""Softmax over sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, LayerOwner, layer_kind
from dryfit.network.layers.composite import CompositeLayer, Parts
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Select
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.normalization import Softmax
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.shape_inference import check_index_type, merged_extent
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("ragged_softmax")
class RaggedSoftmax(CompositeLayer):
    """A softmax over the first elements of each sequence; the elements after them are 0.

    Inputs: 0 the data `[batch, sequences, elements]`; 1 the bounds `[batch, sequences, 1]`, integers: the number of
    elements that count. A sequence with a bound of 0 is all zeros.

    Source: TensorRT `IRaggedSoftMaxLayer`. That the elements after the bound are 0 is inferred.
    """

    needs_real_numbers = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the data's shape and type."""
        x, bounds = self.required(inputs, 0), self.required(inputs, 1)
        if x.rank != 3 or not x.dtype.is_floating_point or x.dtype.bits < 16:
            raise self.problem(
                "The input must have three axes and a floating-point type",
                found=f"{x.dtype.text} {x.shape}",
                allowed="[batch, sequences, elements]",
                remedy="Add a shuffle or cast layer before it",
            )
        check_index_type(self, bounds, "The bounds input")
        if bounds.rank != 3 or bounds.shape[2] not in (-1, 1):
            raise self.problem(
                "There must be one bound per sequence",
                found=bounds.shape,
                allowed=(*x.shape[:2], 1),
                remedy="Add a shuffle layer that reshapes the bounds",
            )
        for axis, name in ((0, "batches"), (1, "numbers of sequences")):
            merged_extent(self, x.shape[axis], bounds.shape[axis], f"The {name} of input and bounds")
        return [TensorSpec(x.shape, x.dtype)]

    def decompose(self, parts: Parts) -> Sequence[Tensor]:
        """Add a softmax of the elements before the bounds, and selects that hide the others."""
        x, bounds = (self.connected_input(index) for index in range(2))
        if bounds.dtype is not DataType.INT64:
            bounds = parts.add("bounds as INT64", Cast(to_type=DataType.INT64), bounds)
        extents = parts.extents("extents", x)
        one = parts.constant("ones", np.ones(2, np.int64))
        shape = parts.add("extents of a sequence", Concatenation(axis=0), one, parts.elements("length", extents, 2, 1))
        places = parts.positions("places", shape, 2, DataType.INT64)
        inside = parts.add("inside", Elementwise(op=ElementWiseOperation.GREATER), bounds, places)
        hidden = parts.add("inner elements", Select(), inside, x, parts.scalar("outside", -np.inf, x))
        softmax = parts.add("softmax", Softmax(axes=1 << 2), hidden)
        return [parts.add("", Select(), inside, softmax, parts.scalar("zero", 0.0, x))]


class AddRaggedSoftmax:
    """The builder method of ragged softmax."""

    def add_ragged_softmax(self: LayerOwner, input: Tensor, bounds: Tensor) -> RaggedSoftmax:
        """Add a softmax over sequences of different lengths; TensorRT's `add_ragged_softmax`."""
        return self.add_layer(RaggedSoftmax(), [input, bounds])
