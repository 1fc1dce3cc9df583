"""The verdict on whether a layer can run on a device, with all reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.target.question import Question


@frozen
class Violation:
    """A rule that a layer fails.

    Attributes:
        rule: stable id, such as `dla.convolution.kernel`.
        parameter: name of the checked parameter, such as `kernel_size_nd`.
        actual: found value, as text.
        allowed: allowed values, as text.
        message: one sentence with both.
        remedy: how the user can fix it, or "".
        source: document and section.
        fidelity: certainty of the rule: `documented`, `inferred` or `confirmed`.
    """

    rule: str
    parameter: str
    actual: str
    allowed: str
    message: str
    remedy: str
    source: str
    fidelity: str = "documented"

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]" + (f". {self.remedy}" if self.remedy else "")


def _tuple(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    return tuple(violations)


@attrs.frozen
class Verdict:
    """Whether one layer can run on one device, and all rules that it fails.

    Attributes:
        layer: name of the layer.
        device: name of the device.
        platform, software: platform and software version of the rules, such as `agx-orin-64` and `10.3`.
        violations: all rules that fail, in the order of the table; empty if the layer is supported.
        warnings: rules of severity warning that fail; they do not affect the result.
        notes: rules of severity note that fail: what the device does with the layer beyond what was requested.
        precision: type in which the device computes the layer: the requested type, or the type to which a note promotes
            it.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {name: name for name in ("supported", "violations", "warnings")}

    layer: str
    device: str
    platform: str = ""
    software: str = ""
    violations: Sequence[Violation] = attrs.field(default=(), converter=_tuple)
    warnings: Sequence[Violation] = attrs.field(default=(), converter=_tuple)
    notes: Sequence[Violation] = attrs.field(default=(), converter=_tuple)
    precision: DataType = DataType.FLOAT

    @classmethod
    def support(cls, question: Question) -> Verdict:
        """Return the verdict that the layer of a question is supported."""
        version = ".".join(map(str, question.software))
        return cls(question.layer.name, question.device, question.platform, version, precision=question.precision)

    @property
    def supported(self) -> bool:
        """Whether the layer can run on the device."""
        return not self.violations

    def __bool__(self) -> bool:
        return self.supported

    def __str__(self) -> str:
        if self.supported:
            return f"{self.layer!r} can run on {self.device}"
        return f"{self.layer!r} cannot run on {self.device}: " + "; ".join(map(str, self.violations))
