"""The answer to "can this layer run there", with every reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.network.data_types import DataType
from dryfit.target.question import Question


@attrs.frozen
class Violation:
    """One rule that a layer fails.

    Attributes:
        rule: the stable id, such as `dla.convolution.kernel`.
        parameter: what was looked at, in the user's words, such as `kernel_size_nd`.
        actual: what was found, as text.
        allowed: what would pass, as text.
        message: one sentence with both.
        remedy: what the user can do, or "".
        source: document and section.
        fidelity: how sure the rule is: `documented`, `inferred` or `confirmed`.
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
        layer: the user's layer name.
        device: the device asked about.
        platform, software: what the rules were chosen for, such as `agx-orin-64` and `10.3`.
        violations: every rule that fails, in the order of the table; none where the layer is supported.
        warnings: rules of severity warning that did not hold; they do not decide.
        notes: rules of severity note that did not hold: what the device does with the layer that was not asked for.
        precision: the type in which the device computes the layer: the one asked for, or what a note promotes it to.
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
        """Return the verdict that nothing stands against the layer of a question."""
        version = ".".join(map(str, question.software))
        return cls(question.layer.name, question.device, question.platform, version, precision=question.precision)

    @property
    def supported(self) -> bool:
        """Whether the layer can run there."""
        return not self.violations

    def __bool__(self) -> bool:
        return self.supported

    def __str__(self) -> str:
        if self.supported:
            return f"{self.layer!r} can run on {self.device}"
        return f"{self.layer!r} cannot run on {self.device}: " + "; ".join(map(str, self.violations))
