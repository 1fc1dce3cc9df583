"""TensorRT's calibration cache: a line that says who wrote it, and a scale for each tensor.

A scale is range / 127, written as the bits of a binary32 number in lower-case hexadecimal digits without leading
zeros. Source: the published caches of TensorRT 4 to 10.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping

import attrs

from dryfit.errors import CalibrationError
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.calibrator import Solution

NEWEST_VERSION = 100300
"""TensorRT 10.3 as caches write it: 10000 * major + 100 * minor + patch. Before 10.0 it is 1000 * major."""

_HEADER_NAMES = {
    "EntropyCalibration": CalibrationAlgoType.ENTROPY_CALIBRATION,
    "EntropyCalibration2": CalibrationAlgoType.ENTROPY_CALIBRATION_2,
    "MinMaxCalibration": CalibrationAlgoType.MINMAX_CALIBRATION,
}
_HEADER = re.compile(r"TRT-\d+-(\w+)")
_LEGACY_HEADER = re.compile(r"0 [0-9a-f]{1,16} [0-9a-f]{1,16}")
_ENTRY = re.compile(r"(.*): ([0-9a-fA-F]{1,8})")


@attrs.frozen
class CalibrationCache:
    """The scales of a network's tensors.

    Attributes:
        header: the first line.
        scales: tensor to scale, a binary32 number, in the order of the file. A scale of 0.0 means that there is none.
    """

    header: str
    scales: Mapping[str, float]

    @property
    def algorithm(self) -> CalibrationAlgoType | None:
        """The algorithm that found the scales; None where the first line does not say in a way that is known."""
        if _LEGACY_HEADER.fullmatch(self.header):
            return CalibrationAlgoType.LEGACY_CALIBRATION
        if self.header in ("1", "2", "3"):
            return CalibrationAlgoType(int(self.header))
        found = _HEADER.fullmatch(self.header)
        return _HEADER_NAMES.get(found[1]) if found else None

    @classmethod
    def of_solutions(
        cls, solutions: Mapping[str, Solution], algorithm: CalibrationAlgoType, version: int = NEWEST_VERSION
    ) -> CalibrationCache:
        """The cache for what a calibrator found; tensors without a range get the scale 0.

        Raises:
            CalibrationError: the algorithm is the legacy one, whose first line needs its quantile and cutoff.
        """
        names = {one: name for name, one in _HEADER_NAMES.items()}
        if algorithm not in names:
            raise CalibrationError(
                "A cache's first line cannot be written for this algorithm",
                found=algorithm.name,
                allowed=", ".join(one.name for one in names),
            )
        scales = {
            name: one.dynamic_range.scale if one.dynamic_range is not None else 0.0 for name, one in solutions.items()
        }
        return cls(f"TRT-{version}-{names[algorithm]}", scales)

    def solution(self, tensor: str) -> Solution:
        """The range of a tensor.

        Raises:
            KeyError: the cache has no such tensor.
        """
        found = Solution.of_threshold(127.0 * self.scales[tensor], origin="cache")
        return found if self.scales[tensor] else attrs.evolve(found, reason="its scale in the cache is zero")

    def to_bytes(self) -> bytes:
        """The file."""
        lines = [f"{name}: {struct.unpack('>I', struct.pack('>f', scale))[0]:x}" for name, scale in self.scales.items()]
        return "".join(f"{line}\n" for line in [self.header, *lines]).encode()


def parse(data: bytes, name: str = "calibration cache") -> CalibrationCache:
    r"""The cache in a file; lines may end with CR LF.

    Args:
        data: the file.
        name: what errors call it.

    Raises:
        CalibrationError: the file is no UTF-8 or has no first line; a line is no entry, a tensor occurs twice, or a
            scale is negative or not finite. The error names the line.

    Example:
        >>> parse(b"TRT-8600-EntropyCalibration2\nimage: 3f800000\n").scales
        {'image': 1.0}
    """
    try:
        # Tensors may be called anything: only LF ends a line, not what Unicode has for that.
        header, *lines = [line.removesuffix("\r") for line in data.decode().removesuffix("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise CalibrationError("This is no calibration cache", where=name, found=str(error)) from None
    if not header.strip():
        raise CalibrationError("This is no calibration cache", where=name, found="an empty first line")
    scales: dict[str, float] = {}
    for number, line in enumerate(lines, 2):
        where = f"{name}, line {number}"
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise CalibrationError(
                "This is no entry",
                where=where,
                found=f"{line[:80]!r}",
                allowed="`name: ` and 1 to 8 hexadecimal digits",
            )
        scale: float = struct.unpack(">f", struct.pack(">I", int(entry[2], 16)))[0]
        if not math.isfinite(scale) or math.copysign(1.0, scale) < 0:
            raise CalibrationError("A scale is positive and finite", where=where, found=f"{scale} for {entry[1]!r}")
        if entry[1] in scales:
            raise CalibrationError("A tensor occurs twice", where=where, found=f"{entry[1]!r}")
        scales[entry[1]] = scale
    return CalibrationCache(header, scales)
