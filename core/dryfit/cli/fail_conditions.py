"""`--fail-on` of every command that has it: findings that turn the exit code into 1.

A condition is a subject, and where it has no limit of its own, more than 0: `fallback>3%`, `missing`, `ratio>1.01`,
`dla.convolution.cbuf`. What the subjects are, and what is measured of them, each command says.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
import click

from dryfit.cli.console import print_note

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
        subject: what is looked at.
        operator: one of `OPERATORS`.
        limit: a number, a percentage or a size, as `unit` says.
        unit: "", "%", or one of `BYTES`.
    """

    text: str
    subject: str
    operator: str = ">"
    limit: float = 0
    unit: str = ""

    def outcome(self, value: float, words: str | None = None) -> Outcome:
        """What the condition finds in a value.

        Args:
            value: in the unit of the limit; a size in bytes.
            words: the value in words; None for the number alone.
        """
        limit = self.limit * BYTES.get(self.unit, 1)
        found = f"{value:.7g}" if words is None else words
        return Outcome(self.text, found, OPERATORS[self.operator](value, limit))


@attrs.frozen
class Subjects:
    """What the conditions of a command may look at.

    Attributes:
        texts: subject to what it is.
        aliases: other words for subjects.
        units: subject to the units that its limit may have; none means a number.
        limits: subject to the limit that counts where none is stated; 0 for the others.
        rules: the ids of rules, and their beginnings, for which a word stands that is no subject: its first word is
            given. None where there are no such subjects.
    """

    texts: Mapping[str, str]
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    units: Mapping[str, Collection[str]] = attrs.field(factory=dict)
    limits: Mapping[str, float] = attrs.field(factory=dict)
    rules: Callable[[str], Collection[str]] | None = None

    @property
    def listed(self) -> str:
        """All subjects in words; ids of rules are too many to list."""
        return ", ".join(self.texts) + (" and the ids of rules" if self.rules else "")

    def condition(self, text: str) -> FailCondition:
        """A condition such as `fallback>3%`.

        Raises:
            ValueError: the text is no condition, or there is no such subject; the message says what would be one.
        """
        text = text.strip()
        match = CONDITION.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no condition; there are {self.listed}, and limits such as >3")
        subject = match["subject"].lower()
        subject = self.aliases.get(subject, subject)
        if subject not in self.texts:
            self._require_rule(subject)
        unit = (match["unit"] or "").lower()
        if unit and unit not in self.units.get(subject, ()):
            allowed = ", ".join(sorted(self.units.get(subject, ()))) or "none"
            raise ValueError(f"{text!r}: {subject} has no unit {match['unit']!r}, allowed: {allowed}")
        limit = float(match["limit"]) if match["limit"] else self.limits.get(subject, 0)
        return FailCondition(text, subject, match["operator"] or ">", limit, unit)

    def _require_rule(self, subject: str) -> None:
        known = self.rules(subject.partition(".")[0]) if self.rules else ()
        if subject in known:
            return
        close = difflib.get_close_matches(subject, [*self.texts, *sorted(known)], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        what = "condition or rule" if self.rules else "condition"
        raise ValueError(f"there is no {what} named {subject!r}; conditions: {self.listed}{hint}")


class FailConditions(click.ParamType):
    """`fallback>3%,loadables>8` as conditions.

    Args:
        subjects: what they may look at.
    """

    name = "conditions"

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[FailCondition, ...]:
        """The conditions of a list with commas; a list without one is an error, because it would never fail."""
        if isinstance(value, tuple):
            return value
        texts = [text for text in str(value).split(",") if text.strip()]
        if not texts:
            self.fail(f"no condition is stated; there are {self._subjects.listed}", param, ctx)
        try:
            return tuple(map(self._subjects.condition, texts))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def fail_on_option(subjects: Subjects | Mapping[str, str], example: str) -> Callable[[Any], Any]:
    """The option `--fail-on`; the command gets all conditions as one tuple `fail_on`.

    Args:
        subjects: what conditions may look at; subject to what it is, where there is no more to say. A ratio's own limit
            is then 1.
        example: for the help.
    """
    known = subjects if isinstance(subjects, Subjects) else Subjects(subjects, limits={"ratio": 1})
    told = [f"{subject}, {text}" for subject, text in known.texts.items()]
    told += ["or the id of a rule or its first words"] if known.rules else []
    return click.option(
        "--fail-on",
        type=FailConditions(known),
        multiple=True,
        metavar="CONDITIONS",
        callback=lambda context, parameter, several: tuple(one for each in several for one in each),
        help=f"End with 1 where one of these holds, such as '{example}': {'; '.join(told)}. Without a limit: more "
        "than none.",
    )


def counted_outcomes(conditions: Sequence[FailCondition], values: Mapping[str, float]) -> list[Outcome]:
    """What each condition finds among values by subject."""
    return [condition.outcome(values[condition.subject]) for condition in conditions]


def print_failed(outcomes: Sequence[Outcome]) -> int:
    """Tell the conditions that hold; returns the exit code."""
    failed = [outcome for outcome in outcomes if outcome.failed]
    for outcome in failed:
        print_note(f"--fail-on {outcome}")
    return 1 if failed else 0


def beginnings(rule: str) -> Iterator[str]:
    """The id of a rule, and its first words: `dla`, `dla.pooling`, `dla.pooling.window`."""
    words = rule.split(".")
    return (".".join(words[:count]) for count in range(1, len(words) + 1))
