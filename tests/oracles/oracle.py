"""What an oracle is: a library in a process of its own that answers cases, or says why it does not."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from tests.oracles.worker_process import Answers, Job, answers_of

from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]


@attrs.frozen
class Refusal:
    """Why a case has no answer.

    Attributes:
        reason: in words; the library's own where it refused.
    """

    reason: str


class NoCounterpartError(Exception):
    """The library has no operator that is this case."""


@attrs.frozen
class Translation:
    """A case in a library's terms.

    Attributes:
        job: what the worker runs.
        restore: from the library's output to the network's layout.
    """

    job: Job
    restore: Any


class Oracle(abc.ABC):
    """A library that is asked for codes.

    Attributes:
        python: the interpreter that has the library.
        versions: the library's name and version, once it has answered.
    """

    library = ""

    def __init__(self, python: str) -> None:
        self.python = python
        self.versions: set[str] = set()

    @abc.abstractmethod
    def translation(self, case: OperatorCase) -> Translation:
        """The case in the library's terms.

        Raises:
            NoCounterpartError: it has none.
        """

    def answers(self, cases: Sequence[OperatorCase]) -> list[Array | Refusal]:
        """For each case the output in the network's layout, or why there is none.

        Raises:
            ExecutionError: the library does not start in its interpreter.
        """
        found: list[Array | Refusal] = []
        jobs: list[tuple[int, Translation]] = []
        for index, case in enumerate(cases):
            try:
                jobs.append((index, self.translation(case)))
                found.append(Refusal("no answer"))
            except NoCounterpartError as error:
                found.append(Refusal(str(error)))
        outputs: Answers = answers_of(self.python, self.library, [one.job for _, one in jobs], self.versions)
        for (index, translation), output in zip(jobs, outputs, strict=True):
            found[index] = Refusal(output) if isinstance(output, str) else translation.restore(output)
        return found
