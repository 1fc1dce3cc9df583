"""Text files that have a tensor and its largest magnitude a line: sampleINT8API's, and ONNX Runtime's.

They differ in what stands between the two: `conv1: 2.5` and `conv1 2.5`. The last one counts, for names may hold it.
"""

from __future__ import annotations

import attrs

from dryfit.errors import CalibrationError
from dryfit.quantization.calibration_cache import text_lines
from dryfit.quantization.scale_table import RangeOrigin
from dryfit.quantization.stored_ranges import Damage, StoredRange, StoredRanges


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
        """The tensor of a line and its number; None where the line is no entry."""
        tensor, parting, value = line.rpartition(self.parting)
        try:
            return (tensor, float(value)) if parting and tensor else None
        except ValueError:
            return None

    def stored(self, data: bytes, name: str) -> StoredRanges:
        """Every entry of a file, flaws included; empty lines are skipped.

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
                damages.append(Damage(place, "This is no dynamic range", f"{line[:80]!r}", allowed))
        return StoredRanges(entries, self.name, damages=damages)

    def to_bytes(self, stored: StoredRanges) -> bytes:
        """The file with these ranges; tensors without one are left out.

        Raises:
            CalibrationError: a name is empty or has a line end in it.
        """
        for entry in stored.entries:
            if not entry.name or "\n" in entry.name:
                raise CalibrationError(f"The form {self.name} has no place for such a name", found=f"{entry.name!r}")
        ranged = [(entry.name, entry.dynamic_range) for entry in stored.entries]
        return "".join(f"{name}{self.written}{one.threshold!r}\n" for name, one in ranged if one is not None).encode()


RANGE_LINES = LineForm("ranges", ":", ": ", RangeOrigin.BY_HAND)
"""The file of TensorRT's sampleINT8API."""

ONNXRUNTIME_LINES = LineForm("onnxruntime-text", " ", " ", RangeOrigin.CALIBRATED)
"""The `calibration.cache` of `onnxruntime.quantization.write_calibration_table`."""
