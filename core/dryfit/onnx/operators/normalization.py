"""Normalizations: over the batch a scale layer, over spatial axes and features a normalization layer."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.axes_mask import mask_of
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.lrn import Lrn
from dryfit.network.layers.normalization import Normalization
from dryfit.network.layers.reduce import ReduceOperation
from dryfit.network.layers.scale import Scale, ScaleMode
from dryfit.network.layers.select import Select
from dryfit.network.layers.unary import UnaryOperation
from dryfit.onnx.composition import (
    add,
    cast,
    divide,
    elementwise,
    multiply,
    positive_axes,
    positive_axis,
    reduce,
    scalar,
    subtract,
    unary,
)
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import squeeze, unsqueeze, with_rank


def _along_channels(node: Node, vector: Operand, rank: int) -> Operand:
    """A vector with one value a channel, as `[1, C, 1, ...]`."""
    return unsqueeze(node, vector, (0, *range(2, rank))) if rank > 1 else vector


def _mean(node: Node, x: Operand, axes: tuple[int, ...]) -> Operand:
    return reduce(node, ReduceOperation.AVG, x, axes, keep_dims=True)


def _variance(node: Node, x: Operand, mean: Operand, axes: tuple[int, ...]) -> Operand:
    difference = subtract(node, x, mean)
    return _mean(node, multiply(node, difference, difference), axes)


def _compute_type(node: Node, x: Operand) -> DataType:
    """The type that `stash_type` asks for."""
    if x.dtype is DataType.DOUBLE:
        return DataType.DOUBLE
    return DataType.FLOAT if node.get_int("stash_type", 1) == 1 else x.dtype


@operator("BatchNormalization")
def batch_normalization(node: Node) -> list[Operand]:
    """Scale with one coefficient a channel where the statistics are known; in training mode a chain."""
    x = node[0]
    if not node.get_int("spatial", 1):
        raise node.refusal(
            "Only statistics a channel are supported", code=ErrorCode.UNSUPPORTED_NODE_ATTR, found="spatial=0"
        )
    if node.get_int("training_mode", 0):
        return _training_batch_normalization(node)
    gamma, beta, mean, variance = (node[index].value for index in range(1, 5))
    epsilon = node.get_float("epsilon", 1e-5)
    if gamma is None or beta is None or mean is None or variance is None or x.rank < 2:
        return [_normalized(node, x, node[3], node[4])]
    scale = gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
    shift = beta.astype(np.float64) - mean.astype(np.float64) * scale
    dtype = np.float64 if x.dtype is DataType.DOUBLE else np.float32
    layer = Scale(mode=ScaleMode.CHANNEL, scale=scale.astype(dtype), shift=shift.astype(dtype), channel_axis=1)
    return [node.add(layer, x)]


def _normalized(node: Node, x: Operand, mean: Operand, variance: Operand) -> Operand:
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias` with the node's scale and bias, one value a channel."""
    work = mean.dtype
    mean, variance = _along_channels(node, mean, x.rank), _along_channels(node, variance, x.rank)
    gamma, beta = (cast(node, _along_channels(node, node[index], x.rank), work) for index in (1, 2))
    deviation = unary(
        node, UnaryOperation.SQRT, add(node, variance, scalar(node, node.get_float("epsilon", 1e-5), variance))
    )
    factor = divide(node, gamma, deviation)
    return cast(node, add(node, multiply(node, subtract(node, cast(node, x, work), mean), factor), beta), x.dtype)


def _training_batch_normalization(node: Node) -> list[Operand]:
    """The output, and the running mean and variance moved towards those of this batch."""
    x, momentum = cast(node, node[0], node[3].dtype), node.get_float("momentum", 0.9)
    axes = (0, *range(2, x.rank))
    mean = reduce(node, ReduceOperation.AVG, x, axes, keep_dims=False)
    variance = _variance(node, x, _along_channels(node, mean, x.rank), axes)
    variance = squeeze(node, variance, axes)
    running = [
        add(
            node,
            multiply(node, old, scalar(node, momentum, old)),
            multiply(node, new, scalar(node, 1 - momentum, new)),
        )
        for old, new in ((node[3], mean), (node[4], variance))
    ]
    return [_normalized(node, node[0], mean, variance), *running]


@operator("InstanceNormalization")
def instance_normalization(node: Node) -> Operand:
    """Normalization over the spatial axes."""
    x = node[0]
    scale, bias = (_along_channels(node, node[index], x.rank) for index in (1, 2))
    layer = Normalization(
        axes=mask_of(range(2, x.rank)),
        epsilon=node.get_float("epsilon", 1e-5),
        compute_precision=DataType.DOUBLE if x.dtype is DataType.DOUBLE else DataType.FLOAT,
    )
    return node.add(layer, x, scale, bias)


@operator("GroupNormalization")
def group_normalization(node: Node) -> Operand:
    """Normalization over the spatial axes and the channels of a group."""
    x, groups = node[0], node.get_int("num_groups", 0)
    if groups < 1:
        raise node.refusal("Attribute 'num_groups' is required", code=ErrorCode.INVALID_NODE, found=groups)
    scale, bias = (_along_channels(node, node[index], x.rank) for index in (1, 2))
    layer = Normalization(
        axes=mask_of(range(2 if groups > 1 else 1, x.rank)),
        epsilon=node.get_float("epsilon", 1e-5),
        num_groups=groups,
        compute_precision=_compute_type(node, x),
    )
    return node.add(layer, x, scale, bias)


@operator("LayerNormalization")
def layer_normalization(node: Node) -> list[Operand]:
    """Normalization over the last axes; mean and inverse deviation, where asked for, by a chain of their own."""
    x = node[0]
    axes = tuple(range(positive_axis(node, node.get_int("axis", -1), x.rank), x.rank))
    work, epsilon = _compute_type(node, x), node.get_float("epsilon", 1e-5)
    scale = with_rank(node, node[1], x.rank)
    bias = node.input(2)
    layer = Normalization(axes=mask_of(axes), epsilon=epsilon, compute_precision=work)
    results = [node.add(layer, x, scale, None if bias is None else with_rank(node, bias, x.rank))]
    if any(node.proto.output[1:]):
        wide = cast(node, x, work)
        mean = _mean(node, wide, axes)
        variance = _variance(node, wide, mean, axes)
        deviation = unary(node, UnaryOperation.SQRT, add(node, variance, scalar(node, epsilon, variance)))
        results += [mean, unary(node, UnaryOperation.RECIP, deviation)]
    return results


@operator("RMSNormalization")
def rms_normalization(node: Node) -> Operand:
    """The input over the root of the mean of its squares, times the scale."""
    x, scale = node[0], node[1]
    axes = tuple(range(positive_axis(node, node.get_int("axis", -1), x.rank), x.rank))
    wide = cast(node, x, _compute_type(node, x))
    mean = _mean(node, multiply(node, wide, wide), axes)
    root = unary(node, UnaryOperation.SQRT, add(node, mean, scalar(node, node.get_float("epsilon", 1e-5), mean)))
    return multiply(node, cast(node, cast(node, divide(node, wide, root), x.dtype), scale.dtype), scale)


@operator("LRN")
def local_response_normalization(node: Node) -> Operand:
    """LRN."""
    layer = Lrn(
        window_size=node.get_int("size", 0),
        alpha=node.get_float("alpha", 1e-4),
        beta=node.get_float("beta", 0.75),
        k=node.get_float("bias", 1.0),
    )
    return node.add(layer, node[0])


@operator("LpNormalization")
def lp_normalization(node: Node) -> Operand:
    """The input over its norm along an axis, 0 where the norm is 0."""
    x, p = node[0], node.get_int("p", 2)
    if p not in (1, 2):
        raise node.refusal(
            "The norm is not supported", code=ErrorCode.UNSUPPORTED_NODE_ATTR, found=f"p={p}", allowed="1, 2"
        )
    axes = (positive_axis(node, node.get_int("axis", -1), x.rank),)
    powers = unary(node, UnaryOperation.ABS, x) if p == 1 else multiply(node, x, x)
    norm = reduce(node, ReduceOperation.SUM, powers, axes, keep_dims=True)
    norm = norm if p == 1 else unary(node, UnaryOperation.SQRT, norm)
    zero = scalar(node, 0, norm)
    is_zero = elementwise(node, ElementWiseOperation.EQUAL, norm, zero)
    return node.add(Select(), is_zero, zero, divide(node, x, norm))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(node: Node) -> Operand:
    """The input less its mean, over its deviation."""
    x = node[0]
    axes = positive_axes(node, node.get_ints("axes") or (0, 2, 3), x.rank)
    mean = _mean(node, x, axes)
    deviation = unary(node, UnaryOperation.SQRT, _variance(node, x, mean, axes))
    return divide(node, subtract(node, x, mean), add(node, deviation, scalar(node, 1e-9, deviation)))
