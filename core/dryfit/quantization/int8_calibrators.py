"""TensorRT's calibrator classes to derive from: the user brings batches and a cache, the class names the algorithm.

What they ask for is `dryfit.quantization.calibration_stream.CalibrationStream`; any object with those methods serves.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from dryfit.quantization.calibration_stream import CalibrationAlgoType


class IInt8Calibrator(abc.ABC):
    """What every calibrator of TensorRT's interface answers. Assign one to `BuilderConfig.int8_calibrator`.

    Attributes:
        full_range: whether network inputs, and the outputs of softmax and sigmoid, keep their largest magnitude
            whatever the algorithm finds. TensorRT has no such exception: False is its way.

    Example:
        >>> class Pictures(IInt8EntropyCalibrator2):
        ...     def __init__(self, arrays):
        ...         super().__init__()
        ...         self.arrays = iter(arrays)
        ...     def get_batch_size(self):
        ...         return 1
        ...     def get_batch(self, names):
        ...         array = next(self.arrays, None)
        ...         return None if array is None else [array]
        ...     def read_calibration_cache(self):
        ...         return None
        ...     def write_calibration_cache(self, cache):
        ...         pass
    """

    full_range: bool = True

    @abc.abstractmethod
    def get_batch_size(self) -> int:
        """The number of samples in a batch."""

    @abc.abstractmethod
    def get_batch(self, names: list[str]) -> Sequence[Any] | None:
        """The next batch, an array or an address for each input in the order of `names`; None or [] at the end."""

    @abc.abstractmethod
    def read_calibration_cache(self) -> bytes | None:
        """A cache that was written before; None where there is none. With one, no batch is asked for."""

    @abc.abstractmethod
    def write_calibration_cache(self, cache: bytes) -> None:
        """Keep a cache; called once, after calibration."""

    @abc.abstractmethod
    def get_algorithm(self) -> int:
        """Which calibrator finds the ranges: a `CalibrationAlgoType`."""


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """Ranges of the smallest relative entropy, found before layers are fused: `entropy2`.

    The calibrator that TensorRT recommends, and requires for DLA.
    """

    def get_algorithm(self) -> int:
        """ENTROPY_CALIBRATION_2."""
        return CalibrationAlgoType.ENTROPY_CALIBRATION_2


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """Ranges to the largest magnitude, found before layers are fused: `minmax`."""

    def get_algorithm(self) -> int:
        """MINMAX_CALIBRATION."""
        return CalibrationAlgoType.MINMAX_CALIBRATION


class IInt8EntropyCalibrator(IInt8Calibrator):
    """Ranges of the smallest relative entropy, found after layers are fused: `entropy`.

    For layers on the DLA set the quantization flag CALIBRATE_BEFORE_FUSION.
    """

    def get_algorithm(self) -> int:
        """ENTROPY_CALIBRATION."""
        return CalibrationAlgoType.ENTROPY_CALIBRATION


class IInt8LegacyCalibrator(IInt8Calibrator):
    """Ranges by a quantile or a regression, found after layers are fused: `legacy`.

    For layers on the DLA set the quantization flag CALIBRATE_BEFORE_FUSION.
    """

    def get_algorithm(self) -> int:
        """LEGACY_CALIBRATION."""
        return CalibrationAlgoType.LEGACY_CALIBRATION

    @abc.abstractmethod
    def get_quantile(self) -> float:
        """The share of the magnitudes that a range has, in 0 to 1."""

    @abc.abstractmethod
    def get_regression_cutoff(self) -> float:
        """The share of the largest magnitude up to which the regression looks, in 0 to 1; 1 for none."""

    def read_histogram_cache(self, length: int) -> bytes | None:
        """Part of TensorRT's interface, and never asked for: a calibration keeps no histograms here."""
        del length
        return None

    def write_histogram_cache(self, data: bytes, length: int) -> None:
        """Part of TensorRT's interface, and never called."""
