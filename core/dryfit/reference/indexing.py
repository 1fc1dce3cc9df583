"""Indices that come from data (counted from the end where negative, and checked) or become data, and made values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.generators import Constant, Fill, FillOperation, ShapeLayer
from dryfit.network.layers.indexing import Gather, GatherMode, NonZero, OneHot, Scatter, ScatterMode, ScatterReduction
from dryfit.network.tensor import Array
from dryfit.reference.precision import convert
from dryfit.reference.registry import compute_type, reference


def from_start(layer: Layer, indices: Array, extent: int) -> Array:
    """The indices counted from the start of an axis of this extent, as int64.

    Raises:
        ExecutionError: an index is past either end.
    """
    indices = indices.astype(np.int64, copy=False)
    wrong = indices[(indices < -extent) | (indices >= extent)]
    if wrong.size:
        raise ExecutionError(
            "An index is out of range",
            where=f"layer {layer.name!r} ({layer.kind})",
            found=int(wrong.flat[0]),
            allowed=f"{-extent} to {extent - 1}" if extent else "no index, as the axis is empty",
            remedy="Fix the indices",
        )
    return np.where(indices < 0, indices + extent, indices)


def _or_out_of_range(pick: Callable[[], Array], check: Callable[[], object]) -> Array:
    """What numpy picks, which counts from the end too; its complaint about an index becomes that of the check."""
    try:
        return pick()
    except IndexError:
        check()
        raise


def grids(shape: tuple[int, ...], rank: int) -> list[Array]:
    """For each axis of `shape` its indices, shaped to broadcast over arrays of `rank` axes that start with them."""
    return [
        np.arange(extent).reshape([-1 if i == axis else 1 for i in range(rank)]) for axis, extent in enumerate(shape)
    ]


@reference(Gather)
def gather(layer: Gather, inputs: Sequence[Array]) -> list[Array]:
    """The picked elements; the data's bits are copied."""
    data, indices = inputs
    modes = {GatherMode.DEFAULT: _slices, GatherMode.ELEMENT: _elements, GatherMode.ND: _tensors}
    return [modes[layer.mode](layer, data, indices)]


def _slices(layer: Gather, data: Array, indices: Array) -> Array:
    shared = layer.num_elementwise_dims
    if not shared:
        return _or_out_of_range(
            lambda: np.take(data, indices, axis=layer.axis), lambda: from_start(layer, indices, data.shape[layer.axis])
        )
    indices = from_start(layer, indices, data.shape[layer.axis])
    front = np.moveaxis(data, layer.axis, shared)
    picked = front[(*grids(data.shape[:shared], indices.ndim), indices)]
    # Now: shared axes, the other axes of the indices, the data's axes before `axis`, those after it.
    between = range(indices.ndim, indices.ndim + layer.axis - shared)
    rest = (axis for axis in range(shared, picked.ndim) if axis not in between)
    return picked.transpose(*range(shared), *between, *rest)  # type: ignore[no-any-return]


def _elements(layer: Gather, data: Array, indices: Array) -> Array:
    indices = from_start(layer, indices, data.shape[layer.axis])
    reached = tuple(slice(None) if axis == layer.axis else slice(count) for axis, count in enumerate(indices.shape))
    return np.take_along_axis(data[reached], indices, axis=layer.axis)


def _tensors(layer: Gather, data: Array, indices: Array) -> Array:
    shared, width = layer.num_elementwise_dims, indices.shape[-1]
    if not shared and not width:
        return np.broadcast_to(data, (*indices.shape[:-1], *data.shape))
    if not shared:
        return _or_out_of_range(
            lambda: data[tuple(indices[..., k] for k in range(width))],
            lambda: [from_start(layer, indices[..., k], data.shape[k]) for k in range(width)],
        )
    vectors = [from_start(layer, indices[..., k], data.shape[shared + k]) for k in range(width)]
    batch = grids(data.shape[:shared], indices.ndim - 1)
    return data[tuple(np.broadcast_arrays(*batch, *vectors, np.empty(indices.shape[:-1], bool))[:-1])]  # type: ignore[no-any-return]


_REDUCTIONS: dict[ScatterReduction, Callable[[Array, Any, Array], None]] = {
    ScatterReduction.ADD: np.add.at,
    ScatterReduction.MUL: np.multiply.at,
    ScatterReduction.MIN: np.minimum.at,
    ScatterReduction.MAX: np.maximum.at,
}


@reference(Scatter)
def scatter(layer: Scatter, inputs: Sequence[Array]) -> list[Array]:
    """A copy of the data with the updates; sums and products in FP32 for narrower types, rounded once at the end."""
    data, indices, updates = inputs
    if layer.reduction is ScatterReduction.NONE:
        output = data.copy()
        for places, values in _places(layer, data, indices, updates):
            output[places] = values
        return [output]
    wide = compute_type(data.dtype)
    output = data.astype(wide)
    for places, values in _places(layer, data, indices, updates):
        _REDUCTIONS[layer.reduction](output, places, values.astype(wide))
    return [output.astype(data.dtype)]


def _places(layer: Scatter, data: Array, indices: Array, updates: Array) -> list[tuple[tuple[Any, ...], Array]]:
    """(index of the output, updates that go there), to be done in this order."""
    if layer.mode is ScatterMode.ELEMENT:
        places: list[Any] = list(grids(indices.shape, indices.ndim))
        places[layer.axis] = from_start(layer, indices, data.shape[layer.axis])
        return [(tuple(places), updates)]
    width = indices.shape[-1]
    if not width:  # each update is a whole tensor
        return [((...,), update) for update in updates.reshape(-1, *data.shape)]
    return [(tuple(from_start(layer, indices[..., k], data.shape[k]) for k in range(width)), updates)]


@reference(OneHot)
def one_hot(layer: OneHot, inputs: Sequence[Array]) -> list[Array]:
    """`on` where the new axis's index is the given one, `off` elsewhere."""
    indices, (off, on), depth = inputs[0].astype(np.int64), inputs[1], int(inputs[2].reshape(()))
    indices = np.where(indices < 0, indices + depth, indices)
    hits = indices[..., None] == np.arange(depth)
    return [np.moveaxis(np.where(hits, on, off).astype(inputs[1].dtype), -1, layer.axis)]


@reference(NonZero)
def non_zero(layer: NonZero, inputs: Sequence[Array]) -> list[Array]:
    """The indices as `[rank, count]`, in row-major order."""
    return [np.argwhere(convert(inputs[0], DataType.BOOL)).T.astype(layer.indices_type.numpy)]


# Layers that make values ----------------------------------------------------------------------------------------------


@reference(Constant)
def constant(layer: Constant, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """The weights, not copied."""
    return [layer.weights.reshape(layer.shape)]


@reference(Fill)
def fill(layer: Fill, inputs: Sequence[Array | None]) -> list[Array]:
    """The filled tensor, computed in `to_type`, or in FP32 where that is narrower; random numbers in FP32.

    Random numbers come from PCG64 with the layer's seed: the same ones each time, on every machine.
    """
    given = [*inputs, None, None, None]
    shape = layer.shape if given[0] is None else tuple(int(extent) for extent in given[0])
    alpha: Any = layer.alpha if given[1] is None else given[1].reshape(())
    if layer.operation is FillOperation.LINSPACE:
        kind = _computed_in(layer, alpha, layer.beta if given[2] is None else given[2])
        steps = np.asarray(layer.beta if given[2] is None else given[2], dtype=kind).reshape(-1)
        output = np.full(shape, alpha, dtype=kind)
        for axis, extent in enumerate(shape):
            along = [-1 if i == axis else 1 for i in range(len(shape))]
            output += np.arange(extent).astype(kind).reshape(along) * steps[axis]
        return [convert(output, layer.to_type)]
    beta = layer.beta if given[2] is None else given[2].reshape(())
    low, second = np.float32(alpha), np.float32(beta)
    generator = np.random.Generator(np.random.PCG64(layer.seed % 2**64))
    if layer.operation is FillOperation.RANDOM_UNIFORM:
        output = low + (second - low) * generator.random(shape, dtype=np.float32)
    else:
        output = low + second * generator.standard_normal(shape, dtype=np.float32)
    return [convert(np.asarray(output, dtype=DataType.FLOAT.numpy), layer.to_type)]


def _computed_in(layer: Fill, start: Any, steps: Any) -> np.dtype[Any]:
    """The type of a linear fill: of integers their own, but FP64 where the start or a step is no whole number."""
    is_whole = all(bool((np.asarray(values) == np.trunc(values)).all()) for values in (start, steps))
    return compute_type(layer.to_type.numpy) if is_whole or not layer.to_type.is_integer else np.dtype(np.float64)


@reference(ShapeLayer)
def shape(layer: ShapeLayer, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """The extents as `int64[rank]`."""
    return [np.asarray(inputs[0].shape, dtype=np.int64).reshape(-1)]
