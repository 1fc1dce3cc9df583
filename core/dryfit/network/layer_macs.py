"""How much a layer multiplies and adds: the weight of a layer where layers are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dryfit.network.layer import Layer
from dryfit.network.layers.matrix_multiply import MatrixOperation
from dryfit.network.tensor import TensorSpec

Specs = Mapping[str, TensorSpec]
"""Tensor name to spec."""


def multiply_accumulates(layer: Layer, specs: Specs) -> int:
    """Multiply-accumulates of one run of a layer; 0 for kinds that multiply no weights or matrices.

    A padding of zeros counts as other elements do, and a product with a bias is none. Dynamic extents count as 1.

    Args:
        layer: of a network.
        specs: of its tensors.
    """
    count = _COUNTS.get(layer.kind)
    return 0 if count is None else count(layer, specs)


def _elements(specs: Specs, tensor: Any) -> int:
    return math.prod(max(extent, 1) for extent in specs[tensor.name].shape)


def _extent(specs: Specs, tensor: Any, axis: int) -> int:
    return max(specs[tensor.name].shape[axis], 1)


def _convolution(layer: Any, specs: Specs) -> int:
    """Each output element sums over the window and the channels of its group."""
    channels = _extent(specs, layer.inputs[0], 1) // layer.num_groups
    return _elements(specs, layer.outputs[0]) * int(channels) * math.prod(map(int, layer.kernel_size_nd))


def _deconvolution(layer: Any, specs: Specs) -> int:
    """Each input element is spread over the window and the output maps of its group."""
    maps = layer.num_output_maps // layer.num_groups
    return _elements(specs, layer.inputs[0]) * int(maps) * math.prod(map(int, layer.kernel_size_nd))


def _fully_connected(layer: Any, specs: Specs) -> int:
    """Each output sums over all of C, H and W."""
    return _elements(specs, layer.inputs[0]) * int(layer.num_output_channels)


def _matrix_multiply(layer: Any, specs: Specs) -> int:
    """Each output element sums over the shared axis."""
    shared = -2 if layer.op0 is MatrixOperation.TRANSPOSE else -1
    return _elements(specs, layer.outputs[0]) * _extent(specs, layer.inputs[0], shared)


def _einsum(layer: Any, specs: Specs) -> int:
    """Every combination of labels once. An ellipsis counts with the axes that it stands for in the longest operand."""
    extents: dict[str, int] = {}
    ellipsis = 1
    for labels, tensor in zip(layer.equation.replace(" ", "").split("->")[0].split(","), layer.inputs, strict=True):
        before, dots, after = labels.partition("...")
        shape = [max(extent, 1) for extent in specs[tensor.name].shape]
        middle = len(shape) - len(before) - len(after)
        if dots:
            ellipsis = max(ellipsis, math.prod(shape[len(before) : len(before) + middle]))
        named = [*shape[: len(before)], *shape[len(before) + middle :]]
        for label, extent in zip(before + after, named, strict=True):
            extents[label] = max(extents.get(label, 1), extent)
    return math.prod(extents.values()) * ellipsis


_COUNTS: dict[str, Callable[[Any, Specs], int]] = {
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "fully_connected": _fully_connected,
    "matrix_multiply": _matrix_multiply,
    "einsum": _einsum,
}
