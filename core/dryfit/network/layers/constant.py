"""Constant: a tensor that stands in the network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import TensorSpec
from dryfit.network.weights import Weights


@layer_kind("constant")
class Constant(Layer):
    """The weights, in a shape. Has no inputs.

    Attributes:
        shape: of the output.
        weights: as many elements as the shape has, in its order; their type is the output's.

    Source: TensorRT `IConstantLayer`; ONNX `Constant` and initializers.
    """

    has_fixed_types = True

    shape: tuple[int, ...] = attrs.field(converter=ints)
    weights: np.ndarray[Any, Any] = attrs.field(repr=False, converter=np.asarray)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The shape, the weights' type, and the value, which is a view of the weights where they are contiguous."""
        if len(inputs):
            raise self.problem("A constant has no inputs", found=f"{len(inputs)} inputs")
        is_shape = all(extent >= 0 for extent in self.shape)
        if not is_shape or math.prod(self.shape) != self.weights.size:
            raise self.problem(
                "The shape holds as many elements as there are weights",
                found=f"{self.shape} for {self.weights.size} weights",
                allowed=f"{math.prod(self.shape)} weights" if is_shape else "extents of at least 0",
            )
        return [TensorSpec(self.shape, DataType.from_numpy(self.weights.dtype), self.weights.reshape(self.shape))]


class AddConstant:
    """The builder method of constants."""

    def add_constant(self: LayerOwner, shape: Sequence[int], weights: np.ndarray[Any, Any] | Weights) -> Constant:
        """Add a constant; TensorRT's `add_constant`. Elements of 4 bits that are packed come as `Weights`."""
        return self.add_layer(Constant(shape=tuple(shape), weights=np.asarray(weights)), [])
