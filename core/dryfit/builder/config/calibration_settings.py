"""The calibration settings of a builder config: the calibrator, its samples, and scales from an earlier calibration."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import ConfigError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.network import Network

if TYPE_CHECKING:
    from dryfit.quantization.calibration_cache import CalibrationCache
    from dryfit.quantization.calibration_stream import CalibrationStream
    from dryfit.quantization.calibrator import Calibrator, Solution
    from dryfit.quantization.sample_arrays import Samples

    Remembered = weakref.WeakKeyDictionary[Network, tuple[int, Mapping[str, Solution]]]


@attrs.define(eq=False, repr=False, slots=False)
class CalibrationSettings(KnownAttributes):
    """The part of a builder config that provides INT8 scales."""

    _calibrator: Calibrator | None = attrs.field(init=False, default=None)
    _stream: CalibrationStream | None = attrs.field(init=False, default=None)
    _samples: Samples | None = attrs.field(init=False, default=None)
    _full_range: bool = attrs.field(init=False, default=True)
    _cache: CalibrationCache | None = attrs.field(init=False, default=None)
    _calibration_profile: OptimizationProfile | None = attrs.field(init=False, default=None)
    _remembered: Remembered = attrs.field(init=False, factory=weakref.WeakKeyDictionary)
    _assume_scales: bool = attrs.field(init=False, default=False)

    @property
    def int8_calibrator(self) -> CalibrationStream | None:
        """Calibrator object that provides its own samples and algorithm; TensorRT's `IInt8Calibrator`.

        Derive it from `IInt8EntropyCalibrator2` or another TensorRT class, or implement the same methods. If its
        attribute `full_range` is False, inputs and probabilities do not keep their largest magnitude.

        Raises:
            ConfigError: On assignment: the object lacks methods of that interface.
        """
        return self._stream

    @int8_calibrator.setter
    def int8_calibrator(self, stream: CalibrationStream | None) -> None:
        from dryfit.quantization.calibration_stream import STREAM_METHODS, is_stream

        if stream is not None and not is_stream(stream):
            lacking = [name for name in STREAM_METHODS if not callable(getattr(stream, name, None))]
            raise ConfigError(
                "The INT8 calibrator does not have the required methods",
                where="int8_calibrator",
                found=f"{type(stream).__name__} without {', '.join(lacking)}",
                allowed=f"an object with the methods {', '.join(STREAM_METHODS)}, or None",
                remedy="Call calibrate_with(calibrator, samples) to give samples as arrays",
            )
        self._stream, self._calibrator, self._samples, self._full_range = stream, None, None, True
        self._remembered.clear()

    def calibrate_with(self, calibrator: Calibrator | str, samples: Samples, *, full_range: bool = True) -> None:
        """Set a calibrator and its samples: mappings of input names to arrays, or (name, mapping) pairs.

        If the network has one input, samples may also be arrays, or one array of all samples. Replaces
        `int8_calibrator`.

        Args:
            calibrator: a calibrator, or the name of an installed one.
            samples: samples, iterated once for each network that is built or assessed; an iterator serves only one.
            full_range: whether network inputs, and the outputs of softmax and sigmoid, keep their largest magnitude.

        Raises:
            UnknownNameError: The calibrator does not exist.
            CalibrationError: The calibrator is of another type.
            ConfigError: The calibrator provides samples of its own.
        """
        from dryfit.plugins.calibrators import calibrator as installed
        from dryfit.quantization.calibrator import require_calibrator

        found = installed(calibrator) if isinstance(calibrator, str) else calibrator
        require_calibrator(found)
        if found.stream is not None:
            raise ConfigError(
                "The calibrator must not be given samples",
                where=f"calibrator {found.name!r}",
                found="samples for a calibrator that reads its own",
                remedy="Leave out the samples, or choose a calibrator such as entropy2 or minmax",
            )
        self._calibrator, self._samples, self._stream, self._full_range = found, samples, None, full_range
        self._remembered.clear()

    @property
    def has_calibrator(self) -> bool:
        """Whether a build can calibrate the network by running it."""
        return self._stream is not None or self._calibrator is not None

    @property
    def keeps_full_range(self) -> bool:
        """Whether `calibrate_with` was set to keep the largest magnitude of inputs and probabilities."""
        return self._full_range

    def set_calibration_profile(self, profile: OptimizationProfile) -> bool:
        """Set the profile whose optimum shapes are used to calibrate a network with dynamic inputs.

        Default: the first optimization profile.
        """
        self._calibration_profile = profile
        self._remembered.clear()
        return True

    def get_calibration_profile(self) -> OptimizationProfile | None:
        """Return the calibration profile."""
        return self._calibration_profile

    @property
    def calibration_cache(self) -> CalibrationCache | None:
        """Scales from an earlier calibration. Accepts the path of a cache of any form, or bytes of a TensorRT cache.

        Raises:
            CalibrationError: On assignment: the file cannot be read or is corrupt; the message states file and line.
        """
        return self._cache

    @calibration_cache.setter
    def calibration_cache(self, cache: CalibrationCache | Path | str | bytes | None) -> None:
        from dryfit.quantization import cache_forms, calibration_cache

        if isinstance(cache, (str, Path)):
            self._cache = cache_forms.read_calibration_cache(Path(cache))
        elif isinstance(cache, bytes):
            self._cache = calibration_cache.parse(cache)
        else:
            self._cache = cache

    def calibration(self) -> tuple[Calibrator, Samples | None] | None:
        """Return the calibrator of a build and its samples, None if it provides its own; None without a calibrator.

        Raises:
            CalibrationError, UnknownNameError: The stream requests a calibrator that does not exist.
        """
        if self._stream is not None:
            from dryfit.plugins.calibrators import of_stream

            return of_stream(self._stream), None
        if self._calibrator is None or self._samples is None:
            return None
        return self._calibrator, self._samples

    def remembered_ranges(self, network: Network) -> Mapping[str, Solution] | None:
        """Return the ranges that were found for a network, if the network has not changed since."""
        revision, found = self._remembered.get(network, (-1, None))
        return found if revision == network.revision else None

    def remember_ranges(self, network: Network, found: Mapping[str, Solution]) -> None:
        """Store the ranges that were found for a network."""
        self._remembered[network] = (network.revision, found)

    @property
    def assume_scales(self) -> bool:
        """Whether every tensor is assumed to have an INT8 scale, to assess placement before calibration."""
        return self._assume_scales

    @assume_scales.setter
    def assume_scales(self, assume: bool) -> None:
        if not isinstance(assume, bool):
            raise ConfigError(
                "assume_scales must be True or False",
                found=repr(assume),
                allowed="True or False",
                remedy="Set it to True or False",
            )
        self._assume_scales = assume
