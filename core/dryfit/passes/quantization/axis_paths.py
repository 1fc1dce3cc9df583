"""Where an axis of a layer's input goes: one scale for each of its indices moves over a layer where it survives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dryfit.network.layer import Layer
from dryfit.network.layers.movement import Concatenation, Padding
from dryfit.network.layers.shape_inference import known_ints, normalized_axes
from dryfit.network.layers.slice import Shuffle, Slice
from dryfit.network.tensor import Shape, Tensor, TensorSpec

Specs = Mapping[Tensor, TensorSpec]
"""Tensor to spec, as inferred before a pass began."""

AxisPath = Callable[[Any, Specs, int], int | None]
"""`(layer, specs, axis of input 0) -> axis of output 0`; None where no single axis of the output has its indices."""


def same_axis(layer: Layer, specs: Specs, axis: int) -> int | None:  # noqa: ARG001
    """Of layers that keep all axes."""
    return axis


def no_axis(layer: Layer, specs: Specs, axis: int) -> int | None:  # noqa: ARG001
    """Of layers through which no axis is followed."""
    return None


def batch_or_channel(layer: Layer, specs: Specs, axis: int) -> int | None:  # noqa: ARG001
    """Of layers that keep the first two axes."""
    return axis if axis < 2 else None


def through_shuffle(layer: Shuffle, specs: Specs, axis: int) -> int | None:
    """Through both transposes, and through a reshape that leaves what stands before and behind the axis as large."""
    shape, result = _shape(layer, specs), specs[layer.outputs[0]].shape
    if layer.first_transpose:
        axis = layer.first_transpose.index(axis)
        shape = tuple(shape[source] for source in layer.first_transpose)
    reshaped = list(result)
    for target, source in enumerate(layer.second_transpose):
        reshaped[source] = result[target]
    if layer.get_input(1) is not None or layer.reshape_dims is not None:
        found = _through_reshape(shape, reshaped, axis)
        if found is None:
            return None
        axis = found
    return layer.second_transpose.index(axis) if layer.second_transpose else axis


def _through_reshape(before: Shape, after: Sequence[int], axis: int) -> int | None:
    """The axis of the same extent with as many elements before it."""
    if -1 in before or -1 in after or 0 in before:
        return None
    outer = math.prod(before[:axis])
    places = [
        index for index in range(len(after)) if math.prod(after[:index]) == outer and after[index] == before[axis]
    ]
    return places[0] if places else None


def through_squeeze(layer: Layer, specs: Specs, axis: int) -> int | None:
    """Its place among the axes that stay."""
    gone = _axes(layer, specs, len(_shape(layer, specs)))
    return None if gone is None or axis in gone else axis - sum(one < axis for one in gone)


def through_unsqueeze(layer: Layer, specs: Specs, axis: int) -> int | None:
    """Its place among the new axes."""
    rank = len(specs[layer.outputs[0]].shape)
    new = _axes(layer, specs, rank)
    return None if new is None else [one for one in range(rank) if one not in new][axis]


def through_slice(layer: Slice, specs: Specs, axis: int) -> int | None:
    """The same, where the slice keeps all of it, and fills with nothing that has scales of its own."""
    x = specs[layer.connected_input(0)]
    if any(tensor is not None for tensor in layer.inputs[1:]) or x.shape[axis] < 0:
        return None
    start, shape, stride = layer.window(x.shape, [x])
    return axis if (start[axis], shape[axis], stride[axis]) == (0, x.shape[axis], 1) else None


def through_concatenation(layer: Concatenation, specs: Specs, axis: int) -> int | None:  # noqa: ARG001
    """The same, where it is not the one on which the inputs follow one another."""
    return None if axis == layer.axis else axis


def through_padding(layer: Padding, specs: Specs, axis: int) -> int | None:
    """The same, where it is none of the last two."""
    return axis if axis < len(_shape(layer, specs)) - 2 else None


def axis_before(path: AxisPath, layer: Layer, specs: Specs, axis: int) -> int | None:
    """The axis of input 0 that becomes this axis of the output."""
    return next((one for one in range(len(_shape(layer, specs))) if path(layer, specs, one) == axis), None)


def _shape(layer: Layer, specs: Specs) -> Shape:
    return specs[layer.connected_input(0)].shape


def _axes(layer: Layer, specs: Specs, rank: int) -> tuple[int, ...] | None:
    tensor = layer.get_input(1)
    known = None if tensor is None else known_ints(specs[tensor])
    return None if known is None else normalized_axes(layer, known, rank)
