"""The part of a builder config that says where the dynamic ranges of a network come from."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dryfit.builder.config.enumerations import QuantizationFlag, member, whole_number
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.network.network import Network
    from dryfit.quantization.calibration_cache import CalibrationCache
    from dryfit.quantization.calibration_stream import CalibrationStream
    from dryfit.quantization.calibrator import Calibrator, Solution
    from dryfit.quantization.sample_arrays import Samples


class ConfigCalibration:
    """Calibrator, calibration cache, profile and flags of implicit quantization.

    Of a cache and a calibrator the cache is looked at first: what it has is not calibrated again. A dynamic range that
    was set on a tensor wins over both.
    """

    def __init__(self) -> None:
        self._calibrator: Calibrator | None = None
        self._stream: CalibrationStream | None = None
        self._samples: Samples | None = None
        self._full_range = True
        self._cache: CalibrationCache | None = None
        self._calibration_profile: OptimizationProfile | None = None
        self._quantization_flags: set[QuantizationFlag] = set()
        self._remembered: weakref.WeakKeyDictionary[Network, tuple[int, Mapping[str, Solution]]]
        self._remembered = weakref.WeakKeyDictionary()

    # Calibrators --------------------------------------------------------------------------------------------------

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
                "This is no INT8 calibrator",
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
            raise ConfigError("The calibrator brings its own samples", where=f"calibrator {found.name!r}")
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

    # Caches -------------------------------------------------------------------------------------------------------

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

    # Flags --------------------------------------------------------------------------------------------------------

    def set_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Switch a flag on.

        Raises:
            ConfigError: there is no such flag.
        """
        self._quantization_flags.add(member(QuantizationFlag, flag, "quantization flag"))

    def clear_quantization_flag(self, flag: QuantizationFlag) -> None:
        """Switch a flag off."""
        self._quantization_flags.discard(member(QuantizationFlag, flag, "quantization flag"))

    def get_quantization_flag(self, flag: QuantizationFlag) -> bool:
        """Whether a flag is on."""
        return member(QuantizationFlag, flag, "quantization flag") in self._quantization_flags

    @property
    def quantization_flags(self) -> int:
        """All flags as a bit mask, `1 << flag` each; none in a new config."""
        return sum(1 << flag for flag in self._quantization_flags)

    @quantization_flags.setter
    def quantization_flags(self, mask: int) -> None:
        mask = whole_number(mask, "mask of quantization flags")
        known = sum(1 << flag for flag in QuantizationFlag)
        if mask & ~known:
            raise ConfigError("The mask has bits that are no quantization flag", found=bin(mask), allowed=bin(known))
        self._quantization_flags = {flag for flag in QuantizationFlag if mask >> flag & 1}

    # For the builder ----------------------------------------------------------------------------------------------

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
