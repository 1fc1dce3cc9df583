"""Layers that hypothesis draws: shapes that are no multiple of anything, and the parameters that kernels stumble over.

Weights and data come from a random generator with a drawn seed, as their values decide nothing. A kind without a
function here is taken from `example_layers`, whose parameters are benign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.testing.example_layers import EXAMPLES, Examples

Draw = Callable[[st.SearchStrategy[Any]], Any]

_CHANNELS = st.sampled_from([1, 2, 3, 4, 5, 8, 13, 16, 17, 33])
_EXTENTS = st.sampled_from([1, 2, 3, 5, 7, 8, 9, 16, 19])
_ACTIVATIONS = st.sampled_from([*ActivationType])
_Op = ElementWiseOperation
_OPERATIONS = st.sampled_from([_Op.SUM, _Op.PROD, _Op.MAX, _Op.MIN, _Op.SUB])
_TRANSPOSED = st.sampled_from([MatrixOperation.NONE, MatrixOperation.TRANSPOSE])
_RANKS = {
    **dict.fromkeys(("convolution", "deconvolution", "pooling"), (4, 4, 3)),
    **dict.fromkeys(("resize", "lrn", "normalization"), (4,)),
}
"""Kind to the ranks of its first input, where not any of 2 to 4 will do; the frequent ones stand twice."""


def draw_layer(draw: Draw, kind: str, dtype: DataType) -> Layer | None:
    """A layer of a kind that reads the network's inputs; None where what was drawn does not fit together."""
    network = Network(f"one {kind}")
    rank = draw(st.sampled_from(_RANKS.get(kind, (4, 4, 3, 2))))
    shape = (draw(st.sampled_from([1, 1, 2, 3])), draw(_CHANNELS), draw(_EXTENTS), draw(_EXTENTS))[:rank]
    x = network.add_input("x", dtype, shape)
    examples = Examples(network, x, np.random.default_rng(draw(st.integers(0, 1 << 16))))
    try:
        layer = DRAWN[kind](draw, examples) if kind in DRAWN else EXAMPLES[kind](examples)
        network.refresh_shapes()
    except DryfitError:
        return None
    return layer


def draw_epilogue(draw: Draw, value: Tensor, examples: Examples) -> Layer | None:
    """A layer that kernels often take along; None where it does not fit the value."""
    network = examples.network
    kind = draw(st.sampled_from(["activation", "residual", "clip", *(["scale"] if len(value.shape) > 1 else [])]))
    try:
        if kind == "residual":
            other = network.add_input(f"residual{network.num_inputs}", value.dtype, value.shape)
            layer: Layer = network.add_elementwise(value, other, ElementWiseOperation.SUM)
        elif kind == "scale":
            shift, scale = examples.weights(value.shape[1]), examples.rng.uniform(0.5, 1.5, value.shape[1])
            layer = network.add_scale(value, ScaleMode.CHANNEL, shift, scale.astype(np.float32))
        else:
            layer = network.add_activation(value, ActivationType.CLIP if kind == "clip" else ActivationType.RELU)
            layer.alpha, layer.beta = (-0.5, 0.75) if kind == "clip" else (0.0, 0.0)
        network.refresh_shapes()
    except DryfitError:
        return None
    return layer


def _window(draw: Draw, layer: Any, *, with_dilation: bool = True) -> None:
    """Stride, padding and dilation of a layer whose window is set; no window lies in the padding alone."""
    window, axes = layer.window, range(len(layer.window))
    layer.stride_nd = tuple(draw(st.integers(1, 3)) for _ in axes)
    if with_dilation:
        layer.dilation_nd = tuple(draw(st.sampled_from([1, 1, 2])) for _ in axes)
    layer.pre_padding = tuple(draw(st.integers(0, extent - 1)) for extent in window)
    layer.post_padding = tuple(draw(st.integers(0, extent - 1)) for extent in window)


def _extents(draw: Draw, e: Examples, most: int) -> tuple[int, ...]:
    """A window over the spatial axes."""
    return tuple(draw(st.integers(1, most)) for _ in range(e.rank - 2))


def _groups(draw: Draw, channels: int) -> int:
    """How many groups: one, one for each channel, or a number between."""
    return int(draw(st.sampled_from([n for n in range(1, channels + 1) if channels % n == 0] + [1, channels])))


def _convolution(draw: Draw, e: Examples) -> Layer:
    kernel, groups = _extents(draw, e, 5), _groups(draw, e.channels)
    maps = groups * draw(st.sampled_from([1, 2, 3, 9]))
    bias = e.weights(maps) if draw(st.booleans()) else None
    layer = e.network.add_convolution_nd(e.x, maps, kernel, e.weights(maps, e.channels // groups, *kernel), bias)
    layer.num_groups = groups
    _window(draw, layer)
    return layer


def _deconvolution(draw: Draw, e: Examples) -> Layer:
    kernel, groups = _extents(draw, e, 4), _groups(draw, e.channels)
    each = draw(st.sampled_from([1, 2, 5]))
    weights = e.weights(e.channels, each, *kernel)
    layer = e.network.add_deconvolution_nd(e.x, groups * each, kernel, weights, e.weights(groups * each))
    layer.num_groups = groups
    _window(draw, layer, with_dilation=False)
    return layer


def _pooling(draw: Draw, e: Examples) -> Layer:
    layer = e.network.add_pooling_nd(e.x, draw(st.sampled_from([*PoolingType])), _extents(draw, e, 4))
    layer.average_count_excludes_padding = draw(st.booleans())
    layer.blend_factor = 0.25
    _window(draw, layer, with_dilation=False)
    return layer


def _activation(draw: Draw, e: Examples) -> Layer:
    layer = e.network.add_activation(e.x, draw(_ACTIVATIONS))
    layer.alpha, layer.beta = draw(st.sampled_from([(0.25, 0.75), (0.0, 0.0), (1.0, 1.5)]))
    return layer


def _elementwise(draw: Draw, e: Examples) -> Layer:
    """Of two inputs, or of an input and a constant; each may be repeated along some axes."""
    shape = tuple(draw(st.sampled_from([extent, extent, 1])) for extent in e.x.shape)
    if e.x.dtype.is_floating_point and draw(st.booleans()):
        other = e.operand(e.weights(*shape))
    else:
        other = e.network.add_input("y", e.x.dtype, shape)
    first, second = (e.x, other) if draw(st.booleans()) else (other, e.x)
    return e.network.add_elementwise(first, second, draw(_OPERATIONS))


def _scale(draw: Draw, e: Examples) -> Layer:
    mode = draw(st.sampled_from([*ScaleMode]))
    count = {ScaleMode.UNIFORM: 1, ScaleMode.CHANNEL: e.channels}.get(mode, int(np.prod(e.x.shape[1:])))
    factors = e.rng.uniform(0.5, 1.5, count).astype(np.float32)
    return e.network.add_scale(e.x, mode, e.weights(count), factors)


def _softmax(draw: Draw, e: Examples) -> Layer:
    layer = e.network.add_softmax(e.x)
    layer.axes = 1 << draw(st.integers(0, e.rank - 1))
    return layer


def _concatenation(draw: Draw, e: Examples) -> Layer:
    axis, shape = draw(st.integers(0, e.rank - 1)), list(e.x.shape)
    inputs = [e.x]
    for index in range(draw(st.integers(0, 3))):
        shape[axis] = draw(_CHANNELS)
        inputs.append(e.network.add_input(f"y{index}", e.x.dtype, shape))
    layer = e.network.add_concatenation(inputs)
    layer.axis = axis
    return layer


def _matrix_multiply(draw: Draw, e: Examples) -> Layer:
    """With a constant, or of two inputs; transposed or not."""
    first, second = draw(_TRANSPOSED), draw(_TRANSPOSED)
    summed = e.x.shape[-2] if first is MatrixOperation.TRANSPOSE else e.x.shape[-1]
    columns = draw(_CHANNELS)
    values = e.weights(columns, summed)
    if second is MatrixOperation.NONE:
        values = values.T
    values = np.ascontiguousarray(np.broadcast_to(values, (*e.x.shape[:-2], *values.shape)))
    is_constant = e.x.dtype.is_floating_point and draw(st.booleans())
    other = e.operand(values) if is_constant else e.network.add_input("y", e.x.dtype, values.shape)
    return e.network.add_matrix_multiply(e.x, first, other, second)


def _reduce(draw: Draw, e: Examples) -> Layer:
    operation = draw(st.sampled_from([ReduceOperation.AVG, ReduceOperation.MAX, ReduceOperation.SUM]))
    every, spatial = (1 << e.rank) - 1, (1 << e.rank) - 4 or 1
    axes = draw(st.one_of(st.just(spatial), st.integers(1, every)))
    return e.network.add_reduce(e.x, operation, axes, draw(st.booleans()))


DRAWN: Mapping[str, Callable[[Draw, Examples], Layer]] = {
    "activation": _activation,
    "concatenation": _concatenation,
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "elementwise": _elementwise,
    "matrix_multiply": _matrix_multiply,
    "pooling": _pooling,
    "reduce": _reduce,
    "scale": _scale,
    "softmax": _softmax,
}
"""Layer kind to what draws a layer of it."""
