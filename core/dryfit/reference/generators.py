"""Constants, fills and shapes: what has no data as its input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant, Fill, FillOperation, ShapeLayer
from dryfit.reference.precision import convert
from dryfit.reference.registry import Array, compute_type, reference


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
