"""Text files with a tensor a line: TensorRT's calibration cache, and files of largest magnitudes.

A cache begins with a line that says who wrote it. A scale is range / 127, written as the bits of a binary32 number in
lower-case hexadecimal digits without leading zeros. Source: the published caches of TensorRT 4 to 10.

Magnitudes are in the files of sampleINT8API and of ONNX Runtime. They differ in what is between name and number:
`conv1: 2.5` and `conv1 2.5`. The last one counts, for names may hold it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

import attrs

from dryfit.errors import CalibrationError
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.scale_table import RangeOrigin
from dryfit.quantization.stored_ranges import Damage, StoredRange, StoredRanges

FORM = "tensorrt"
"""The name of this form of file."""

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
        found = CacheHeader.parse(self.header)
        return found.algorithm if found else None

    @classmethod
    def of_solutions(
        cls, solutions: Mapping[str, Solution], header: CacheHeader | CalibrationAlgoType
    ) -> CalibrationCache:
        """Return the cache for what a calibrator found; tensors without a range get the scale 0.

        Args:
            solutions: by tensor.
            header: what the first line is to say; an algorithm alone means TensorRT 10.3.

        Raises:
            CalibrationError: the algorithm is the legacy one, and its quantile or cutoff is missing.
        """
        said = header if isinstance(header, CacheHeader) else CacheHeader(header)
        scales = {
            name: one.dynamic_range.scale if one.dynamic_range is not None else 0.0 for name, one in solutions.items()
        }
        return cls(said.text, scales)

    @classmethod
    def of_stored(cls, stored: StoredRanges) -> CalibrationCache:
        """Return the scales of a file of any form, which has been found sound."""
        return cls(stored.header, {entry.name: entry.scale for entry in stored.entries})

    def solution(self, tensor: str) -> Solution:
        """Return the range of a tensor.

        Raises:
            KeyError: the cache has no such tensor.
        """
        found = Solution.of_threshold(127.0 * self.scales[tensor], origin="cache")
        return found if self.scales[tensor] else attrs.evolve(found, reason="its scale in the cache is zero")

    def to_bytes(self) -> bytes:
        """Return the file.

        Raises:
            CalibrationError: a name, or the first line, has a line end in it.
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
    r"""Return the cache in a file of TensorRT's form; lines may end with CR LF.

    Raises:
        CalibrationError: the file is no UTF-8 or has no first line; a line is no entry, a tensor occurs twice, or a
            scale is negative or not finite. The error names the line.

    Example:
        >>> parse(b"TRT-8600-EntropyCalibration2\nimage: 3f800000\n").scales
        {'image': 1.0}
    """
    return CalibrationCache.of_stored(stored_in_cache(data, name).require_sound(name))


def stored_in_cache(data: bytes, name: str = "calibration cache") -> StoredRanges:
    """Return every entry of a file of TensorRT's form, flaws included.

    Raises:
        CalibrationError: the file is no UTF-8, its first line is empty or an entry, or there is one line of no meaning.
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
    """The file of TensorRT's form with these scales; without a first line it gets that of entropy2 in TensorRT 10.3.

    Raises:
        CalibrationError: a name has a line end in it.
    """
    cache = CalibrationCache.of_stored(stored)
    default = CacheHeader(CalibrationAlgoType.ENTROPY_CALIBRATION_2).text
    return attrs.evolve(cache, header=cache.header or default).to_bytes()


def text_lines(data: bytes, name: str) -> list[str]:
    """Return the lines of a text file, at least one, without their ends, LF or CR LF.

    Raises:
        CalibrationError: the file is no UTF-8.
    """
    try:
        # Tensors may be called anything: only LF ends a line, not what Unicode has for that.
        return [line.removesuffix("\r") for line in data.decode().removesuffix("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise CalibrationError(
            "The file is not a calibration cache", where=name, found=str(error), remedy="Pass a calibration cache"
        ) from None


@attrs.frozen
class LineForm:
    """One of these forms.

    Attributes:
        name: of the form.
        parting: the character after the tensor's name.
        written: the same with the space that writers put behind it.
        origin: where the ranges of such a file come from.
    """

    name: str
    parting: str
    written: str
    origin: RangeOrigin

    def split(self, line: str) -> tuple[str, float] | None:
        """Return the tensor of a line and its number; None where the line is no entry."""
        tensor, parting, value = line.rpartition(self.parting)
        try:
            return (tensor, float(value)) if parting and tensor else None
        except ValueError:
            return None

    def stored(self, data: bytes, name: str) -> StoredRanges:
        """Return every entry of a file, flaws included; empty lines are skipped.

        Raises:
            CalibrationError: the file is no UTF-8.
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
        """Return the file with these ranges; tensors without one are left out.

        Raises:
            CalibrationError: a name is empty or has a line end in it.
        """
        for entry in stored.entries:
            if not entry.name or "\n" in entry.name:
                raise CalibrationError(
                    f"The form {self.name} does not support this tensor name",
                    found=f"{entry.name!r}",
                    remedy="Rename the tensor, or choose another form",
                )
        ranged = [(entry.name, entry.dynamic_range) for entry in stored.entries]
        return "".join(f"{name}{self.written}{one.threshold!r}\n" for name, one in ranged if one is not None).encode()


RANGE_LINES = LineForm("ranges", ":", ": ", RangeOrigin.BY_HAND)
"""The file of TensorRT's sampleINT8API."""

ONNXRUNTIME_LINES = LineForm("onnxruntime-text", " ", " ", RangeOrigin.CALIBRATED)
"""The `calibration.cache` of `onnxruntime.quantization.write_calibration_table`."""
