"""Shuffle: a transpose, a reshape and a transpose, each of them optional."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import dimension_input
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Shape, Tensor, TensorSpec


@layer_kind("shuffle")
class Shuffle(Layer):
    """`transpose(reshape(transpose(x)))`.

    Attributes:
        first_transpose: output axis to input axis, before the reshape; empty for none.
        reshape_dims: extents of the reshape, None for none. -1 is inferred from the others; 0 copies the extent of the
            same axis (after the first transpose) where `zero_is_placeholder`, and is an empty axis otherwise.
            Input 1, where it is connected, is used instead.
        second_transpose: output axis to input axis, after the reshape; empty for none.
        zero_is_placeholder: what 0 means in `reshape_dims`.

    Source: TensorRT `IShuffleLayer`; ONNX `Reshape`, `Transpose`.
    """

    only_moves_values = True
    dimension_inputs = (1,)
    parameter_inputs: ClassVar[Mapping[int, str]] = {1: "reshape_dims"}
    flowing_inputs = (0,)

    first_transpose: tuple[int, ...] = attrs.field(default=(), converter=ints)
    reshape_dims: tuple[int, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(ints))
    second_transpose: tuple[int, ...] = attrs.field(default=(), converter=ints)
    zero_is_placeholder: bool = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The shuffled shape, of the input's type."""
        x = self.required(inputs, 0)
        shape = self.transposed(x.shape, self.first_transpose, "first_transpose")
        target = inputs[1] if len(inputs) > 1 else None
        if target is not None:
            dims = dimension_input(self, target, "The reshape input")
            shape = dims if target.value is None else self.reshaped(shape, dims)
        elif self.reshape_dims is not None:
            shape = self.reshaped(shape, self.reshape_dims)
        return [TensorSpec(self.transposed(shape, self.second_transpose, "second_transpose"), x.dtype)]

    def transposed(self, shape: Shape, order: Sequence[int], parameter: str) -> Shape:
        """The shape after a transpose.

        Raises:
            NetworkError: the order is not a permutation of the axes.
        """
        if order and sorted(order) != list(range(len(shape))):
            raise self.problem(
                f"`{parameter}` is a permutation of the axes",
                found=tuple(order),
                allowed=f"each of {len(shape)} axes once",
            )
        return tuple(shape[axis] for axis in order) if order else shape

    def reshaped(self, shape: Shape, dims: Sequence[int]) -> Shape:
        """The shape after the reshape; -1 where it depends on a dynamic extent.

        Raises:
            NetworkError: the dims do not hold as many elements as the shape, or have several -1.
        """
        zero_copies = self.zero_is_placeholder
        if any(dim < -1 for dim in dims) or list(dims).count(-1) > 1:
            raise self.problem("At most one of `reshape_dims` is -1, the others are at least 0", found=tuple(dims))
        copied = {axis for axis, dim in enumerate(dims) if dim == 0 and zero_copies}
        if any(axis >= len(shape) for axis in copied):
            raise self.problem(
                "A 0 of `reshape_dims` copies an axis that the input lacks", found=f"{tuple(dims)} of {shape}"
            )
        output = [shape[axis] if axis in copied else dim for axis, dim in enumerate(dims)]
        # A copied axis stands on both sides: without it, the rest may be static although the axis is dynamic.
        source = [extent for axis, extent in enumerate(shape) if axis not in copied or extent == 0]
        given = [dim for axis, dim in enumerate(output) if (axis not in copied or dim == 0) and dims[axis] != -1]
        inferred = list(dims).index(-1) if -1 in dims else None
        if -1 in source:
            known = math.prod(extent for extent in source if extent != -1)
            if inferred is not None or 0 in given or known == 0 or math.prod(given) % known == 0:
                return tuple(output)
        elif inferred is None:
            if math.prod(source) == math.prod(given):
                return tuple(output)
        elif math.prod(given) and math.prod(source) % math.prod(given) == 0:
            output[inferred] = math.prod(source) // math.prod(given)
            return tuple(output)
        raise self.problem("The reshape keeps the number of elements", found=f"{shape} to {tuple(dims)}")


class AddShuffle:
    """The builder method of shuffles."""

    def add_shuffle(self: LayerOwner, input: Tensor) -> Shuffle:
        """Add a shuffle that does nothing yet; TensorRT's `add_shuffle`. Set its transposes and `reshape_dims`."""
        return self.add_layer(Shuffle(), [input])
