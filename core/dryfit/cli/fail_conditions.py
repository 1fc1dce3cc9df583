"""The conditions of `--fail-on`: findings that turn a check's exit code into 1.

A condition is a subject, and where it has no limit of its own, more than 0: `fallback>3%`, `loadables>8`,
`dla.convolution.cbuf`. They look at the report that `--json` prints, so that a program can ask the same.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import click

from dryfit.cli.console import bytes_text

Report = dict[str, Any]

CONDITION = re.compile(
    r"(?P<subject>[a-z][\w.]*)\s*((?P<operator>>=|<=|!=|==|=|>|<)\s*(?P<limit>\d+(\.\d+)?)\s*(?P<unit>%|[a-z]*))?",
    re.IGNORECASE,
)
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
PERCENT = "%"
BYTES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
"""Units of sizes, in lower case, to bytes."""

SUBJECTS = {
    "fallback": "layers that are not on the device that they were given, in number or % of all that run on devices",
    "unplaced": "layers that can run nowhere they may go, in number or %",
    "loadables": "segments on the device that was asked for",
    "segments": "segments on all devices",
    "reformats": "copies between types, formats or devices, in number or bytes, such as 1.5MiB",
    "warnings": "warnings about layers on the device where they run",
}
"""What a condition may look at, beside the ids of rules and their first words."""
ALIASES = {"reformat": "reformats", "warning": "warnings"}
UNITS = {"fallback": {PERCENT}, "unplaced": {PERCENT}, "reformats": set(BYTES)}
"""Subject to the units that its limit may have; no unit means a number."""


@attrs.frozen
class Outcome:
    """What a condition found.

    Attributes:
        condition: as the user wrote it.
        actual: what was found, in words.
        failed: whether the condition holds, so that the check fails.
    """

    condition: str
    actual: str
    failed: bool

    def __str__(self) -> str:
        return f"{self.condition}: {self.actual}"


@attrs.frozen
class FailCondition:
    """One condition.

    Attributes:
        text: as the user wrote it.
        subject: one of `SUBJECTS`, or a rule's id or the first words of ids.
        operator: one of `OPERATORS`.
        limit: a number, a percentage or a size, as `unit` says.
        unit: "", "%", or one of `BYTES`.
    """

    text: str
    subject: str
    operator: str = ">"
    limit: float = 0
    unit: str = ""

    @classmethod
    def parse(cls, text: str) -> FailCondition:
        """A condition such as `fallback>3%`.

        Raises:
            ValueError: the text is no condition, or its subject is neither a word of `SUBJECTS` nor the beginning of a
                rule's id; the message says what would be one.
        """
        match = CONDITION.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text.strip()!r} is no condition; these are: fallback>3%, loadables>8, dla.pooling")
        subject = match["subject"].lower()
        subject = ALIASES.get(subject, subject)
        if subject not in SUBJECTS:
            _require_rule(subject)
        unit = (match["unit"] or "").lower()
        if unit and unit not in UNITS.get(subject, ()):
            allowed = ", ".join(sorted(UNITS.get(subject, ()))) or "none"
            raise ValueError(f"{text.strip()!r}: {subject} has no unit {match['unit']!r}, allowed: {allowed}")
        return cls(text.strip(), subject, match["operator"] or ">", float(match["limit"] or 0), unit)

    def outcome(self, report: Report) -> Outcome:
        """What the condition finds in a report."""
        value, words = self._measured(report)
        limit = self.limit * BYTES.get(self.unit, 1)
        return Outcome(self.text, words, OPERATORS[self.operator](value, limit))

    def _measured(self, report: Report) -> tuple[float, str]:
        """The value in the unit of the limit (sizes in bytes), and in words."""
        summary = report["summary"]
        match self.subject:
            case "fallback":
                return self._share(report, summary["fallback_layers"] + summary["unplaced_layers"])
            case "unplaced":
                return self._share(report, summary["unplaced_layers"])
            case "loadables":
                count = summary["segments_by_device"].get(report["device"], 0)
                return count, f"{count} on {report['device']}"
            case "segments" | "warnings":
                return summary[self.subject], f"{summary[self.subject]}"
            case "reformats":
                count, size = summary["reformats"], summary["reformat_bytes"]
                return size if self.unit else count, f"{count} of {bytes_text(size)}"
        layers = [layer["name"] for layer in report["layers"] if self.subject in _rule_words(layer)]
        return len(layers), f"{len(layers)} layer{'s' * (len(layers) != 1)} ({', '.join(layers) or 'none'})"

    def _share(self, report: Report, count: int) -> tuple[float, str]:
        """A number of layers, also as a share of those that run on devices; shape computations are not counted."""
        total = sum(layer["segment"] is not None or layer["device"] is None for layer in report["layers"])
        share = 100 * count / total if total else 0.0
        return share if self.unit == PERCENT else count, f"{count} of {total} layers ({share:.1f} %)"


class FailConditions(click.ParamType):
    """`fallback>3%,loadables>8` as conditions."""

    name = "conditions"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[FailCondition, ...]:
        """The conditions of a list with commas; a list without one is an error, because it would never fail."""
        if isinstance(value, tuple):
            return value
        texts = [text for text in str(value).split(",") if text.strip()]
        if not texts:
            self.fail(f"no condition is stated; there are {', '.join(SUBJECTS)} and the ids of rules", param, ctx)
        try:
            return tuple(map(FailCondition.parse, texts))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def outcomes(conditions: Sequence[FailCondition], report: Report) -> list[Outcome]:
    """What each condition finds in a report."""
    return [condition.outcome(report) for condition in conditions]


def _rule_words(layer: dict[str, Any]) -> set[str]:
    """The ids of the rules that a layer fails, of the warnings on the device where it runs, and their beginnings."""
    failed = [
        one["rule"]
        for device, verdict in layer["verdicts"].items()
        for one in (*verdict["violations"], *(verdict["warnings"] if device == layer["device"] else ()))
    ]
    return {beginning for rule in failed for beginning in _beginnings(rule)}


def _beginnings(rule: str) -> Iterator[str]:
    words = rule.split(".")
    return (".".join(words[:count]) for count in range(1, len(words) + 1))


def _require_rule(subject: str) -> None:
    """Refuse a subject with which no rule's id begins; the ids are too many to list."""
    from dryfit.plugins import registry

    named = registry.find_target(subject.partition(".")[0])
    asked = registry.targets().values() if named is None else [named]
    tables = [target.limits for target in asked if target.limits is not None]
    known = {beginning for table in tables for rule in table.all_rules for beginning in _beginnings(rule.id)}
    if subject in known:
        return
    close = difflib.get_close_matches(subject, [*SUBJECTS, *sorted(known)], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"there is no condition or rule named {subject!r}; conditions: {', '.join(SUBJECTS)}{hint}")
