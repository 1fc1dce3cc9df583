"""Text files with one tensor per line: TensorRT's calibration cache, and files of largest magnitudes.

The first line of a cache identifies its writer. A scale is range / 127, written as the bits of a binary32 number in
lower-case hexadecimal digits without leading zeros. Source: the published caches of TensorRT 4 to 10.

Files of magnitudes are those of sampleINT8API and of ONNX Runtime. They differ in the separator between name and
number: `conv1: 2.5` and `conv1 2.5`. The last separator of a line counts, because names may contain it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.scale_table import RangeOrigin
from dryfit.quantization.stored_ranges import Damage, StoredRange, StoredRanges

FORM = "tensorrt"
"""The name of this form of file."""

_ENTRY = re.compile(r"(.*): ([0-9a-fA-F]{1,8})")


@frozen
class CalibrationCache:
    """Scales of a network's tensors.

    Attributes:
        header: the first line.
        scales: tensor to scale, a binary32 number, in file order. A scale of 0.0 means that the tensor has none.
    """

    header: str
    scales: Mapping[str, float]

    @property
    def algorithm(self) -> CalibrationAlgoType | None:
        """Algorithm that computed the scales; None if the first line does not name a known one."""
        found = CacheHeader.parse(self.header)
        return found.algorithm if found else None

    @classmethod
    def of_solutions(
        cls, solutions: Mapping[str, Solution], header: CacheHeader | CalibrationAlgoType
    ) -> CalibrationCache:
        """Return the cache for the results of a calibrator; tensors without a range have the scale 0.

        Args:
            solutions: solution by tensor.
            header: the first line; an algorithm alone implies TensorRT 10.3.

        Raises:
            CalibrationError: The algorithm is the legacy one, and its quantile or cutoff is missing.
        """
        said = header if isinstance(header, CacheHeader) else CacheHeader(header)
        scales = {
            name: one.dynamic_range.scale if one.dynamic_range is not None else 0.0 for name, one in solutions.items()
        }
        return cls(said.text, scales)

    @classmethod
    def of_stored(cls, stored: StoredRanges) -> CalibrationCache:
        """Return the scales of a validated file of any format."""
        return cls(stored.header, {entry.name: entry.scale for entry in stored.entries})

    def solution(self, tensor: str) -> Solution:
        """Return the range of a tensor.

        Raises:
            KeyError: The cache does not contain the tensor.
        """
        found = Solution.of_threshold(127.0 * self.scales[tensor], origin="cache")
        return found if self.scales[tensor] else attrs.evolve(found, reason="its scale in the cache is zero")

    def to_bytes(self) -> bytes:
        """Return the contents of the file.

        Raises:
            CalibrationError: A name, or the first line, contains a line break.
        """
        for text in (self.header, *self.scales):
            if "\n" in text:
                raise CalibrationError(
                    "Tensor names in a calibration cache must not contain line breaks",
                    found=f"{text!r}",
                    remedy="Rename the tensor",
                )
        lines = [f"{name}: {struct.unpack('>I', struct.pack('>f', scale))[0]:x}" for name, scale in self.scales.items()]
        return "".join(f"{line}\n" for line in [self.header, *lines]).encode()


def parse(data: bytes, name: str = "calibration cache") -> CalibrationCache:
    r"""Return the cache in a file in TensorRT's format; lines may end with CR LF.

    Raises:
        CalibrationError: The file is not valid UTF-8 or has no header line, a line is not an entry, a tensor occurs
            twice, or a scale is negative or not finite. The message names the line.

    Example:
        >>> parse(b"TRT-8600-EntropyCalibration2\nimage: 3f800000\n").scales
        {'image': 1.0}
    """
    return CalibrationCache.of_stored(stored_in_cache(data, name).require_sound(name))


def stored_in_cache(data: bytes, name: str = "calibration cache") -> StoredRanges:
    """Return every entry of a file in TensorRT's format, including invalid ones.

    Raises:
        CalibrationError: The file is not valid UTF-8, its first line is empty or an entry, or a line cannot be parsed.
    """
    header, *lines = text_lines(data, name)
    if not header.strip():
        raise CalibrationError(
            "The file is not a calibration cache",
            where=f"{name}, line 1",
            found="an empty first line",
            remedy="Pass a calibration cache",
        )
    if _ENTRY.fullmatch(header):
        raise CalibrationError(
            "The first line of a calibration cache must name the algorithm",
            where=f"{name}, line 1",
            found=f"the entry {header[:80]!r}",
            allowed="such as TRT-8600-EntropyCalibration2",
            remedy="Add the line, or calibrate again",
        )
    if not lines and CacheHeader.parse(header) is None:
        # One line of anything would be a cache without tensors, and a build would take it.
        raise CalibrationError(
            "The file is not a calibration cache",
            where=f"{name}, line 1",
            found=f"only {header[:80]!r}",
            remedy="Pass a calibration cache",
        )
    entries, damages = [], []
    for number, line in enumerate(lines, 2):
        place = f"line {number}"
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            damages.append(Damage(place, "Not an entry", f"{line[:80]!r}", "`name: ` and 1 to 8 hexadecimal digits"))
            continue
        scale: float = struct.unpack(">f", struct.pack(">I", int(entry[2], 16)))[0]
        entries.append(StoredRange.of_scale(entry[1], scale, place=place))
    return StoredRanges(entries, FORM, header, damages=damages)


def cache_bytes(stored: StoredRanges) -> bytes:
    """Return the file in TensorRT's format with these scales. Default first line: entropy2 of TensorRT 10.3.

    Raises:
        CalibrationError: A name contains a line break.
    """
    cache = CalibrationCache.of_stored(stored)
    default = CacheHeader(CalibrationAlgoType.ENTROPY_CALIBRATION_2).text
    return attrs.evolve(cache, header=cache.header or default).to_bytes()


def text_lines(data: bytes, name: str) -> list[str]:
    """Return the lines of a text file, at least one, without their line ends (LF or CR LF).

    Raises:
        CalibrationError: The file is not valid UTF-8.
    """
    try:
        # Tensors may be called anything: only LF ends a line, not what Unicode has for that.
        return [line.removesuffix("\r") for line in data.decode().removesuffix("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise CalibrationError(
            "The file is not a calibration cache", where=name, found=str(error), remedy="Pass a calibration cache"
        ) from None


@frozen
class LineForm:
    """One of these formats.

    Attributes:
        name: name of the format.
        parting: separator after the tensor's name.
        written: the separator as written, including the following space.
        origin: origin of the ranges in such a file.
    """

    name: str
    parting: str
    written: str
    origin: RangeOrigin

    def split(self, line: str) -> tuple[str, float] | None:
        """Return the tensor and the number of a line; None if the line is not an entry."""
        tensor, parting, value = line.rpartition(self.parting)
        try:
            return (tensor, float(value)) if parting and tensor else None
        except ValueError:
            return None

    def stored(self, data: bytes, name: str) -> StoredRanges:
        """Return every entry of a file, including invalid ones; empty lines are skipped.

        Raises:
            CalibrationError: The file is not valid UTF-8.
        """
        entries: list[StoredRange] = []
        damages: list[Damage] = []
        for number, line in enumerate(text_lines(data, name), 1):
            place, found = f"line {number}", self.split(line)
            if found is not None:
                entries.append(StoredRange.of_threshold(*found, place=place, origin=self.origin))
            elif line.strip():
                allowed = f"`name{self.written}range`"
                damages.append(Damage(place, "Not a dynamic range", f"{line[:80]!r}", allowed))
        return StoredRanges(entries, self.name, damages=damages)

    def to_bytes(self, stored: StoredRanges) -> bytes:
        """Return the file with these ranges; tensors without a range are omitted.

        Raises:
            CalibrationError: A name is empty or contains a line break.
        """
        for entry in stored.entries:
            if not entry.name or "\n" in entry.name:
                raise CalibrationError(
                    f"The form {self.name} does not support this tensor name",
                    found=f"{entry.name!r}",
                    allowed="a name without line breaks that is not empty",
                    remedy="Rename the tensor, or choose another form",
                )
        ranged = [(entry.name, entry.dynamic_range) for entry in stored.entries]
        return "".join(f"{name}{self.written}{one.threshold!r}\n" for name, one in ranged if one is not None).encode()


RANGE_LINES = LineForm("ranges", ":", ": ", RangeOrigin.BY_HAND)
"""The file of TensorRT's sampleINT8API."""

ONNXRUNTIME_LINES = LineForm("onnxruntime-text", " ", " ", RangeOrigin.CALIBRATED)
"""The `calibration.cache` of `onnxruntime.quantization.write_calibration_table`."""
