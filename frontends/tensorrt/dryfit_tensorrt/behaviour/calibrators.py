"""INT8 calibrators: the classes that a program derives from, and how dryfit asks them for batches.

A batch is a list of device addresses, one an input. The order of calls is TensorRT's: the algorithm, the batch size,
the cache, then the batches, then the new cache. An exception in a program's method is printed and ends the calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import dryfit
from dryfit_tensorrt import memory
from dryfit_tensorrt.behaviour.objects import Base, called_back
from dryfit_tensorrt.behaviour.values import core_dtype, is_narrowed


class IInt8Calibrator(Base):
    """Provides batches for INT8 calibration; `get_algorithm` is the program's."""

    def __init__(self) -> None:
        """Make a calibrator."""

    def get_batch_size(self) -> int:
        """Return the number of samples of a batch. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override get_batch_size()")

    def get_batch(self, names: list[str]) -> Any:
        """Return a list of device addresses in the order of the names; None or [] at the end. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override get_batch(names)")

    def read_calibration_cache(self) -> Any:
        """Return the bytes of a cache, or None. With a cache no batch is read."""
        raise NotImplementedError(f"{type(self).__name__} must override read_calibration_cache()")

    def write_calibration_cache(self, cache: Any) -> None:
        """Receive the bytes of the new cache."""
        raise NotImplementedError(f"{type(self).__name__} must override write_calibration_cache(cache)")

    def get_algorithm(self) -> Any:
        """Return a member of `CalibrationAlgoType`. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override get_algorithm()")


def _of_algorithm(algorithm: str, text: str) -> type:
    class Calibrator(Base):
        def __init__(self) -> None:
            """Make a calibrator."""

        get_batch_size = IInt8Calibrator.get_batch_size
        get_batch = IInt8Calibrator.get_batch
        read_calibration_cache = IInt8Calibrator.read_calibration_cache
        write_calibration_cache = IInt8Calibrator.write_calibration_cache

        def get_algorithm(self) -> Any:
            """Return the algorithm of the class."""
            return self._api.CalibrationAlgoType[algorithm]

    Calibrator.__doc__ = text
    return Calibrator


IInt8LegacyCalibrator = _of_algorithm("LEGACY_CALIBRATION", "A quantile and a regression choose the ranges.")
IInt8EntropyCalibrator = _of_algorithm("ENTROPY_CALIBRATION", "Relative entropy chooses the ranges, after fusion.")
IInt8EntropyCalibrator2 = _of_algorithm(
    "ENTROPY_CALIBRATION_2", "Relative entropy, before fusion; required on the DLA."
)
IInt8MinMaxCalibrator = _of_algorithm("MINMAX_CALIBRATION", "The largest magnitudes are the ranges, before fusion.")


class StreamOfProgram:
    """Hands the batches of a program's calibrator to dryfit, as arrays.

    Attributes:
        calibrator: the program's.
    """

    def __init__(self, calibrator: Any, network: Any, config: Any) -> None:
        self.calibrator = calibrator
        self._network, self._config = network, config

    @property
    def full_range(self) -> bool:
        """Whether inputs and probabilities keep their largest magnitude, where the calibrator says so."""
        return bool(getattr(self.calibrator, "full_range", True))

    def get_batch_size(self) -> int:
        """Return the batch of the first input: in a network with an explicit batch the calibrator's is not used."""
        called_back(self.calibrator.get_batch_size, otherwise=-1)
        shape = self._shape(self._network._core.inputs[0])
        return max(int(shape[0]) if shape else 1, 1)

    def get_algorithm(self) -> int:
        """Return the number of the algorithm."""
        return int(self.calibrator.get_algorithm())

    def read_calibration_cache(self) -> bytes | None:
        """Return the program's cache."""
        found = called_back(self.calibrator.read_calibration_cache, otherwise=None)
        return bytes(found) if found else None

    def write_calibration_cache(self, cache: bytes) -> None:
        """Hand the new cache to the program."""
        called_back(self.calibrator.write_calibration_cache, memoryview(cache), otherwise=None)

    def get_batch(self, names: Sequence[str]) -> list[Any] | None:
        """Return the arrays of the next batch; None at the end."""
        found = called_back(self.calibrator.get_batch, list(names), otherwise=None)
        if found is None or len(found) == 0:
            return None
        tensors = {tensor.name: tensor for tensor in self._network._core.inputs}
        return [self._array(one, tensors[name]) for name, one in zip(names, found, strict=False)]

    def get_quantile(self) -> float:
        """Return the quantile of a legacy calibrator."""
        return float(self.calibrator.get_quantile())

    def get_regression_cutoff(self) -> float:
        """Return the cutoff of a legacy calibrator."""
        return float(self.calibrator.get_regression_cutoff())

    def _shape(self, tensor: Any) -> tuple[int, ...]:
        profile = self._config._core.get_calibration_profile()
        shapes = () if profile is None else profile.get_shape(tensor.name)
        return tuple(shapes[1]) if shapes and -1 in tensor.shape else tuple(tensor.shape)

    def _array(self, address: Any, tensor: Any) -> Any:
        if isinstance(address, np.ndarray):
            return address
        shape, declared = self._shape(tensor), core_dtype(tensor.dtype)
        narrowed = is_narrowed(self._network._api, declared)
        dtype = dryfit.DataType.INT32 if narrowed else declared
        size = int(np.prod(shape, dtype=np.int64))
        values = memory.view(int(address), dtype.bytes_of(size))
        return values.view(dtype.numpy).reshape(shape).astype(declared.numpy)


__all__ = [
    "IInt8Calibrator",
    "IInt8EntropyCalibrator",
    "IInt8EntropyCalibrator2",
    "IInt8LegacyCalibrator",
    "IInt8MinMaxCalibrator",
    "StreamOfProgram",
]
