"""Whole INT8 models as TFLite: MLPerf Tiny's four topologies and four others, with random weights.

Source of the topologies: MLCommons Tiny, training code of the reference models; the papers of MobileNetV2, U-Net and
squeeze-and-excitation. Verdicts and cycles depend on shapes; weights have the spread of trained ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from tflite_writer import Operator, Tensor, write

SAME, VALID = 0, 1
RELU, RELU6 = 1, 3


class Model:
    """Operators in order; each method adds one and returns its output."""

    def __init__(self, seed: int = 0) -> None:
        self.operators: list[Operator] = []
        self.random = np.random.default_rng(seed)

    def add(self, name: str, inputs: list[Tensor | None], shape: tuple[int, ...], **options: object) -> Tensor:
        y = Tensor(tuple(shape), "int8", 0.05, 3)
        self.operators.append(Operator(name, inputs, [y], options))
        return y

    def like(
        self, name: str, x: Tensor, *others: Tensor, shape: tuple[int, ...] | None = None, **options: object
    ) -> Tensor:
        y = Tensor(x.shape if shape is None else tuple(shape), "int8", x.scale, x.zero_point)
        self.operators.append(Operator(name, [x, *others], [y], options))
        return y

    def weights(self, shape: tuple[int, ...], channels: int, axis: int) -> Tensor:
        values = np.clip(np.rint(self.random.normal(0, 28, shape)), -127, 127)
        return Tensor(shape, "int8", [0.01] * channels, 0, axis, values)

    def bias(self, x: Tensor, weights: Tensor, channels: int) -> Tensor:
        scale = np.asarray(weights.scale, np.float32) * np.float32(x.scale)
        return Tensor((channels,), "int32", scale, values=self.random.integers(-500, 500, channels))

    def conv(
        self,
        x: Tensor,
        channels: int,
        kernel: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        act: int = RELU,
        padding: int = SAME,
    ) -> Tensor:
        size, step = (one if isinstance(one, tuple) else (one, one) for one in (kernel, stride))
        weights = self.weights((channels, *size, x.shape[3]), channels, 0)
        spatial = self.spatial(x, size, step, padding)
        options = {
            "padding": padding,
            "strideH": step[0],
            "strideW": step[1],
            "dilationHFactor": 1,
            "dilationWFactor": 1,
        }
        inputs = [x, weights, self.bias(x, weights, channels)]
        return self.add("CONV_2D", inputs, (1, *spatial, channels), fusedActivationFunction=act, **options)

    def depthwise(self, x: Tensor, kernel: int, stride: int = 1, act: int = RELU) -> Tensor:
        channels = x.shape[3]
        weights = self.weights((1, kernel, kernel, channels), channels, 3)
        spatial = self.spatial(x, (kernel, kernel), (stride, stride), SAME)
        options = {
            "padding": SAME,
            "strideH": stride,
            "strideW": stride,
            "dilationHFactor": 1,
            "dilationWFactor": 1,
            "depthMultiplier": 1,
        }
        inputs = [x, weights, self.bias(x, weights, channels)]
        return self.add("DEPTHWISE_CONV_2D", inputs, (1, *spatial, channels), fusedActivationFunction=act, **options)

    def dense(self, x: Tensor, channels: int, act: int = 0) -> Tensor:
        weights = self.weights((channels, x.shape[-1]), channels, 0)
        inputs = [x, weights, self.bias(x, weights, channels)]
        return self.add("FULLY_CONNECTED", inputs, (*x.shape[:-1], channels), fusedActivationFunction=act)

    def pool(
        self, name: str, x: Tensor, size: tuple[int, int], stride: tuple[int, int], padding: int = VALID
    ) -> Tensor:
        options = {
            "padding": padding,
            "strideH": stride[0],
            "strideW": stride[1],
            "filterHeight": size[0],
            "filterWidth": size[1],
        }
        return self.like(name, x, shape=(1, *self.spatial(x, size, stride, padding), x.shape[3]), **options)

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self.like("RESHAPE", x, Tensor((len(shape),), "int32", None, values=np.asarray(shape)), shape=shape)

    def softmax(self, x: Tensor) -> Tensor:
        y = Tensor(x.shape, "int8", 1 / 256, -128)
        self.operators.append(Operator("SOFTMAX", [x], [y], {"beta": 1.0}))
        return y

    def mean(self, x: Tensor, *, keep: bool = False) -> Tensor:
        axes = Tensor((2,), "int32", None, values=np.array([1, 2]))
        return self.add("MEAN", [x, axes], (1, 1, 1, x.shape[3]) if keep else (1, x.shape[3]), keepDims=keep)

    def resize(self, x: Tensor, name: str = "RESIZE_BILINEAR") -> Tensor:
        new = (x.shape[1] * 2, x.shape[2] * 2)
        return self.like(
            name,
            x,
            Tensor((2,), "int32", None, values=np.asarray(new)),
            shape=(1, *new, x.shape[3]),
            halfPixelCenters=True,
        )

    @staticmethod
    def spatial(x: Tensor, size: tuple[int, int], stride: tuple[int, int], padding: int) -> tuple[int, ...]:
        pairs = zip(x.shape[1:3], size, stride, strict=True)
        return tuple(-(-e // s) if padding == SAME else (e - k) // s + 1 for e, k, s in pairs)

    def to_bytes(self) -> bytes:
        return write(self.operators)


def _image(*shape: int) -> Tensor:
    return Tensor(shape, "int8", 1 / 255, -128)


def resnet_8() -> Model:
    """MLPerf Tiny, image classification."""
    model = Model()
    x = model.conv(_image(1, 32, 32, 3), 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = model.conv(model.conv(x, channels, 3, stride), channels, 3, act=0)
        x = model.conv(x, channels, 1, stride, act=0) if stride > 1 else x
        x = model.add("ADD", [x, y], y.shape, fusedActivationFunction=RELU)
    x = model.pool("AVERAGE_POOL_2D", x, (8, 8), (8, 8))
    model.softmax(model.dense(model.reshape(x, 1, 64), 10))
    return model


def ds_cnn() -> Model:
    """MLPerf Tiny, keyword spotting."""
    model = Model()
    x = model.conv(model.reshape(_image(1, 490), 1, 49, 10, 1), 64, (10, 4), 2)
    for _ in range(4):
        x = model.conv(model.depthwise(x, 3), 64, 1)
    x = model.pool("AVERAGE_POOL_2D", x, (25, 5), (25, 5))
    model.softmax(model.dense(model.reshape(x, 1, 64), 12))
    return model


def mobilenet_v1() -> Model:
    """MLPerf Tiny, visual wake words: MobileNetV1 of width 0.25 at 96 x 96."""
    model = Model()
    x = model.conv(_image(1, 96, 96, 3), 8, 3, 2)
    for channels, stride in zip(
        (16, 32, 32, 64, 64, *[128] * 6, 256, 256), (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1), strict=True
    ):
        x = model.conv(model.depthwise(x, 3, stride), channels, 1)
    x = model.pool("AVERAGE_POOL_2D", x, (3, 3), (3, 3))
    model.softmax(model.dense(model.reshape(x, 1, 256), 2))
    return model


def autoencoder() -> Model:
    """MLPerf Tiny, anomaly detection."""
    model = Model()
    x = _image(1, 640)
    for channels in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = model.dense(x, channels, RELU)
    model.dense(x, 640)
    return model


def mobilenet_v2() -> Model:
    """MobileNetV2 of width 0.5 at 128 x 128, with a mean instead of a pooling."""
    model = Model()
    x = model.conv(_image(1, 128, 128, 3), 16, 3, 2, RELU6)
    for expansion, channels, count, stride in (
        (1, 8, 1, 1),
        (6, 16, 2, 2),
        (6, 16, 3, 2),
        (6, 32, 4, 2),
        (6, 48, 3, 1),
        (6, 80, 3, 2),
        (6, 160, 1, 1),
    ):
        for index in range(count):
            y = model.conv(x, x.shape[3] * expansion, 1, act=RELU6) if expansion > 1 else x
            y = model.conv(model.depthwise(y, 3, stride if index == 0 else 1, RELU6), channels, 1, act=0)
            x = model.add("ADD", [x, y], y.shape) if x.shape == y.shape else y
    model.softmax(model.dense(model.mean(model.conv(x, 1280, 1, act=RELU6)), 1000))
    return model


def u_net() -> Model:
    """A U-Net of three levels, with bilinear resizes and concatenations."""
    model = Model()
    x, kept = _image(1, 64, 64, 3), []
    for channels in (16, 32, 64):
        x = model.conv(model.conv(x, channels, 3), channels, 3)
        kept.append(x)
        x = model.pool("MAX_POOL_2D", x, (2, 2), (2, 2))
    x = model.conv(x, 64, 3)
    for other in reversed(kept):
        x = model.resize(x)
        x = model.like("CONCATENATION", x, other, shape=(*x.shape[:3], x.shape[3] + other.shape[3]), axis=3)
        x = model.conv(x, other.shape[3], 3)
    x = model.conv(x, 2, 1, act=0)
    model.operators.append(Operator("LOGISTIC", [x], [Tensor(x.shape, "int8", 1 / 256, -128)]))
    return model


def squeeze_and_excite() -> Model:
    """Blocks with squeeze-and-excitation and hard swish, as in MobileNetV3."""
    model = Model()
    x = model.conv(_image(1, 64, 64, 3), 16, 3, 2, 0)
    for channels in (24, 40, 48):
        x = model.like("HARD_SWISH", x)
        x = model.depthwise(model.conv(x, 4 * channels, 1), 5, 2)
        scale = model.conv(model.conv(model.mean(x, keep=True), channels, 1), 4 * channels, 1, act=0)
        gate = Tensor(scale.shape, "int8", 1 / 256, -128)
        model.operators.append(Operator("LOGISTIC", [scale], [gate]))
        x = model.conv(model.add("MUL", [x, gate], x.shape), channels, 1, act=0)
    model.softmax(model.dense(model.reshape(x, 1, math.prod(x.shape)), 20))
    return model


def with_cpu_operators() -> Model:
    """Operators that the NPU lacks between such that it has: a quotient, a stride of 4 with padding, a floor."""
    model = Model()
    x = model.conv(_image(1, 48, 48, 3), 16, 3)
    x = model.conv(x, 32, 5, 4)
    x = model.like("LEAKY_RELU", x, alpha=0.1)
    x = model.depthwise(x, 3)
    y = model.like(
        "RESIZE_NEAREST_NEIGHBOR", x, Tensor((2,), "int32", None, values=np.array([36, 36])), shape=(1, 36, 36, 32)
    )
    y = model.pool("AVERAGE_POOL_2D", y, (9, 9), (3, 3), SAME)
    x = model.add("MAXIMUM", [x, y], x.shape)
    x = model.like("TANH", model.conv(x, 8, 1))
    y = model.like(
        "MIRROR_PAD",
        x,
        Tensor((4, 2), "int32", None, values=np.array([[0, 0], [1, 1], [1, 1], [0, 0]])),
        shape=(1, 14, 14, 8),
        mode=0,
    )
    model.softmax(model.dense(model.mean(model.conv(y, 24, 3, 2)), 5))
    return model


MODELS: Mapping[str, Callable[[], Model]] = {
    made.__name__: made
    for made in (
        resnet_8,
        ds_cnn,
        mobilenet_v1,
        autoencoder,
        mobilenet_v2,
        u_net,
        squeeze_and_excite,
        with_cpu_operators,
    )
}
