"""The calibration of a builder config: what finds ranges, from which samples, and scales that were found before."""

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
    """The part of a builder config that says where INT8 scales come from."""

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
        """An object that brings samples and says which calibrator it wants; TensorRT's `IInt8Calibrator`.

        Derive it from `IInt8EntropyCalibrator2` or another of TensorRT's classes, or give it their methods. Where its
        attribute `full_range` is False, inputs and probabilities do not keep their largest magnitude.

        Raises:
            ConfigError: when set: it lacks methods of that interface.
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
        """Find ranges by a calibrator from samples: mappings of input names to arrays, or (name, mapping) pairs.

        Where the network has one input, samples may be arrays, or one array of all.
        Takes the place of `int8_calibrator`.

        Args:
            calibrator: one, or the name of an installed one.
            samples: gone through once for each network that is built or assessed; an iterator serves one.
            full_range: whether network inputs, and the outputs of softmax and sigmoid, keep their largest magnitude.

        Raises:
            UnknownNameError: there is no calibrator of this name.
            ConfigError: the calibrator brings samples of its own.
        """
        from dryfit.plugins.calibrators import calibrator as installed

        found = installed(calibrator) if isinstance(calibrator, str) else calibrator
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
        """Whether a build may find ranges by running the network."""
        return self._stream is not None or self._calibrator is not None

    @property
    def keeps_full_range(self) -> bool:
        """Whether `calibrate_with` said that inputs and probabilities keep their largest magnitude."""
        return self._full_range

    def set_calibration_profile(self, profile: OptimizationProfile) -> bool:
        """State the shapes in which a network with dynamic inputs is calibrated: the profile's optimum.

        Without one the first optimization profile counts.
        """
        self._calibration_profile = profile
        self._remembered.clear()
        return True

    def get_calibration_profile(self) -> OptimizationProfile | None:
        """The profile that was set."""
        return self._calibration_profile

    @property
    def calibration_cache(self) -> CalibrationCache | None:
        """Scales that were found before. The path of a file of any form, or the bytes of one of TensorRT's, may be set.

        Raises:
            CalibrationError: when set: the file cannot be read, or is damaged; names file and line.
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
        """The calibrator of a build and its samples, None where it brings them; None without a calibrator.

        Raises:
            CalibrationError, UnknownNameError: the stream asks for a calibrator that is not there.
        """
        if self._stream is not None:
            from dryfit.plugins.calibrators import of_stream

            return of_stream(self._stream), None
        if self._calibrator is None or self._samples is None:
            return None
        return self._calibrator, self._samples

    def remembered_ranges(self, network: Network) -> Mapping[str, Solution] | None:
        """What the calibrator found for a network, if that has not changed since."""
        revision, found = self._remembered.get(network, (-1, None))
        return found if revision == network.revision else None

    def remember_ranges(self, network: Network, found: Mapping[str, Solution]) -> None:
        """Keep what the calibrator found for a network."""
        self._remembered[network] = (network.revision, found)

    @property
    def assume_scales(self) -> bool:
        """Whether every tensor counts as if it had an INT8 scale, to ask about placement before calibrating."""
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
