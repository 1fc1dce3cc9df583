"""Slice (a strided window that may extend beyond the tensor) and shuffle (transpose, reshape, transpose)."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import check_same_types, dimension_input, normalized_axes
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Shape, Tensor, TensorSpec


class SampleMode(enum.Enum):
    """Handling of indices outside the input; TensorRT's `SampleMode`."""

    STRICT_BOUNDS = "strict_bounds"
    WRAP = "wrap"
    CLAMP = "clamp"
    FILL = "fill"
    REFLECT = "reflect"


SliceWindow = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""(start, shape, stride), one value per axis of the input."""


@layer_kind("slice")
class Slice(Layer):
    """`y[i, j, ...] = x[start0 + i * stride0, start1 + j * stride1, ...]` for `i < shape0`, `j < shape1`, ...

    A negative stride moves backwards; a stride of 0 repeats an element. If connected, inputs 1, 2 and 3 (vectors)
    override `start`, `shape` and `stride`; input 4 is the scalar of the mode FILL (default: 0), and input 5 overrides
    `axes`.

    Attributes:
        start, shape, stride: one value per sliced axis.
        mode: values outside the input: STRICT_BOUNDS raises an error, WRAP repeats the input, CLAMP repeats its border,
            FILL uses a value, REFLECT mirrors at the border, which is not repeated.
        axes: the sliced axes; the others are kept whole. None: all axes.

    Source: TensorRT `ISliceLayer`; ONNX `Slice`, `Pad`.
    """

    dimension_inputs = (1, 2, 3)
    parameter_inputs: ClassVar[Mapping[int, str]] = {1: "start", 2: "shape", 3: "stride", 5: "axes"}
    flowing_inputs = (0,)
    inputs_of_one_type = (0, 4)

    start: tuple[int, ...] = attrs.field(default=(), converter=ints)
    shape: tuple[int, ...] = attrs.field(default=(), converter=ints)
    stride: tuple[int, ...] = attrs.field(default=(), converter=ints)
    mode: SampleMode = SampleMode.STRICT_BOUNDS
    axes: tuple[int, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(ints))

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `shape` on the sliced axes, in the input's type."""
        x = self.required(inputs, 0)
        fill = inputs[4] if len(inputs) > 4 else None
        if fill is not None:
            check_same_types(self, x, fill)
            if fill.shape not in ((), (1,), (-1,)):
                raise self.problem(
                    "The fill value must be a scalar", found=fill.shape, remedy="Connect a tensor with one element"
                )
        given = inputs[5] if len(inputs) > 5 else None
        if given is not None and given.value is None:
            dimension_input(self, given, "The axes input")
            return [TensorSpec((-1,) * x.rank, x.dtype)]
        start, shape, stride = self.window(x.shape, inputs)
        unknown = any(
            index < len(inputs) and (spec := inputs[index]) is not None and spec.value is None for index in (1, 2, 3)
        )
        if self.mode is SampleMode.STRICT_BOUNDS and not unknown:
            for axis, extent in enumerate(x.shape):
                last = start[axis] + (shape[axis] - 1) * stride[axis]
                if extent >= 0 and shape[axis] > 0 and not (0 <= start[axis] < extent and 0 <= last < extent):
                    raise self.problem(
                        f"The slice must stay inside axis {axis} of the input",
                        found=f"elements {start[axis]} to {last}",
                        allowed=f"0 to {extent - 1}",
                        remedy="Change `mode`, or `start` and `shape`",
                        is_mendable=True,
                    )
        return [TensorSpec(shape, x.dtype)]

    def window(self, x: Shape, inputs: Inputs) -> SliceWindow:
        """Return (start, shape, stride) with one value per axis for an input of shape `x`; -1 if unknown.

        Raises:
            NetworkError: The lengths do not match, or an axis does not exist.
        """
        axes_input = inputs[5] if len(inputs) > 5 else None
        axes = self.axes if axes_input is None else dimension_input(self, axes_input, "The axes input")
        if axes is None:
            axes = tuple(range(len(x)))
        else:
            normalized_axes(self, axes, len(x))
            axes = tuple(axis % len(x) for axis in axes)
        start, shape, stride = [0] * len(x), list(x), [1] * len(x)
        for index, (name, values, all_axes) in enumerate(
            (("start", self.start, start), ("shape", self.shape, shape), ("stride", self.stride, stride)), 1
        ):
            spec = inputs[index] if len(inputs) > index else None
            values = values if spec is None else dimension_input(self, spec, f"The {name} input")  # noqa: PLW2901
            if len(values) != len(axes):
                raise self.problem(
                    f"`{name}` must have one value per axis",
                    found=values,
                    allowed=f"{len(axes)} values",
                    remedy=None if values else f"Set `{name}`, or connect input {index}",
                    is_mendable=True,
                )
            if name == "shape" and min(values, default=0) < 0 and (spec is None or spec.value is not None):
                raise self.problem("`shape` must not have negative values", found=values, remedy="Set `shape`")
            for axis, value in zip(axes, values, strict=True):
                all_axes[axis] = value
        return tuple(start), tuple(shape), tuple(stride)


class AddSlice:
    """The builder method of slices."""

    def add_slice(
        self: LayerOwner, input: Tensor, start: Sequence[int], shape: Sequence[int], stride: Sequence[int]
    ) -> Slice:
        """Add a slice layer; TensorRT's `add_slice`. Set `mode` and `axes` on the layer. Inputs 1 to 3: the bounds."""
        layer = Slice(start=tuple(start), shape=tuple(shape), stride=tuple(stride))
        return self.add_layer(layer, [input], is_finished=False)


# Shuffle --------------------------------------------------------------------------------------------------------------


@layer_kind("shuffle")
class Shuffle(Layer):
    """`transpose(reshape(transpose(x)))`.

    Attributes:
        first_transpose: permutation before the reshape, output axis to input axis. Empty: no transpose.
        reshape_dims: extents of the reshape. None: no reshape. -1 is inferred from the others; 0 copies the extent of
            the same axis (after the first transpose) if `zero_is_placeholder`, and is an empty axis otherwise. If
            connected, input 1 overrides it.
        second_transpose: permutation after the reshape, output axis to input axis. Empty: no transpose.
        zero_is_placeholder: meaning of 0 in `reshape_dims`.

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
        """Return the shuffled shape, in the input's type."""
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
        """Return the shape after a transpose.

        Raises:
            NetworkError: The order is not a permutation of the axes.
        """
        if order and sorted(order) != list(range(len(shape))):
            raise self.problem(
                f"`{parameter}` must be a permutation of the axes",
                found=tuple(order),
                allowed=f"each of {len(shape)} axes once",
                remedy=f"Set `{parameter}`",
            )
        return tuple(shape[axis] for axis in order) if order else shape

    def reshaped(self, shape: Shape, dims: Sequence[int]) -> Shape:
        """Return the shape after the reshape; -1 if it depends on a dynamic extent.

        Raises:
            NetworkError: The number of elements differs from that of the shape, or more than one extent is -1.
        """
        zero_copies = self.zero_is_placeholder
        if any(dim < -1 for dim in dims) or list(dims).count(-1) > 1:
            raise self.problem(
                "`reshape_dims` must have at most one -1 and no other negative values",
                found=tuple(dims),
                remedy="Set `reshape_dims`",
            )
        copied = {axis for axis, dim in enumerate(dims) if dim == 0 and zero_copies}
        if any(axis >= len(shape) for axis in copied):
            raise self.problem(
                "A 0 in `reshape_dims` copies an axis of the input, and the input has fewer axes",
                found=f"{tuple(dims)} of {shape}",
                allowed=f"0 in the first {len(shape)} dimensions",
                remedy="Replace the 0 by the dimension",
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
        raise self.problem(
            "A reshape must keep the number of elements", found=f"{shape} to {tuple(dims)}", remedy="Set `reshape_dims`"
        )


class AddShuffle:
    """The builder method of shuffles."""

    def add_shuffle(self: LayerOwner, input: Tensor) -> Shuffle:
        """Add a shuffle layer; TensorRT's `add_shuffle`. Then set its transposes and `reshape_dims`."""
        return self.add_layer(Shuffle(), [input])
