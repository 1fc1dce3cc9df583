"""Normalizations: over the batch a scale layer, over spatial axes and features a normalization layer; and softmax.

Up to opset 12, softmax, its logarithm, and its limit flatten the axes from `axis` on into one.
"""

from __future__ import annotations

import math

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Scale, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation, Select, UnaryOperation
from dryfit.network.layers.normalization import Lrn, Normalization, Softmax
from dryfit.network.layers.ranking import TopKOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.shape_inference import mask_of
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
from dryfit.onnx.operators.reduce import top_k
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import flatten_to_matrix, lengths_of, reshape, squeeze, unsqueeze, with_rank
from dryfit.onnx.tensors import NodeInput


def _along_channels(node: Node, vector: NodeInput, rank: int) -> NodeInput:
    """A vector with one value a channel, as `[1, C, 1, ...]`."""
    return unsqueeze(node, vector, (0, *range(2, rank))) if rank > 1 else vector


def _mean(node: Node, x: NodeInput, axes: tuple[int, ...]) -> NodeInput:
    return reduce(node, ReduceOperation.AVG, x, axes, keep_dims=True)


def _variance(node: Node, x: NodeInput, mean: NodeInput, axes: tuple[int, ...]) -> NodeInput:
    difference = subtract(node, x, mean)
    return _mean(node, multiply(node, difference, difference), axes)


def _compute_type(node: Node, x: NodeInput) -> DataType:
    """The type that `stash_type` asks for."""
    if x.dtype is DataType.DOUBLE:
        return DataType.DOUBLE
    return DataType.FLOAT if node.get_int("stash_type", 1) == 1 else x.dtype


@operator("BatchNormalization")
def batch_normalization(node: Node) -> list[NodeInput]:
    """Scale with one coefficient a channel where the statistics are known; in training mode a chain."""
    x = node[0]
    if not node.get_int("spatial", 1):
        raise node.refusal(
            "Only per-channel statistics are supported",
            code=ErrorCode.UNSUPPORTED_NODE_ATTR,
            found="spatial=0",
            remedy="Export the model with spatial=1",
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


def _normalized(node: Node, x: NodeInput, mean: NodeInput, variance: NodeInput) -> NodeInput:
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias` with the node's scale and bias, one value a channel."""
    work = mean.dtype
    mean, variance = _along_channels(node, mean, x.rank), _along_channels(node, variance, x.rank)
    gamma, beta = (cast(node, _along_channels(node, node[index], x.rank), work) for index in (1, 2))
    deviation = unary(
        node, UnaryOperation.SQRT, add(node, variance, scalar(node, node.get_float("epsilon", 1e-5), variance))
    )
    factor = divide(node, gamma, deviation)
    return cast(node, add(node, multiply(node, subtract(node, cast(node, x, work), mean), factor), beta), x.dtype)


def _training_batch_normalization(node: Node) -> list[NodeInput]:
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
def instance_normalization(node: Node) -> NodeInput:
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
def group_normalization(node: Node) -> NodeInput:
    """Normalization over the spatial axes and the channels of a group."""
    x, groups = node[0], node.get_int("num_groups", 0)
    if groups < 1:
        raise node.refusal(
            "Attribute 'num_groups' is required",
            code=ErrorCode.INVALID_NODE,
            found=groups,
            remedy="Export the model with the attribute",
        )
    scale, bias = (_along_channels(node, node[index], x.rank) for index in (1, 2))
    layer = Normalization(
        axes=mask_of(range(2 if groups > 1 else 1, x.rank)),
        epsilon=node.get_float("epsilon", 1e-5),
        num_groups=groups,
        compute_precision=_compute_type(node, x),
    )
    return node.add(layer, x, scale, bias)


@operator("LayerNormalization")
def layer_normalization(node: Node) -> list[NodeInput]:
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
def rms_normalization(node: Node) -> NodeInput:
    """The input over the root of the mean of its squares, times the scale."""
    x, scale = node[0], node[1]
    axes = tuple(range(positive_axis(node, node.get_int("axis", -1), x.rank), x.rank))
    wide = cast(node, x, _compute_type(node, x))
    mean = _mean(node, multiply(node, wide, wide), axes)
    root = unary(node, UnaryOperation.SQRT, add(node, mean, scalar(node, node.get_float("epsilon", 1e-5), mean)))
    return multiply(node, cast(node, cast(node, divide(node, wide, root), x.dtype), scale.dtype), scale)


@operator("LRN")
def local_response_normalization(node: Node) -> NodeInput:
    """LRN."""
    layer = Lrn(
        window_size=node.get_int("size", 0),
        alpha=node.get_float("alpha", 1e-4),
        beta=node.get_float("beta", 0.75),
        k=node.get_float("bias", 1.0),
    )
    return node.add(layer, node[0])


@operator("LpNormalization")
def lp_normalization(node: Node) -> NodeInput:
    """The input over its norm along an axis, 0 where the norm is 0."""
    x, p = node[0], node.get_int("p", 2)
    if p not in (1, 2):
        raise node.refusal(
            "This norm is not supported",
            code=ErrorCode.UNSUPPORTED_NODE_ATTR,
            found=f"p={p}",
            allowed="1, 2",
            remedy="Use p=1 or p=2",
        )
    axes = (positive_axis(node, node.get_int("axis", -1), x.rank),)
    powers = unary(node, UnaryOperation.ABS, x) if p == 1 else multiply(node, x, x)
    norm = reduce(node, ReduceOperation.SUM, powers, axes, keep_dims=True)
    norm = norm if p == 1 else unary(node, UnaryOperation.SQRT, norm)
    zero = scalar(node, 0, norm)
    is_zero = elementwise(node, ElementWiseOperation.EQUAL, norm, zero)
    return node.add(Select(), is_zero, zero, divide(node, x, norm))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(node: Node) -> NodeInput:
    """The input less its mean, over its deviation."""
    x = node[0]
    axes = positive_axes(node, node.get_ints("axes") or (0, 2, 3), x.rank)
    mean = _mean(node, x, axes)
    deviation = unary(node, UnaryOperation.SQRT, _variance(node, x, mean, axes))
    return divide(node, subtract(node, x, mean), add(node, deviation, scalar(node, 1e-9, deviation)))


@operator("Softmax", "LogSoftmax", "Hardmax")
def flattening_softmax(node: Node) -> NodeInput:
    """Softmax over all axes from `axis` on: over one axis where only one is longer than 1, else over the flattened."""
    x = node[0]
    axis = positive_axis(node, node.get_int("axis", 1), x.rank)
    long = [index for index in range(axis, x.rank) if x.shape[index] != 1]
    if len(long) <= 1:
        return _over(node, x, long[0] if long else min(axis, x.rank - 1))
    return reshape(node, _over(node, flatten_to_matrix(node, x, axis), 1), lengths_of(node, x))


@operator("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(node: Node) -> NodeInput:
    """Softmax; for its logarithm, the input less its maximum and the logarithm of the sum of its powers of e."""
    x = node[0]
    return _over(node, x, positive_axis(node, node.get_int("axis", -1), x.rank))


def _over(node: Node, x: NodeInput, axis: int) -> NodeInput:
    if x.spec.is_static and math.prod(x.shape) == 0:
        return x
    if node.op_type == "Softmax":
        return node.add(Softmax(axes=mask_of([axis])), x)
    if node.op_type == "LogSoftmax":
        # The logarithm of a softmax layer's output would be minus infinity where a power of e underflows.
        shifted = subtract(node, x, reduce(node, ReduceOperation.MAX, x, [axis], keep_dims=True))
        total = reduce(node, ReduceOperation.SUM, unary(node, UnaryOperation.EXP, shifted), [axis], keep_dims=True)
        return subtract(node, shifted, unary(node, UnaryOperation.LOG, total))
    extent = node.static_shape(x, "The input of Hardmax")[axis]
    _, best = top_k(node, x, TopKOperation.MAX, 1, axis)
    positions = np.arange(extent).reshape([-1 if index == axis else 1 for index in range(x.rank)])
    return cast(node, elementwise(node, ElementWiseOperation.EQUAL, best, node.array(positions, np.int64)), x.dtype)
