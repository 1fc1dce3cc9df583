"""Calibrators with TensorRT's interface: objects that provide their own batches and keep their own cache.

Any object with the methods of `CalibrationStream` can be used. TensorRT's base classes are also here: a subclass
provides batches and a cache, and its base class selects the algorithm.
"""

from __future__ import annotations

import abc
import ctypes
import enum
import logging
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.quantization.sample_arrays import as_array

logger = logging.getLogger("dryfit.builder")


class CalibrationAlgoType(enum.IntEnum):
    """Algorithm that a calibrator requests; TensorRT's `CalibrationAlgoType`."""

    LEGACY_CALIBRATION = 0
    ENTROPY_CALIBRATION = 1
    ENTROPY_CALIBRATION_2 = 2
    MINMAX_CALIBRATION = 3


CALIBRATOR_NAMES = {
    CalibrationAlgoType.LEGACY_CALIBRATION: "legacy",
    CalibrationAlgoType.ENTROPY_CALIBRATION: "entropy",
    CalibrationAlgoType.ENTROPY_CALIBRATION_2: "entropy2",
    CalibrationAlgoType.MINMAX_CALIBRATION: "minmax",
}
"""Calibrator of each algorithm."""


class CalibrationStream(Protocol):
    """TensorRT's `IInt8Calibrator`, as implemented in Python. Does not require anything from dryfit.

    The attribute `full_range` can be set to False: see `dryfit.quantization.calibration_stream.IInt8Calibrator`.
    """

    def get_batch_size(self) -> int:
        """Return the number of samples per batch."""
        ...

    def get_batch(self, names: list[str]) -> Sequence[Any] | None:
        """Return the next batch, or None or an empty list at the end.

        A batch is a list with one array per input, in the order of `names`, the inputs of the network: numpy arrays, or
        arrays with `__array_interface__` or DLPack; or the addresses, as integers, of C-ordered memory with the input's
        type and shape.
        """
        ...

    def read_calibration_cache(self) -> bytes | None:
        """Return a previously written cache; None if there is none."""
        ...

    def write_calibration_cache(self, cache: bytes) -> None:
        """Store a cache; called once, at the end."""
        ...

    def get_algorithm(self) -> int:
        """Return the `CalibrationAlgoType` that selects the calibrator."""
        ...


STREAM_METHODS = (
    "get_algorithm",
    "get_batch",
    "get_batch_size",
    "read_calibration_cache",
    "write_calibration_cache",
)


def is_stream(candidate: object) -> bool:
    """Return whether an object, or the instances of a class, have all methods of a stream."""
    return all(callable(getattr(candidate, name, None)) for name in STREAM_METHODS)


def stream_algorithm(stream: CalibrationStream) -> CalibrationAlgoType:
    """Return the algorithm that a stream requests.

    Raises:
        CalibrationError: The stream does not return an algorithm.
    """
    answer = stream.get_algorithm()
    try:
        return CalibrationAlgoType(int(answer))
    except (TypeError, ValueError):
        raise CalibrationError(
            "Unknown calibration algorithm",
            where=f"{type(stream).__name__}.get_algorithm",
            found=repr(answer),
            allowed=", ".join(f"{one.value} ({one.name})" for one in CalibrationAlgoType),
            remedy="Return a member of CalibrationAlgoType",
        ) from None


def stream_options(stream: CalibrationStream) -> dict[str, float]:
    """Return the options of a stream: `get_quantile` and `get_regression_cutoff` of the legacy calibrator.

    Raises:
        CalibrationError: A method does not return a number.
    """
    if stream_algorithm(stream) is not CalibrationAlgoType.LEGACY_CALIBRATION:
        return {}
    options: dict[str, float] = {}
    for name in ("quantile", "regression_cutoff"):
        method = getattr(stream, f"get_{name}", None)
        if method is None:
            continue
        answer = method()
        try:
            options[name] = float(answer)
        except (TypeError, ValueError):
            raise CalibrationError(
                "The value must be between 0 and 1",
                where=f"{type(stream).__name__}.get_{name}",
                found=repr(answer),
                allowed="0 to 1",
                remedy="Return a value in this range",
            ) from None
    return options


def stream_full_range(stream: CalibrationStream) -> bool:
    """Return the attribute `full_range` (default True): whether inputs and probabilities keep their maximum.

    Raises:
        CalibrationError: The attribute is neither True nor False.
    """
    answer = getattr(stream, "full_range", True)
    if not isinstance(answer, bool):
        where = f"{type(stream).__name__}.full_range"
        raise CalibrationError(
            "full_range must be a bool",
            where=where,
            found=repr(answer),
            allowed="True or False",
            remedy="Set it to True or False",
        )
    return answer


def stream_samples(stream: CalibrationStream, network: Network) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield the batches of a stream as samples: `batch 0` and its arrays by input name, and so on.

    Raises:
        CalibrationError: The batch size or a batch does not conform to the interface.
    """
    batch_size = stream.get_batch_size()
    if not isinstance(batch_size, int) or batch_size < 1:
        raise CalibrationError(
            "The batch size must be at least 1",
            where=f"{type(stream).__name__}.get_batch_size",
            found=repr(batch_size),
            remedy="Return the number of samples of a batch",
        )
    index, is_warned = 0, False
    names = [tensor.name for tensor in network.inputs]
    while (batch := stream.get_batch(list(names))) is not None and len(batch):
        if len(batch) != len(names):
            raise CalibrationError(
                "A batch must have one array per input",
                where=f"batch {index} of {type(stream).__name__}",
                found=f"{len(batch)}",
                allowed=f"{len(names)}: {', '.join(names)}",
                remedy="Return one array per name",
            )
        arrays = [_array(one, tensor, batch_size) for one, tensor in zip(batch, network.inputs, strict=True)]
        if not is_warned:
            is_warned = _warn_of_size(stream, index, batch_size, network, arrays)
        yield f"batch {index}", dict(zip(names, arrays, strict=True))
        index += 1


def _warn_of_size(
    stream: CalibrationStream, index: int, batch_size: int, network: Network, arrays: Sequence[Array]
) -> bool:
    """Warn, once for a stream, of a batch that has not as many samples as the stream says; whether that was done."""
    for tensor, array in zip(network.inputs, arrays, strict=True):
        if array.ndim and array.shape[0] != batch_size:
            logger.warning(
                "batch %d of %s has %d samples for input %r, and get_batch_size() returns %d",
                *(index, type(stream).__name__, array.shape[0], tensor.name, batch_size),
            )
            return True
    return False


def _array(one: Any, tensor: Tensor, batch_size: int) -> Array:
    """The array that a batch has for an input."""
    if not isinstance(one, (int, np.integer)):
        return as_array(one)
    shape = [batch_size if extent == -1 and axis == 0 else extent for axis, extent in enumerate(tensor.shape)]
    if -1 in shape or not one:
        raise CalibrationError(
            "The shape of data at an address must be known",
            where=f"input {tensor.name!r}",
            found=f"address {int(one)} for the shape {tuple(tensor.shape)}",
            allowed="an address other than 0, and static dimensions after the first",
            remedy="Return an array",
        )
    dtype = tensor.dtype.numpy
    memory = (ctypes.c_ubyte * (dtype.itemsize * math.prod(shape))).from_address(int(one))
    return np.ctypeslib.as_array(memory).view(dtype).reshape(shape).copy()


class IInt8Calibrator(abc.ABC):
    """Base class of calibrators with TensorRT's interface. Assign one to `BuilderConfig.int8_calibrator`.

    Attributes:
        full_range: whether network inputs, and the outputs of softmax and sigmoid, keep their largest magnitude
            regardless of the algorithm. TensorRT has no such exception and corresponds to False.

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
        """Return the number of samples per batch."""

    @abc.abstractmethod
    def get_batch(self, names: list[str]) -> Sequence[Any] | None:
        """Return the next batch, an array or an address per input in the order of `names`; None or [] at the end."""

    @abc.abstractmethod
    def read_calibration_cache(self) -> bytes | None:
        """Return a previously written cache; None if there is none. With a cache, no batch is read."""

    @abc.abstractmethod
    def write_calibration_cache(self, cache: bytes) -> None:
        """Store a cache; called once, after calibration."""

    @abc.abstractmethod
    def get_algorithm(self) -> int:
        """Return the `CalibrationAlgoType` that selects the calibrator."""


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """Ranges that minimize the relative entropy, computed before layers are fused: `entropy2`.

    This is the calibrator that TensorRT recommends, and that it requires for DLA.
    """

    def get_algorithm(self) -> int:
        """Return ENTROPY_CALIBRATION_2."""
        return CalibrationAlgoType.ENTROPY_CALIBRATION_2


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """Ranges up to the largest magnitude, computed before layers are fused: `minmax`."""

    def get_algorithm(self) -> int:
        """Return MINMAX_CALIBRATION."""
        return CalibrationAlgoType.MINMAX_CALIBRATION


class IInt8EntropyCalibrator(IInt8Calibrator):
    """Ranges that minimize the relative entropy, computed after layers are fused: `entropy`.

    For layers on DLA, set the quantization flag CALIBRATE_BEFORE_FUSION.
    """

    def get_algorithm(self) -> int:
        """Return ENTROPY_CALIBRATION."""
        return CalibrationAlgoType.ENTROPY_CALIBRATION


class IInt8LegacyCalibrator(IInt8Calibrator):
    """Ranges from a quantile or a regression, computed after layers are fused: `legacy`.

    For layers on DLA, set the quantization flag CALIBRATE_BEFORE_FUSION.
    """

    def get_algorithm(self) -> int:
        """Return LEGACY_CALIBRATION."""
        return CalibrationAlgoType.LEGACY_CALIBRATION

    @abc.abstractmethod
    def get_quantile(self) -> float:
        """Return the fraction of the magnitudes that a range covers, in 0 to 1."""

    @abc.abstractmethod
    def get_regression_cutoff(self) -> float:
        """Return the fraction of the largest magnitude that the regression considers, in 0 to 1; 1 for all."""

    def read_histogram_cache(self, length: int) -> bytes | None:
        """Part of TensorRT's interface, never called: dryfit does not cache calibration histograms."""
        del length
        return None

    def write_histogram_cache(self, data: bytes, length: int) -> None:
        """Part of TensorRT's interface, never called."""
