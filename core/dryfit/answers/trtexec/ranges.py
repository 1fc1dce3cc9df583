"""The INT8 ranges that trtexec gives a network without data: invented ones, or those of a random batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.calibration_stream import IInt8EntropyCalibrator2

SEED = 0
"""Of the random batch that a missing calibration cache is replaced by."""

INPUT_RANGE, OUTPUT_RANGE = 2.0, 4.0
"""Largest magnitudes that are invented for the inputs and outputs of layers."""


def take_border_ranges(network: Network, scales: Mapping[str, float]) -> None:
    """Give inputs and outputs the ranges of a calibration cache, as trtexec does where they are INT8."""
    for tensor in (*network.inputs, *network.outputs):
        if tensor.dtype.is_floating_point and scales.get(tensor.name):
            tensor.set_dynamic_range(-127 * scales[tensor.name], 127 * scales[tensor.name])


def invent_ranges(network: Network) -> None:
    """Give each tensor a range as trtexec does to measure INT8 without data.

    Inputs of layers have 2, those of concatenations 4; other outputs have 4, those of poolings 2.

    Source: trtexec in NVIDIA/TensorRT, releases 8.0 to 10.16.
    """
    sides: tuple[tuple[Callable[[Layer], Iterable[Tensor | None]], str, float, float], ...] = (
        (lambda layer: layer.inputs, "concatenation", OUTPUT_RANGE, INPUT_RANGE),
        (lambda layer: layer.outputs, "pooling", INPUT_RANGE, OUTPUT_RANGE),
    )
    for tensors_of, kind, special, usual in sides:
        for layer in network.layers:
            for tensor in tensors_of(layer):
                if tensor is not None and tensor.dynamic_range is None and tensor.dtype.is_floating_point:
                    limit = special if layer.kind == kind else usual
                    tensor.set_dynamic_range(-limit, limit)


class RandomCalibrator(IInt8EntropyCalibrator2):
    """A calibrator with one batch of random values from -1 to 1, as trtexec has it.

    Args:
        shapes: shape by input.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__()
        self._shapes = shapes
        self._batches = 1

    def get_batch_size(self) -> int:
        """Return the first extent of the first input."""
        shape = next(iter(self._shapes.values()), ())
        return shape[0] if shape else 1

    def get_batch(self, names: list[str]) -> list[np.ndarray] | None:  # type: ignore[type-arg]
        """Return the only batch, then None."""
        if not self._batches:
            return None
        self._batches -= 1
        rng = np.random.default_rng(SEED)
        return [rng.uniform(-1, 1, self._shapes[name]).astype(np.float32) for name in names]

    def read_calibration_cache(self) -> bytes | None:
        """Return None: there is no cache."""
        return None

    def write_calibration_cache(self, cache: bytes) -> None:
        """Do nothing: trtexec does not write the cache either."""
