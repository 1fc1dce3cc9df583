"""Layers that only move values: views of the input wherever its layout in memory allows one, else copies.

An identity layer that casts, and a slice or a padding that fills, are here too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.movement import Concatenation, Identity, Padding, ReverseSequence, Squeeze, Unsqueeze
from dryfit.network.layers.slice import SampleMode, Shuffle, Slice
from dryfit.network.tensor import Array, TensorSpec
from dryfit.reference.precision import convert
from dryfit.reference.registry import reference


@reference(Concatenation)
def concatenation(layer: Concatenation, inputs: Sequence[Array]) -> list[Array]:
    """The inputs one after the other on `axis`."""
    return [np.concatenate(inputs, axis=layer.axis)]


@reference(Identity)
def identity(layer: Identity, inputs: Sequence[Array]) -> list[Array]:
    """The input, not copied; where the layer casts, its values in the other type."""
    to_type = layer.cast_type(DataType.from_numpy(inputs[0].dtype))
    return [inputs[0] if to_type is None else convert(inputs[0], to_type)]


@reference(Padding)
def padding(layer: Padding, inputs: Sequence[Array]) -> list[Array]:
    """The input with zeros around its last two axes; a view where it is only cropped."""
    x = inputs[0]
    top, left = layer.pre_padding_nd
    bottom, right = layer.post_padding_nd
    cropped = x[..., max(-top, 0) : x.shape[-2] - max(-bottom, 0), max(-left, 0) : x.shape[-1] - max(-right, 0)]
    top, left, bottom, right = (max(count, 0) for count in (top, left, bottom, right))
    if not (top or left or bottom or right):
        return [cropped]
    height, width = cropped.shape[-2:]
    output = np.zeros((*x.shape[:-2], top + height + bottom, left + width + right), x.dtype)
    output[..., top : top + height, left : left + width] = cropped
    return [output]


@reference(ReverseSequence)
def reverse_sequence(layer: ReverseSequence, inputs: Sequence[Array]) -> list[Array]:
    """Element `s` of a sequence of length n comes from `n - 1 - s`, where s < n."""
    x, lengths = inputs[0], inputs[1].astype(np.int64)
    longest = x.shape[layer.sequence_axis]
    if lengths.size and not (lengths.min() >= 0 and lengths.max() <= longest):
        raise ExecutionError(
            "A sequence length is out of range",
            where=f"layer {layer.name!r} ({layer.kind})",
            found=lengths.tolist()[:16],
            allowed=f"0 to {longest}",
            remedy="Fix the lengths",
        )
    steps = np.arange(longest)
    source = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)  # [batch, sequence]
    if layer.batch_axis > layer.sequence_axis:
        source = source.T
    shape = [extent if axis in (layer.batch_axis, layer.sequence_axis) else 1 for axis, extent in enumerate(x.shape)]
    return [np.take_along_axis(x, source.reshape(shape), axis=layer.sequence_axis)]


@reference(Shuffle)
def shuffle(layer: Shuffle, inputs: Sequence[Array]) -> list[Array]:
    """Transpose, reshape, transpose."""
    x = inputs[0]
    if layer.first_transpose:
        x = x.transpose(layer.first_transpose)
    dims = layer.reshape_dims
    if len(inputs) > 1:
        dims = tuple(int(dim) for dim in inputs[1])
    if dims is not None:
        x = x.reshape(layer.reshaped(x.shape, dims))
    return [x.transpose(layer.second_transpose) if layer.second_transpose else x]


@reference(Slice)
def slice_layer(layer: Slice, inputs: Sequence[Array | None]) -> list[Array]:
    """The elements at `start + i * stride` of each axis; the data's bits are copied."""
    x = inputs[0]
    if x is None:
        raise layer.problem("Input 0 is not connected", remedy="Connect input 0")
    specs = [None if array is None else TensorSpec.of(array) for array in inputs]
    if len(inputs) > 1:
        layer.infer_outputs(specs)  # the bounds may have come as inputs, and are checked here
    start, shape, stride = layer.window(x.shape, specs)
    if layer.mode is SampleMode.FILL:
        fill = inputs[4] if len(inputs) > 4 else None
        return [_filled(x, start, shape, stride, np.zeros((), x.dtype) if fill is None else fill.reshape(()))]
    for axis in range(x.ndim):
        positions = (start[axis], shape[axis], stride[axis])
        last = start[axis] + (shape[axis] - 1) * stride[axis]
        if shape[axis] < 1 or (0 <= start[axis] < x.shape[axis] and 0 <= last < x.shape[axis]):
            x = _view(x, axis, *positions)
        elif layer.mode is SampleMode.STRICT_BOUNDS:
            layer.infer_outputs(specs)  # refuses it
        elif not x.shape[axis]:
            raise ExecutionError(
                "An empty axis cannot be extended",
                where=f"layer {layer.name!r} ({layer.kind})",
                remedy="Use an axis with at least one element",
            )
        else:
            x = np.take(x, _inside(layer.mode, x.shape[axis], *positions), axis=axis)
    return [x]


def _view(x: Array, axis: int, start: int, count: int, stride: int) -> Array:
    """`count` elements of an axis from `start` on, all of them inside."""
    if stride == 0 and count:
        one = x[(slice(None),) * axis + (slice(start, start + 1),)]
        return np.broadcast_to(one, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    stop = start + count * stride
    span = slice(start, None if stop < 0 else stop, stride or 1) if count else slice(0, 0)
    return x[(slice(None),) * axis + (span,)]


def _inside(mode: SampleMode, extent: int, start: int, count: int, stride: int) -> Array:
    """The indices of an axis that the mode answers with."""
    indices = start + stride * np.arange(count)
    if mode is SampleMode.WRAP:
        return indices % extent
    if mode is SampleMode.CLAMP:
        return np.clip(indices, 0, extent - 1)
    period = max(2 * (extent - 1), 1)
    folded = indices % period
    return np.minimum(folded, period - folded) if extent > 1 else np.zeros_like(indices)


def _filled(x: Array, start: Sequence[int], shape: Sequence[int], stride: Sequence[int], fill: Array) -> Array:
    output = np.full(shape, fill, dtype=x.dtype)
    inside = []
    for axis, extent in enumerate(x.shape):
        indices = start[axis] + stride[axis] * np.arange(shape[axis])
        hits = np.flatnonzero((indices >= 0) & (indices < extent))
        if not hits.size:
            return output
        # The indices go one way, so those inside the input are neighbours.
        inside.append(slice(hits[0], hits[-1] + 1))
        x = _view(x, axis, int(indices[hits[0]]), hits.size, stride[axis])
    output[tuple(inside)] = x
    return output


@reference(Squeeze)
def squeeze(layer: Squeeze, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """A view without the axes."""
    return [np.squeeze(inputs[0], axis=tuple(int(axis) for axis in inputs[1].reshape(-1)))]


@reference(Unsqueeze)
def unsqueeze(layer: Unsqueeze, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """A view with the axes."""
    return [np.expand_dims(inputs[0], axis=tuple(int(axis) for axis in inputs[1].reshape(-1)))]
