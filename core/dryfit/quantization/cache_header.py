"""The first line of TensorRT's calibration cache: which algorithm found the scales, in which version.

Three generations are known. Source: the published caches of TensorRT 4 to 10.

* Up to TensorRT 5.0 it is the number of the algorithm: `1`.
* From 5.1 on it is `TRT-8600-EntropyCalibration2`.
* Of the legacy algorithm it is, in every version, `0` and the bits of two binary64 numbers: cutoff and quantile.
"""

from __future__ import annotations

import re
import struct

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.quantization.calibration_stream import CalibrationAlgoType

Version = tuple[int, int, int]
"""Major, minor and patch."""

NEWEST_VERSION: Version = (10, 3, 0)
"""The version that is written where none is asked for."""

ALGORITHM_NAMES = {
    CalibrationAlgoType.ENTROPY_CALIBRATION: "EntropyCalibration",
    CalibrationAlgoType.ENTROPY_CALIBRATION_2: "EntropyCalibration2",
    CalibrationAlgoType.MINMAX_CALIBRATION: "MinMaxCalibration",
}
"""Algorithm to its name in the first line."""

_NAMED = re.compile(r"TRT-([1-9][0-9]{3,5})-(\w+)", re.ASCII)
_NUMBERED = re.compile(r"[123]")
_LEGACY = re.compile(r"0 ([0-9a-f]{1,16}) ([0-9a-f]{1,16})")

_FIRST_NAMED: Version = (5, 1, 0)
_FIRST_MINMAX: Version = (6, 0, 0)


@frozen
class CacheHeader:
    """What a first line says.

    Attributes:
        algorithm: what found the scales.
        version: TensorRT's; None where the line does not tell.
        cutoff, quantile: the legacy algorithm's, from 0 to 1; None for the others.

    Example:
        >>> CacheHeader.parse("TRT-8510-EntropyCalibration2").version
        (8, 5, 10)
    """

    algorithm: CalibrationAlgoType
    version: Version | None = NEWEST_VERSION
    cutoff: float | None = None
    quantile: float | None = None

    @classmethod
    def parse(cls, line: str) -> CacheHeader | None:
        """What a line says; None where it is none of these generations, or names an algorithm that is not known."""
        if _NUMBERED.fullmatch(line):
            return cls(CalibrationAlgoType(int(line)), None)
        legacy = _LEGACY.fullmatch(line)
        if legacy:
            cutoff, quantile = (_number(digits) for digits in legacy.groups())
            return cls(CalibrationAlgoType.LEGACY_CALIBRATION, None, cutoff, quantile)
        named = _NAMED.fullmatch(line)
        algorithms = {name: algorithm for algorithm, name in ALGORITHM_NAMES.items()}
        if named and named[2] in algorithms:
            return cls(algorithms[named[2]], version_of_code(int(named[1])))
        return None

    @property
    def text(self) -> str:
        """The line, without its end.

        Raises:
            CalibrationError: the legacy algorithm's cutoff or quantile is missing, or the version does not have the
                algorithm.
        """
        if self.algorithm is CalibrationAlgoType.LEGACY_CALIBRATION:
            return self._legacy_text()
        if self.version is None or self.version < _FIRST_NAMED:
            self._require_algorithm()
            return str(int(self.algorithm))
        self._require_algorithm()
        return f"TRT-{code_of_version(self.version)}-{ALGORITHM_NAMES[self.algorithm]}"

    def _legacy_text(self) -> str:
        if self.cutoff is None or self.quantile is None:
            raise CalibrationError(
                "The cache of the legacy algorithm must have its regression cutoff and quantile in the first line",
                found=f"{self.algorithm.name}, cutoff {self.cutoff}, quantile {self.quantile}",
                allowed=f"two numbers from 0 to 1, or one of {', '.join(one.name for one in ALGORITHM_NAMES)}",
                remedy="Use numbers, or choose another algorithm",
            )
        return f"0 {_bits(self.cutoff)} {_bits(self.quantile)}"

    def _require_algorithm(self) -> None:
        is_minmax = self.algorithm is CalibrationAlgoType.MINMAX_CALIBRATION
        if is_minmax and self.version is not None and self.version < _FIRST_MINMAX:
            raise CalibrationError(
                "The algorithm is not supported in this version of TensorRT",
                found=f"{self.algorithm.name} in {'.'.join(map(str, self.version))}",
                allowed="6.0 and later",
                source="TensorRT's headers",
                remedy="Choose a newer version, or another algorithm",
            )


def version_of_code(code: int) -> Version:
    """The version that a first line writes as one number: 8510 is 8.5.10, 101401 is 10.14.1."""
    base = 10000 if code >= 100000 else 1000
    return code // base, code % base // 100, code % 100


def code_of_version(version: Version) -> int:
    """The number that a first line has for a version.

    Source: published caches; the factor of the major version is 1000 through 9.x and 10000 from 10.0 on.
    """
    major, minor, patch = version
    return (10000 if major >= 10 else 1000) * major + 100 * minor + patch


def parse_version(text: str) -> Version:
    """The version of `8.6.1`, `8.6` or `8`.

    Raises:
        CalibrationError: the text is none, or a first line cannot hold it.
    """
    match = re.fullmatch(r"([1-9][0-9]?)(?:\.([0-9]{1,2}))?(?:\.([0-9]{1,2}))?", text, re.ASCII)
    version = (int(match[1]), int(match[2] or 0), int(match[3] or 0)) if match else None
    if version is None or (version >= _FIRST_NAMED and version_of_code(code_of_version(version)) != version):
        raise CalibrationError(
            "Not a TensorRT version",
            found=text,
            allowed="major.minor.patch such as 8.6.1; minor below 10 to 9.x",
            remedy="Use one of these forms",
        )
    return version


def _number(digits: str) -> float:
    value: float = struct.unpack(">d", struct.pack(">Q", int(digits, 16)))[0]
    return value


def _bits(value: float) -> str:
    return f"{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"
