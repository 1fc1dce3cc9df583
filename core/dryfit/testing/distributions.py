"""Values as tensors of networks have them, for trying calibrators: bell curves, ReLU outputs, outliers, images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Distribution = Callable[[np.random.Generator, int], Array]
"""From a generator and a count to that many values."""


def _outliers(random: np.random.Generator, count: int) -> Array:
    values = random.standard_normal(count)
    values[:: max(count // 3, 1)] *= 40.0
    return values


def _softmax(random: np.random.Generator, count: int) -> Array:
    exponentials = np.exp(3.0 * random.standard_normal(count))
    return np.asarray(exponentials / exponentials.sum())


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "gaussian": lambda random, count: random.standard_normal(count),
    "laplace": lambda random, count: random.laplace(size=count),
    "relu": lambda random, count: np.maximum(random.standard_normal(count), 0.0),
    "heavy_tails": lambda random, count: random.standard_t(3, count),
    "outliers": _outliers,
    "uniform": lambda random, count: random.random(count),
    "sigmoid": lambda random, count: 1.0 / (1.0 + np.exp(-random.standard_normal(count))),
    "softmax": _softmax,
    "image": lambda random, count: (random.integers(0, 256, count) / 255.0 - 0.406) / 0.225,
    "mostly_zero": lambda random, count: random.standard_normal(count) * (random.random(count) < 0.02) + _one(count),
    "one_value": lambda random, count: np.full(count, -0.7),
    "tiny": lambda random, count: random.standard_normal(count) * 2.0**-90,
    "huge": lambda random, count: random.standard_normal(count) * 2.0**90,
}
"""Name to distribution. Each has a value other than zero, whatever the generator."""

SAMPLE_SHAPES = ((1, 4, 16, 16), (1, 4, 8, 8), (2, 4, 16, 8), (1, 4, 1, 1), (1, 4, 32, 32), (3, 4, 8, 8))
SAMPLE_FACTORS = (0.25, 2.0**-10, 1.0, 0.5, 4.0, 1.0)
"""Samples differ in shape and in size: the first one is not the largest."""


def samples_of(distribution: Distribution, factor: float = 1.0) -> list[Array]:
    """The same float32[batch, channel, height, width] samples in every run, times a factor."""
    random = np.random.default_rng(7)
    return [
        (distribution(random, int(np.prod(shape))) * (scale * factor)).astype(np.float32).reshape(shape)
        for shape, scale in zip(SAMPLE_SHAPES, SAMPLE_FACTORS, strict=True)
    ]


def _one(count: int) -> Array:
    """A single value other than zero."""
    values = np.zeros(count)
    values[count // 2] = 1.0
    return values
