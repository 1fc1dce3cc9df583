"""`--fail-on` of every command that has it: findings that turn the exit code into 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from dryfit.answers.conditions import FailCondition, Outcome, Subjects
from dryfit.cli.console import print_note


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
            self.fail(f"a condition is required; conditions are {self._subjects.listed}", param, ctx)
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
    told += ["or the id of a rule or its first part"] if known.rules else []
    return click.option(
        "--fail-on",
        type=FailConditions(known),
        multiple=True,
        metavar="CONDITIONS",
        callback=lambda context, parameter, several: tuple(one for each in several for one in each),
        help=f"Exit with 1 if one of these conditions holds, such as '{example}': "
        f"{'; '.join(told)}. Without a limit: more "
        "than none.",
    )


def print_failed(outcomes: Sequence[Outcome]) -> int:
    """Report the conditions that hold; returns the exit code."""
    failed = [outcome for outcome in outcomes if outcome.failed]
    for outcome in failed:
        print_note(f"--fail-on {outcome}")
    return 1 if failed else 0
