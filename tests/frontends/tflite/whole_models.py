"""Models with the architectures of MLPerf Tiny's four tasks, with random weights, and a small one of many operators.

Source of the architectures: MLPerf Tiny Benchmark (Banbury et al., 2021), section 4: keyword spotting (DS-CNN), visual
wake words (MobileNetV1 of width 0.25), image classification (ResNet of 8 layers), anomaly detection (an autoencoder).
"""

from __future__ import annotations

import math

import numpy as np
from tests.tflite_models import TfliteModel

RELU = 1


class QuantizedModel:
    """Adds layers whose scales let codes spread over their range."""

    def __init__(self, shape, dtype="int8", seed=0):
        self.random = np.random.default_rng(seed)
        self.model = TfliteModel()
        self.dtype = dtype
        self.offset = 128 if dtype == "uint8" else 0
        self.count = 0
        self.shapes, self.grids = {}, {}
        self.input = self._known(self.model.input("input", shape, dtype, **self._grid(0.02, 4)), shape, (0.02, 4))

    def _grid(self, scale, zero_point):
        if self.dtype == "int16":  # symmetric, with the reach that 8 bits have from the lowest code
            return {"scale": scale / 128, "zero_point": 0}
        return {"scale": scale, "zero_point": zero_point + self.offset}

    def _known(self, number, shape, grid):
        self.shapes[number], self.grids[number] = tuple(shape), grid
        return number

    def tensor(self, shape, scale, zero_point):
        """A new tensor."""
        self.count += 1
        name = f"layer_{self.count}"
        number = self.model.tensor(name, shape, self.dtype, **self._grid(scale, zero_point))
        return self._known(number, shape, (scale, zero_point))

    def weights(self, kernel, axis, x, summed):
        """Weights and bias, and the scale of sums: one scale per channel in INT8 models, one for all in UINT8 ones."""
        maps = kernel[axis]
        is_channel = self.dtype != "uint8" and len(kernel) == 4
        scale = self.random.uniform(0.004, 0.012, maps) if is_channel else np.asarray(0.008)
        growth = 0.008 * math.sqrt(summed) * 60
        if self.dtype == "int16":  # as large as what comes in: C leaves undefined what a softmax of large scales gives
            scale, growth = scale / growth, 1.0
        low, high, zero_point, dtype = (0, 256, 127, "uint8") if self.dtype == "uint8" else (-127, 128, 0, "int8")
        codes = self.random.integers(low, high, kernel).astype(dtype)
        grid = {"scale": scale.astype(np.float32), "zero_point": zero_point, "axis": axis if is_channel else 0}
        w = self.model.constant(f"weights_{self.count}", codes, **grid)
        units = (np.float32(self._grid(*self.grids[x])["scale"]) * scale).astype(np.float32)
        bias = self.random.integers(-2000, 2000, maps).astype(np.int32)
        bias = bias * np.int64(128) + bias % 128 if self.dtype == "int16" else bias
        b = self.model.constant(f"bias_{self.count}", bias, scale=units)
        return w, b, float(self.grids[x][0] * growth)

    def convolution(self, x, maps, window, stride=1, activation=RELU, padding=0):
        """A convolution with a fused activation."""
        batch, height, width, channels = self.shapes[x]
        w, b, scale = self.weights((maps, *window, channels), 0, x, math.prod(window) * channels)
        y = self.tensor((batch, -(-height // stride), -(-width // stride), maps), scale, -128 if activation else 3)
        fields = {"strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1, "padding": padding}
        self.model.operator("CONV_2D", [x, w, b], [y], "Conv2DOptions", fusedActivationFunction=activation, **fields)
        return y

    def depthwise(self, x, stride=1):
        """A depthwise convolution of 3 by 3 with ReLU."""
        batch, height, width, channels = self.shapes[x]
        w, b, scale = self.weights((1, 3, 3, channels), 3, x, 9)
        y = self.tensor((batch, -(-height // stride), -(-width // stride), channels), scale, -128)
        fields = {
            "strideH": stride,
            "strideW": stride,
            "dilationHFactor": 1,
            "dilationWFactor": 1,
            "depthMultiplier": 1,
        }
        options = {"fusedActivationFunction": RELU, **fields}
        self.model.operator("DEPTHWISE_CONV_2D", [x, w, b], [y], "DepthwiseConv2DOptions", **options)
        return y

    def add(self, x, other):
        """A sum with ReLU."""
        y = self.tensor(self.shapes[x], self.grids[x][0] * 1.5, -128)
        self.model.operator("ADD", [x, other], [y], "AddOptions", fusedActivationFunction=RELU)
        return y

    def averaged(self, x):
        """The average of the whole image, as a matrix."""
        batch, height, width, channels = self.shapes[x]
        y = self.tensor((batch, 1, 1, channels), *self.grids[x])
        window = {"filterHeight": height, "filterWidth": width, "strideH": height, "strideW": width, "padding": 1}
        self.model.operator("AVERAGE_POOL_2D", [x], [y], "Pool2DOptions", **window)
        flat = self.tensor((batch, channels), *self.grids[x])
        shape = self.model.constant(f"shape_{self.count}", np.asarray([batch, channels], np.int32))
        self.model.operator("RESHAPE", [y, shape], [flat], "ReshapeOptions", newShape=[batch, channels])
        return flat

    def connected(self, x, outputs, activation=0):
        """A fully connected layer."""
        batch, channels = self.shapes[x]
        w, b, scale = self.weights((outputs, channels), 0, x, channels)
        y = self.tensor((batch, outputs), scale, -128 if activation else 9)
        self.model.operator(
            "FULLY_CONNECTED", [x, w, b], [y], "FullyConnectedOptions", fusedActivationFunction=activation
        )
        return y

    def softmax(self, x):
        """Probabilities."""
        y = self.tensor(self.shapes[x], 1 / 256, -128)
        self.model.operator("SOFTMAX", [x], [y], "SoftmaxOptions", beta=1.0)
        return y


def keyword_spotting(dtype="int8", width=64):
    """DS-CNN: a convolution of 10 by 4, four pairs of depthwise and pointwise ones, 12 words."""
    net = QuantizedModel((1, 49, 10, 1), dtype)
    x = net.convolution(net.input, width, (10, 4), 2)
    for _ in range(4):
        x = net.convolution(net.depthwise(x), width, (1, 1))
    return net.model.to_bytes([net.softmax(net.connected(net.averaged(x), 12))]), (1, 49, 10, 1)


def visual_wake_words(dtype="int8"):
    """MobileNetV1 of width 0.25 on images of 96 by 96."""
    net = QuantizedModel((1, 96, 96, 3), dtype)
    x = net.convolution(net.input, 8, (3, 3), 2)
    widths = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *(((128, 1),) * 5), (256, 2), (256, 1))
    for maps, stride in widths:
        x = net.convolution(net.depthwise(x, stride), maps, (1, 1))
    return net.model.to_bytes([net.softmax(net.connected(net.averaged(x), 2))]), (1, 96, 96, 3)


def image_classification(dtype="int8"):
    """A residual network of 8 layers on images of 32 by 32."""
    net = QuantizedModel((1, 32, 32, 3), dtype)
    x = net.convolution(net.input, 16, (3, 3))
    for maps, stride in ((16, 1), (32, 2), (64, 2)):
        inner = net.convolution(net.convolution(x, maps, (3, 3), stride), maps, (3, 3), activation=0)
        x = net.add(inner, x if stride == 1 else net.convolution(x, maps, (1, 1), stride, activation=0))
    return net.model.to_bytes([net.softmax(net.connected(net.averaged(x), 10))]), (1, 32, 32, 3)


def anomaly_detection(dtype="int8"):
    """An autoencoder of fully connected layers over 640 values."""
    net = QuantizedModel((1, 640), dtype)
    x = net.input
    for outputs in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.connected(x, outputs, RELU)
    return net.model.to_bytes([net.connected(x, 640)]), (1, 640)


MODELS = {
    "keyword spotting": keyword_spotting,
    "visual wake words": visual_wake_words,
    "image classification": image_classification,
    "anomaly detection": anomaly_detection,
}
