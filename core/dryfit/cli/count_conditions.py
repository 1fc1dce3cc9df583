"""`--fail-on` of the commands whose findings are counts and ratios: `missing`, `zero>2`, `ratio>1.01`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import click

from dryfit.cli.console import print_note
from dryfit.cli.fail_conditions import CONDITION, OPERATORS, Outcome


@attrs.frozen
class CountCondition:
    """One condition.

    Attributes:
        text: as the user wrote it.
        subject: what is counted.
        operator: one of `OPERATORS`.
        limit: the number that the count is compared with.
    """

    text: str
    subject: str
    operator: str = ">"
    limit: float = 0

    def outcome(self, value: float) -> Outcome:
        """What the condition finds in a value."""
        return Outcome(self.text, f"{value:.7g}", OPERATORS[self.operator](value, self.limit))


class CountConditions(click.ParamType):
    """`missing,zero>2` as conditions.

    Args:
        subjects: what may be counted, and what that is.
        limits: subject to the limit that counts without one; 0 for the others.
    """

    name = "conditions"

    def __init__(self, subjects: Mapping[str, str], limits: Mapping[str, float]) -> None:
        self._subjects, self._limits = subjects, limits

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[CountCondition, ...]:
        """The conditions of a list with commas; a list without one is an error, because it would never fail."""
        if isinstance(value, tuple):
            return value
        texts = [text.strip() for text in str(value).split(",") if text.strip()]
        if not texts:
            self.fail(f"no condition is stated; there are {', '.join(self._subjects)}", param, ctx)
        return tuple(self._condition(text, param, ctx) for text in texts)

    def _condition(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> CountCondition:
        match = CONDITION.fullmatch(text)
        subject = match["subject"].lower() if match else ""
        if match is None or match["unit"] or subject not in self._subjects:
            close = difflib.get_close_matches(subject, self._subjects, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            self.fail(f"{text!r} is no condition; there are {', '.join(self._subjects)}{hint}", param, ctx)
        limit = float(match["limit"]) if match["limit"] else self._limits.get(subject, 0)
        return CountCondition(text, subject, match["operator"] or ">", limit)


def fail_on_option(subjects: Mapping[str, str], example: str) -> Callable[[Any], Any]:
    """The option `--fail-on`; the command gets all conditions as one tuple. A ratio's own limit is 1."""
    told = "; ".join(f"{subject}, {text}" for subject, text in subjects.items())
    return click.option(
        "--fail-on",
        type=CountConditions(subjects, {"ratio": 1}),
        multiple=True,
        metavar="CONDITIONS",
        callback=lambda context, parameter, several: tuple(one for each in several for one in each),
        help=f"End with 1 where one of these holds, such as '{example}': {told}. Without a limit: more than none.",
    )


def counted_outcomes(conditions: Sequence[CountCondition], values: Mapping[str, float]) -> list[Outcome]:
    """What each condition finds."""
    return [condition.outcome(values[condition.subject]) for condition in conditions]


def print_failed(outcomes: Sequence[Outcome]) -> int:
    """Tell the conditions that hold; returns the exit code."""
    failed = [outcome for outcome in outcomes if outcome.failed]
    for outcome in failed:
        print_note(f"--fail-on {outcome}")
    return 1 if failed else 0
