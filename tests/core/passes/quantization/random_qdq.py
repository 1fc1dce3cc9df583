"""Random explicitly quantized networks: every kind that commutes, kinds that do not, fan-outs, several scales."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.indexing import GatherMode, ScatterMode
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.slice import SampleMode
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network

SHAPE = (1, 4, 4, 4)
SCALES = (0.1, 0.1, 0.25, 0.37, np.float32(1e-6))
"""One of them twice, so that equal scales are common."""


def constant(network, values, dtype=np.float32):
    array = np.asarray(values, dtype)
    return network.add_constant(array.shape, array).get_output(0)


@st.composite
def networks(draw, steps=None):
    """A network of tensors `[1, 4, 4, 4]` with inputs x and y, in one quantized type and one real type."""
    steps = steps or (pair, pair, pair, fan_out, *COMMUTING, *COMMUTING, *COMPUTING)
    network = Network("random")
    real = draw(st.sampled_from([DataType.FLOAT, DataType.FLOAT, DataType.HALF]))
    narrow = draw(st.sampled_from([DataType.INT8, DataType.INT8, DataType.FP8]))
    tensors = [network.add_input(name, real, SHAPE) for name in "xy"]
    codes = []
    for _ in range(draw(st.integers(2, 14))):
        step = draw(st.sampled_from(steps))
        tensors.append(step(draw, network, tensors[-5:], narrow, codes))
    for tensor in draw(st.lists(st.sampled_from(tensors[2:]), min_size=1, max_size=2, unique_by=id)):
        network.mark_output(tensor)
    network.mark_output(tensors[-1])
    if codes and draw(st.booleans()):
        network.mark_output(draw(st.sampled_from(codes)))
    return network


def feeds(network, seed=0):
    """Values that saturate, values between codes and zeros."""
    generator = np.random.default_rng(seed)
    return {
        tensor.name: (
            generator.standard_normal(tensor.shape) * generator.choice([0, 1e-6, 1, 20], tensor.shape)
        ).astype(tensor.dtype.numpy)
        for tensor in network.inputs
    }


def quantized(network, x, scale, narrow, codes):
    """A tensor quantized and dequantized, each with a scale constant of its own."""
    quantize = network.add_quantize(x, constant(network, scale), narrow)
    codes.append(quantize.get_output(0))
    return network.add_dequantize(codes[-1], constant(network, scale), x.dtype).get_output(0)


def pair(draw, network, tensors, narrow, codes):
    return quantized(network, draw(st.sampled_from(tensors)), draw(st.sampled_from(SCALES)), narrow, codes)


def fan_out(draw, network, tensors, narrow, codes):
    """Two pairs of one tensor, joined again by a select."""
    x = draw(st.sampled_from(tensors))
    branches = [quantized(network, x, draw(st.sampled_from(SCALES)), narrow, codes) for _ in range(2)]
    condition = constant(network, np.indices(SHAPE).sum(0) % 2, bool)
    return network.add_select(condition, *branches).get_output(0)


def two_transposes(draw, network, tensors, narrow, codes):
    shuffle = network.add_shuffle(draw(st.sampled_from(tensors)))
    shuffle.first_transpose = (0, *draw(st.permutations([1, 2, 3])))
    shuffle.reshape_dims = draw(st.sampled_from([(1, 4, 4, 4), (1, 2, 8, 4), (0, -1, 4, 4)]))
    back = network.add_shuffle(shuffle.get_output(0))
    back.reshape_dims = SHAPE
    return back.get_output(0)


def squeeze_and_unsqueeze(draw, network, tensors, narrow, codes):
    axes = constant(network, [0], np.int64)
    squeeze = network.add_squeeze(draw(st.sampled_from(tensors)), axes)
    return network.add_unsqueeze(squeeze.get_output(0), axes).get_output(0)


def identity(draw, network, tensors, narrow, codes):
    return network.add_identity(draw(st.sampled_from(tensors))).get_output(0)


def reversed_and_filled(draw, network, tensors, narrow, codes):
    """A slice that walks backwards past the border; what it fills with may be no code's value."""
    x = draw(st.sampled_from(tensors))
    layer = network.add_slice(x, (0, 0, 4, 0), SHAPE, (1, 1, -1, 1))
    layer.mode = draw(st.sampled_from([SampleMode.FILL, SampleMode.WRAP, SampleMode.CLAMP, SampleMode.REFLECT]))
    if layer.mode is SampleMode.FILL and draw(st.booleans()):
        layer.set_input(4, constant(network, draw(st.sampled_from([0.0, 0.5, 0.3])), x.dtype.numpy))
    return layer.get_output(0)


def split_and_joined(draw, network, tensors, narrow, codes):
    x, y = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
    halves = [network.add_slice(one, (0, 0, 0, 0), (1, 2, 4, 4), (1, 1, 1, 1)).get_output(0) for one in (x, y)]
    if draw(st.booleans()):
        halves = [quantized(network, half, draw(st.sampled_from(SCALES)), narrow, codes) for half in halves]
    return joined(network, halves)


def joined(network, tensors):
    layer = network.add_concatenation(tensors)
    layer.axis = 1
    return layer.get_output(0)


def joined_with_a_constant(draw, network, tensors, narrow, codes):
    x = draw(st.sampled_from(tensors))
    half = network.add_slice(x, (0, 2, 0, 0), (1, 2, 4, 4), (1, 1, 1, 1)).get_output(0)
    value = draw(st.sampled_from([0.0, 0.25, 0.3]))
    return joined(network, [half, constant(network, np.full((1, 2, 4, 4), value), x.dtype.numpy)])


def gathered(draw, network, tensors, narrow, codes):
    layer = network.add_gather_v2(
        draw(st.sampled_from(tensors)), constant(network, [3, 0, 0, -2], np.int64), GatherMode.DEFAULT
    )
    layer.axis = draw(st.integers(1, 3))
    return layer.get_output(0)


def selected(draw, network, tensors, narrow, codes):
    condition = constant(network, np.indices(SHAPE).sum(0) % 3 > 0, bool)
    return network.add_select(condition, draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))).get_output(0)


def scattered(draw, network, tensors, narrow, codes):
    x, y = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
    indices = constant(network, np.random.default_rng(0).integers(0, 4, SHAPE), np.int64)
    layer = network.add_scatter(x, indices, y, ScatterMode.ELEMENT)
    layer.axis = 2
    return layer.get_output(0)


def padded_and_cropped(draw, network, tensors, narrow, codes):
    return network.add_padding_nd(draw(st.sampled_from(tensors)), (1, -1), (-1, 1)).get_output(0)


def resized(draw, network, tensors, narrow, codes):
    layer = network.add_resize(draw(st.sampled_from(tensors)))
    layer.shape = (1, 4, 8, 8)
    back = network.add_resize(layer.get_output(0))
    back.shape = SHAPE
    return back.get_output(0)


def pooled(draw, network, tensors, narrow, codes):
    layer = network.add_pooling_nd(draw(st.sampled_from(tensors)), PoolingType.MAX, (3, 3))
    layer.padding_nd = (1, 1)
    return layer.get_output(0)


def reduced(draw, network, tensors, narrow, codes):
    """The maximum or minimum of a channel, repeated."""
    operation = draw(st.sampled_from([ReduceOperation.MAX, ReduceOperation.MIN]))
    layer = network.add_reduce(draw(st.sampled_from(tensors)), operation, 0b1100, True)
    return network.add_slice(layer.get_output(0), (0, 0, 0, 0), SHAPE, (1, 1, 0, 0)).get_output(0)


def relu(draw, network, tensors, narrow, codes):
    return network.add_activation(draw(st.sampled_from(tensors)), ActivationType.RELU).get_output(0)


def turned(draw, network, tensors, narrow, codes):
    x = draw(st.sampled_from(tensors))
    layer = network.add_reverse_sequence(x, constant(network, [3], np.int64))
    layer.batch_axis, layer.sequence_axis = 0, 1
    return layer.get_output(0)


def averaged(draw, network, tensors, narrow, codes):
    layer = network.add_pooling_nd(draw(st.sampled_from(tensors)), PoolingType.AVERAGE, (3, 3))
    layer.padding_nd = (1, 1)
    return layer.get_output(0)


def leaky(draw, network, tensors, narrow, codes):
    layer = network.add_activation(draw(st.sampled_from(tensors)), ActivationType.LEAKY_RELU)
    layer.alpha = 0.3
    return layer.get_output(0)


def doubled(draw, network, tensors, narrow, codes):
    x = draw(st.sampled_from(tensors))
    scale, shift = (np.full(4, value, np.float32) for value in (2.0, 0.5))
    return network.add_scale(x, ScaleMode.CHANNEL, shift, scale).get_output(0)


def added(draw, network, tensors, narrow, codes):
    operands = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
    return network.add_elementwise(*operands, ElementWiseOperation.SUM).get_output(0)


def cast_and_back(draw, network, tensors, narrow, codes):
    """Through FP32 or BF16, perhaps with a pair between the casts, as FP16 models have it."""
    x = draw(st.sampled_from(tensors))
    there = network.add_cast(x, draw(st.sampled_from([DataType.FLOAT, DataType.BF16]))).get_output(0)
    if draw(st.booleans()):
        there = quantized(network, there, draw(st.sampled_from(SCALES)), narrow, codes)
    return network.add_cast(there, x.dtype).get_output(0)


def convolved(draw, network, tensors, narrow, codes):
    """A convolution with weights in real numbers that are quantized by a scale a channel."""
    x = draw(st.sampled_from(tensors))
    generator = np.random.default_rng(draw(st.integers(0, 3)))
    weights = constant(network, generator.standard_normal((4, 4, 1, 1)) * 0.3, x.dtype.numpy)
    scales = constant(network, [0.01, 0.02, 0.03, 0.02])
    quantize = network.add_quantize(weights, scales, narrow)
    quantize.axis = 0
    dequantize = network.add_dequantize(quantize.get_output(0), scales, x.dtype)
    dequantize.axis = 0
    layer = Convolution(num_output_maps=4, kernel_size_nd=(1, 1))
    return network.add_layer(layer, [x, dequantize.get_output(0)]).get_output(0)


COMMUTING = (
    two_transposes,
    squeeze_and_unsqueeze,
    identity,
    reversed_and_filled,
    split_and_joined,
    joined_with_a_constant,
    gathered,
    selected,
    scattered,
    padded_and_cropped,
    resized,
    pooled,
    reduced,
    relu,
    turned,
)
COMPUTING = (averaged, leaky, doubled, added, convolved, cast_and_back, cast_and_back)
