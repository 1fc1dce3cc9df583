"""Slice: a view of the input where it stays inside, else a copy with what stands outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.layers.sample_mode import SampleMode
from dryfit.network.layers.slice import Slice
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import Array, reference


@reference(Slice)
def slice_layer(layer: Slice, inputs: Sequence[Array | None]) -> list[Array]:
    """The elements at `start + i * stride` of each axis; the data's bits are copied."""
    x = inputs[0]
    if x is None:
        raise layer.problem("Input 0 is not connected")
    specs = [None if array is None else TensorSpec.of(array) for array in inputs]
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
        elif not x.shape[axis]:
            raise ExecutionError(
                "An axis without elements cannot be extended", where=f"layer {layer.name!r} ({layer.kind})"
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
