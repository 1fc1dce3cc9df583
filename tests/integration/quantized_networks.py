"""ResNet-50 and MobileNetV2 as a quantizer writes them for TensorRT, with any number of channels.

Each weighted layer has a pair of quantize and dequantize layers at its input and INT8 weights with a scale a channel;
a batch normalization and an activation follow in real numbers; residual inputs are quantized, each tensor once, outputs
of weighted layers are not.

Source: K. He et al., "Deep Residual Learning for Image Recognition" (2015), table 1; M. Sandler et al., "MobileNetV2"
(2018), table 2; TensorRT, Working with Quantized Types, Q/DQ Layer-Placement Recommendations.
"""

from __future__ import annotations

import numpy as np

import dryfit
from dryfit.network.layers.activation import ScaleMode
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.window_layer import PoolingType

_STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
"""Of ResNet-50: blocks, channels of their 3x3 convolutions, stride of the first one."""
_BOTTLENECKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Of MobileNetV2: expansion, channels, blocks, stride of the first one."""


class QuantizedNetwork:
    """A network that grows at its end.

    Args:
        name: of the network.
        share: of the channels that the real network has.
        extent: rows and columns of the picture.
    """

    def __init__(self, name: str, share: float, extent: int) -> None:
        self.network = dryfit.Network(name)
        self.share = share
        self.value = self.network.add_input("image", dryfit.DataType.FLOAT, (1, 3, extent, extent))
        self._pairs = {}
        self._generator = np.random.default_rng(0)

    def channels(self, count):
        """So many channels of the real network."""
        return max(8, round(count * self.share))

    def constant(self, values):
        return self.network.add_constant(values.shape, values).get_output(0)

    def quantized(self, value, scale=0.05):
        """A tensor quantized and dequantized, by one pair for all readers."""
        if value.name not in self._pairs:
            factor = self.constant(np.array(scale, np.float32))
            whole = self.network.add_quantize(value, factor).get_output(0)
            self._pairs[value.name] = self.network.add_dequantize(whole, factor).get_output(0)
        return self._pairs[value.name]

    def weights(self, *shape):
        """INT8 weights and their dequantization."""
        values = self._generator.integers(-127, 128, shape).astype(np.int8)
        scales = self._generator.uniform(0.5, 1.5, shape[0]) / (60 * np.sqrt(values[0].size))
        real = self.network.add_dequantize(self.constant(values), self.constant(scales.astype(np.float32)))
        real.axis = 0
        return real.get_output(0)

    def convolve(self, outputs, kernel=1, stride=1, groups=1, limits=None):
        """A convolution of the quantized value with its normalization, and with limits a ReLU or a clip."""
        inputs, side = self.value.shape[1], kernel // 2
        weights = self.weights(outputs, inputs // groups, kernel, kernel)
        window = {"stride_nd": (stride, stride), "pre_padding": (side, side), "post_padding": (side, side)}
        layer = Convolution(num_output_maps=outputs, kernel_size_nd=(kernel, kernel), num_groups=groups, **window)
        value = self.network.add_layer(layer, [self.quantized(self.value), weights]).get_output(0)
        factor, shift = self._generator.uniform(0.5, 1.5, outputs), self._generator.uniform(-0.5, 0.5, outputs)
        scale = (one.astype(np.float32) for one in (shift, factor))
        self.value = self.network.add_scale(value, ScaleMode.CHANNEL, *scale).get_output(0)
        if limits:
            self.activate(limits)

    def activate(self, limits):
        """A ReLU, or a clip."""
        kind = dryfit.ActivationType.RELU if limits[1] == np.inf else dryfit.ActivationType.CLIP
        layer = self.network.add_activation(self.value, kind)
        layer.alpha, layer.beta = limits if np.isfinite(limits[1]) else (0.0, 0.0)
        self.value = layer.get_output(0)

    def add(self, shortcut):
        """The sum with a shortcut, which is quantized."""
        operands = (self.value, self.quantized(shortcut))
        self.value = self.network.add_elementwise(*operands, ElementWiseOperation.SUM).get_output(0)

    def classify(self, classes):
        """The average over the picture, and a fully connected layer."""
        mean = self.network.add_reduce(self.quantized(self.value), ReduceOperation.AVG, 0b1100, keep_dims=True)
        self.value = mean.get_output(0)
        self.convolve(classes)
        self.network.mark_output(self.value)
        return self.network


def resnet50(share=1.0, extent=224):
    """ResNet-50."""
    growing, relu = QuantizedNetwork("resnet50", share, extent), (0.0, np.inf)
    growing.convolve(growing.channels(64), 7, 2, limits=relu)
    pool = growing.network.add_pooling_nd(growing.quantized(growing.value), PoolingType.MAX, (3, 3))
    pool.stride_nd, pool.pre_padding, pool.post_padding = (2, 2), (1, 1), (1, 1)
    growing.value = pool.get_output(0)
    for blocks, width, first_stride in _STAGES:
        inner, outer = growing.channels(width), growing.channels(4 * width)
        for block in range(blocks):
            begin, stride = growing.value, first_stride if block == 0 else 1
            growing.convolve(inner, limits=relu)
            growing.convolve(inner, 3, stride, limits=relu)
            growing.convolve(outer)
            end = growing.value
            if block == 0:
                growing.value = begin
                growing.convolve(outer, stride=stride)
                begin, growing.value = growing.value, end
            growing.add(begin)
            growing.activate(relu)
    return growing.classify(1000)


def mobilenetv2(share=1.0, extent=224):
    """MobileNetV2."""
    growing, clip = QuantizedNetwork("mobilenetv2", share, extent), (0.0, 6.0)
    growing.convolve(growing.channels(32), 3, 2, limits=clip)
    for expansion, width, blocks, first_stride in _BOTTLENECKS:
        for block in range(blocks):
            begin, stride = growing.value, first_stride if block == 0 else 1
            inner = begin.shape[1] * expansion
            if expansion > 1:
                growing.convolve(inner, limits=clip)
            growing.convolve(inner, 3, stride, groups=inner, limits=clip)
            growing.convolve(growing.channels(width))
            if stride == 1 and growing.value.shape[1] == begin.shape[1]:
                growing.add(begin)
    growing.convolve(growing.channels(1280), limits=clip)
    return growing.classify(1001)
