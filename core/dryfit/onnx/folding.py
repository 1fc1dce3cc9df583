"""Folding during the import: layers whose inputs are known are evaluated instead of added.

Shape computations of networks with dynamic dimensions are followed too, element by element: in
`Reshape(x, Concat(Shape(x)[0:1], [-1, 64]))` the target is known but for its first element, and that is the extent of
an axis of `x`. So the reshape needs no shape tensor at run time, and the axes after it stay static.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Cast
from dryfit.network.tensor import Array
from dryfit.onnx.tensors import Extent, NodeInput, specs_of, values_of
from dryfit.reference.registry import evaluate

LARGEST_FOLDED_BYTES = 2**30
"""With a larger result or operand, a layer is left for the engine. Our choice: real constants are smaller, and a model
file of a few bytes can ask for any number."""

_PICKING = frozenset({"concatenation", "gather", "slice"})
"""Kinds besides those that only move values through which shape computations are followed. Exporters write shapes with
these; what else picks elements does not occur there."""


def folded(layer: Layer, inputs: Sequence[NodeInput | None]) -> list[Array] | None:
    """The outputs of a layer whose inputs are known, or None where they are not, or are too large to compute now."""
    if layer.kind == "shape" and inputs[0] is not None and inputs[0].spec.is_static:
        spec = layer.infer_outputs([inputs[0].spec])[0]
        return [np.asarray(inputs[0].shape, dtype=spec.dtype.numpy)]
    if not inputs or any(operand is not None and not operand.is_known for operand in inputs):
        return None
    values = values_of(inputs)
    # A view copies nothing, so that it may be evaluated on weights of any size.
    is_view = layer.only_moves_values or layer.kind == "slice"
    if not is_view and any(v is not None and v.nbytes > LARGEST_FOLDED_BYTES for v in values):
        return None
    specs = layer.infer_outputs(specs_of(inputs))
    if any(spec.is_static and spec.dtype.bytes_of(math.prod(spec.shape)) > LARGEST_FOLDED_BYTES for spec in specs):
        return None
    return evaluate(layer, values)


def followed_extents(layer: Layer, inputs: Sequence[NodeInput | None]) -> tuple[Extent, ...] | None:
    """The elements of a layer's output as far as a shape computation knows them, or None."""
    source = inputs[0] if inputs else None
    if layer.kind == "shape" and source is not None and source.tensor is not None:
        name = source.tensor.name
        return tuple(extent if extent >= 0 else (name, axis) for axis, extent in enumerate(source.shape))
    if isinstance(layer, Cast) and source is not None:
        return source.extents if layer.to_type in (DataType.INT32, DataType.INT64) else None
    is_moving = layer.only_moves_values or layer.kind in _PICKING
    return _moved(layer, inputs) if is_moving else None


def _moved(layer: Layer, inputs: Sequence[NodeInput | None]) -> tuple[Extent, ...] | None:
    """Evaluate a layer that moves elements on codes of the elements, and read the codes that come out."""
    if all(operand is None or operand.known_extents() is None for operand in inputs[:1]):
        return None
    codes: list[Extent] = []
    coded: list[Array | None] = []
    for operand in inputs:
        if operand is None or (operand.is_known and layer.kind != "concatenation"):
            coded.append(None if operand is None else operand.value)
            continue
        extents = operand.known_extents()
        if extents is None:
            return None
        numbers = range(len(codes), len(codes) + len(extents))
        codes.extend(extents)
        coded.append(np.fromiter(numbers, np.int64, len(extents)).reshape(() if operand.rank == 0 else -1))
    try:
        result = evaluate(layer, coded)[0]
    except NetworkError:
        return None
    return tuple(codes[code] for code in result.reshape(-1).tolist())


def reshape_target(x: NodeInput, target: Sequence[Extent]) -> tuple[int, ...] | None:
    """Reshape extents (0 copies the axis of `x`, -1 is inferred) for a target that is known in part, else None."""
    unknown = [extent for extent in target if not isinstance(extent, int)]
    if len(unknown) + target.count(-1) <= 1:
        return tuple(extent if isinstance(extent, int) else -1 for extent in target)
    name = x.tensor.name if x.tensor is not None else None
    dims = [
        0 if isinstance(extent, tuple) and extent == (name, axis) else extent if isinstance(extent, int) else -1
        for axis, extent in enumerate(target)
    ]
    return tuple(dims) if dims.count(-1) <= 1 else None
