"""Layers that learn, in numpy: what the example needs to train its network without a framework.

Images are `float32[N, C, H, W]`. `forward` keeps what `backward` needs; `backward` takes the gradient of the outputs,
stores those of the parameters in `gradients`, and returns that of the inputs.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


class TrainingLayer:
    """A layer with parameters and their gradients, by name. `training` says whether it learns or is used."""

    training = False

    def __init__(self) -> None:
        self.parameters: dict[str, Array] = {}
        self.gradients: dict[str, Array] = {}

    def forward(self, x: Array) -> Array:
        """The outputs."""
        raise NotImplementedError

    def backward(self, gradient: Array) -> Array:
        """The gradient of the inputs."""
        raise NotImplementedError


class Convolution(TrainingLayer):
    """A 3x3 convolution with padding 1 and no bias: a batch normalization always follows."""

    def __init__(self, channels: int, filters: int, rng: np.random.Generator) -> None:
        super().__init__()
        scale = np.sqrt(2.0 / (channels * 9))
        self.parameters["weight"] = rng.normal(0.0, scale, (filters, channels, 3, 3)).astype(np.float32)

    def forward(self, x: Array) -> Array:
        """`[N, C, H, W]` to `[N, K, H, W]`."""
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.shape = x.shape
        weight = self.parameters["weight"]
        return (self.columns @ weight.reshape(len(weight), -1).T).reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, gradient: Array) -> Array:
        """The transposed convolution."""
        n, c, h, w = self.shape
        weight = self.parameters["weight"]
        rows = gradient.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.gradients["weight"] = (rows.T @ self.columns).reshape(weight.shape)
        columns = (rows @ weight.reshape(len(weight), -1)).reshape(n, h, w, c, 3, 3)
        padded = np.zeros((n, c, h + 2, w + 2), np.float32)
        for dy in range(3):
            for dx in range(3):
                padded[:, :, dy : dy + h, dx : dx + w] += columns[..., dy, dx].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]


class BatchNormalization(TrainingLayer):
    """Normalization by the statistics of the batch in training, by their running mean afterwards."""

    epsilon = 1e-5
    momentum = 0.9

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.parameters = {"scale": np.ones(channels, np.float32), "shift": np.zeros(channels, np.float32)}
        self.mean = np.zeros(channels, np.float32)
        self.variance = np.ones(channels, np.float32)

    def forward(self, x: Array) -> Array:
        """The shape stays."""
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
            self.mean = self.momentum * self.mean + (1 - self.momentum) * mean
            self.variance = self.momentum * self.variance + (1 - self.momentum) * variance
        self.factor = (1.0 / np.sqrt(variance + self.epsilon)).astype(np.float32)
        self.normal = (x - _by_channel(mean)) * _by_channel(self.factor)
        return self.normal * _by_channel(self.parameters["scale"]) + _by_channel(self.parameters["shift"])

    def backward(self, gradient: Array) -> Array:
        """The gradient through the batch's own statistics."""
        axes = (0, 2, 3)
        self.gradients["scale"] = (gradient * self.normal).sum(axes)
        self.gradients["shift"] = gradient.sum(axes)
        inner = gradient * _by_channel(self.parameters["scale"])
        centred = inner - inner.mean(axes, keepdims=True)
        return (centred - self.normal * (inner * self.normal).mean(axes, keepdims=True)) * _by_channel(self.factor)


class Relu(TrainingLayer):
    """max(x, 0)."""

    def forward(self, x: Array) -> Array:
        """The shape stays."""
        self.mask = x > 0
        return x * self.mask

    def backward(self, gradient: Array) -> Array:
        """Passes where the input was positive."""
        return gradient * self.mask


class Elu(TrainingLayer):
    """x where positive, exp(x) - 1 elsewhere."""

    def forward(self, x: Array) -> Array:
        """The shape stays."""
        self.y = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        return self.y

    def backward(self, gradient: Array) -> Array:
        """exp(x) = y + 1 where the input was negative."""
        return gradient * np.where(self.y > 0, 1, self.y + 1)


class MaxPool(TrainingLayer):
    """The largest of each 2x2 block."""

    def forward(self, x: Array) -> Array:
        """`[N, C, H, W]` to `[N, C, H / 2, W / 2]`."""
        n, c, h, w = x.shape
        self.blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        self.y = self.blocks.max(axis=(3, 5), keepdims=True)
        return self.y[:, :, :, 0, :, 0]

    def backward(self, gradient: Array) -> Array:
        """To the winner of each block; equal winners share."""
        winners = self.blocks == self.y
        share = winners / winners.sum(axis=(3, 5), keepdims=True)
        n, c, h, _, w, _ = self.blocks.shape
        return (share * gradient[:, :, :, np.newaxis, :, np.newaxis]).reshape(n, c, 2 * h, 2 * w).astype(np.float32)


class GlobalAverage(TrainingLayer):
    """The mean of each channel."""

    def forward(self, x: Array) -> Array:
        """`[N, C, H, W]` to `[N, C]`."""
        self.shape = x.shape
        return x.mean(axis=(2, 3))

    def backward(self, gradient: Array) -> Array:
        """The same share to each pixel."""
        share = gradient[:, :, np.newaxis, np.newaxis] / (self.shape[2] * self.shape[3])
        return np.broadcast_to(share, self.shape).astype(np.float32)


class Dense(TrainingLayer):
    """x @ weight.T + bias."""

    def __init__(self, features: int, classes: int, rng: np.random.Generator) -> None:
        super().__init__()
        weight = rng.normal(0.0, np.sqrt(1.0 / features), (classes, features)).astype(np.float32)
        self.parameters = {"weight": weight, "bias": np.zeros(classes, np.float32)}

    def forward(self, x: Array) -> Array:
        """`[N, features]` to `[N, classes]`."""
        self.x = x
        return x @ self.parameters["weight"].T + self.parameters["bias"]

    def backward(self, gradient: Array) -> Array:
        """Linear."""
        self.gradients = {"weight": gradient.T @ self.x, "bias": gradient.sum(axis=0)}
        return gradient @ self.parameters["weight"]


def _by_channel(values: Array) -> Array:
    return values[np.newaxis, :, np.newaxis, np.newaxis]
