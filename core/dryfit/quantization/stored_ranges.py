"""What files say of the ranges of tensors, whatever their form: also what is wrong with it, so that it can be told.

A file is read in two steps. Its form gives every entry with its place, flaws included; whoever needs ranges then asks
for `require_sound`, which refuses flaws.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.quantization.int8_steps import DynamicRange, int8_scale
from dryfit.quantization.scale_table import RangeOrigin


class Flaw(enum.Enum):
    """What may be wrong with the number of an entry; the values are words of `dryfit cache check --fail-on`."""

    ZERO = "zero"
    """There is no scale. Calibrators write this for tensors whose values are all zero; it is no error."""
    NEGATIVE = "negative"
    NOT_FINITE = "nonfinite"
    """NaN or infinity; also a range whose 127th part is too large for binary32."""


@frozen
class StoredRange:
    """What a file says of one tensor.

    Attributes:
        name: the tensor.
        scale: a binary32 number, as the file has it or as it follows from the range; 0.0 for none. NaN, infinite and
            negative ones are flaws.
        dynamic_range: the range; None where there is no sound scale.
        origin: where it comes from.
        place: where in the file the entry stands, such as `line 3`.
        details: what the calibrator reports of it, such as whose range it shares.
        statistics: what calibration saw of the tensor; empty where the file does not tell.
    """

    name: str
    scale: float
    dynamic_range: DynamicRange | None
    origin: RangeOrigin = RangeOrigin.CALIBRATED
    place: str = ""
    details: Mapping[str, Any] = attrs.field(factory=dict)
    statistics: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of_scale(cls, name: str, scale: float, **others: Any) -> StoredRange:
        """The entry of a tensor of which a scale is stated; its range is 127 times that, exactly."""
        threshold = 127.0 * scale
        is_sound = math.isfinite(scale) and scale > 0
        return cls(name, scale, DynamicRange(-threshold, threshold) if is_sound else None, **others)

    @classmethod
    def of_ends(cls, name: str, minimum: float, maximum: float, **others: Any) -> StoredRange:
        """The entry of a tensor of which both ends of the range are stated, `minimum <= maximum` or NaN."""
        is_nan = math.isnan(minimum) or math.isnan(maximum)
        scale = math.nan if is_nan else int8_scale(max(abs(minimum), abs(maximum)))
        is_sound = 0.0 < scale < math.inf
        return cls(name, scale, DynamicRange(minimum, maximum) if is_sound else None, **others)

    @classmethod
    def of_threshold(cls, name: str, threshold: float, **others: Any) -> StoredRange:
        """The entry of a tensor of which the largest magnitude is stated, which may be flawed."""
        if threshold >= 0:
            return cls.of_ends(name, -threshold, threshold, **others)
        return cls(name, int8_scale(threshold), None, **others)

    @property
    def flaw(self) -> Flaw | None:
        """What is wrong with the scale."""
        if not math.isfinite(self.scale):
            return Flaw.NOT_FINITE
        # Minus zero has a sign, and no writer of scales writes it.
        if math.copysign(1.0, self.scale) < 0:
            return Flaw.NEGATIVE
        return Flaw.ZERO if self.scale == 0.0 else None


@frozen
class Damage:
    """A place in a file that says nothing.

    Attributes:
        place: such as `line 3`.
        message: what is wrong.
        found: the text in the file.
        allowed: what is allowed there.
    """

    place: str
    message: str
    found: str
    allowed: str | None = None


@frozen
class StoredRanges:
    """What a file says.

    Attributes:
        entries: in the order of the file; a name may occur twice.
        form: name of the file's form; see `dryfit.quantization.cache_forms`.
        header: TensorRT's first line, "" where the file has none.
        facts: what else the file contains about how its ranges were found: strings and numbers by name.
        damages: places that could not be read.
    """

    entries: Sequence[StoredRange]
    form: str
    header: str = ""
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    damages: Sequence[Damage] = ()

    @property
    def by_name(self) -> dict[str, StoredRange]:
        """Tensor to its entry; of several the first."""
        found: dict[str, StoredRange] = {}
        for entry in self.entries:
            found.setdefault(entry.name, entry)
        return found

    @property
    def repeated(self) -> list[StoredRange]:
        """Entries of tensors that an earlier entry is of."""
        first = self.by_name
        return [entry for entry in self.entries if entry is not first[entry.name]]

    def require_sound(self, name: str) -> StoredRanges:
        """The same, if every place could be read, no scale is negative or not finite, and no tensor occurs twice.

        Raises:
            CalibrationError: there is a flaw; the error names the first one's place.
        """
        flawed = [entry for entry in self.entries if entry.flaw in (Flaw.NEGATIVE, Flaw.NOT_FINITE)]
        problems = [
            *((one.place, one.message, one.found, one.allowed) for one in self.damages),
            *(
                (one.place, "A scale must be positive and finite", f"{one.scale} for {one.name!r}", None)
                for one in flawed
            ),
            *((one.place, "Tensor names must be unique", f"{one.name!r}", None) for one in self.repeated),
        ]
        if problems:
            place, message, found, allowed = problems[0]
            remedy = f"{len(problems) - 1} more: `dryfit cache check` lists them" if problems[1:] else None
            raise CalibrationError(message, where=f"{name}, {place}", found=found, allowed=allowed, remedy=remedy)
        return self
