"""A number of forgeries, each run in a process that may die of it."""

from __future__ import annotations

import collections
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from tests.integration.forgeries.guarded_run import RAN, REFUSED, RIGHT
from tests.integration.forgeries.sound_engines import sound_plans

from dryfit.engine import engine_file

REPOSITORY = Path(__file__).parents[3]


@attrs.frozen
class Fault:
    """A forgery that was neither refused nor right.

    Attributes:
        number: of the forgery.
        recipe: how it was made.
        outcome: what happened: a signal, what was written outside, an error that is none of dryfit's, a wrong result.
    """

    number: int
    recipe: str
    outcome: str


@attrs.frozen
class Campaign:
    """What came of forgeries.

    Attributes:
        outcomes: first word of the outcome to how many.
        faults: what must not be.
    """

    outcomes: dict[str, int]
    faults: list[Fault]


def write_sound_engines(folder: Path) -> None:
    """What forgeries begin with."""
    for name, plan in sound_plans().items():
        (folder / f"{name}.forged").write_bytes(engine_file.serialize(plan))


def run_forgeries(folder: Path, first: int, end: int, spoilt: str = "") -> Campaign:
    """Run the forgeries of these numbers between guard pages, in a new process after each that ends by a signal.

    Args:
        folder: what `write_sound_engines` filled.
        first: number of the first.
        end: the number behind the last.
        spoilt: what every kernel does that it must not, as `guarded_run` has it; "" for nothing.
    """
    outcomes: collections.Counter[str] = collections.Counter()
    faults = []
    for number, recipe, outcome in _outcomes(folder, first, end, [spoilt] if spoilt else []):
        word = outcome.split(" ")[0].rstrip(":")
        outcomes[word] += 1
        if word not in (REFUSED, RIGHT, RAN):
            faults.append(Fault(number, recipe, outcome))
    return Campaign(dict(outcomes), faults)


def _outcomes(folder: Path, first: int, end: int, options: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    module = "tests.integration.forgeries.guarded_run"
    while first < end:
        command = [sys.executable, "-m", module, str(folder), str(first), str(end), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
            number, recipe = first, "before the first forgery"
            is_open = True
            for line in process.stdout or ():
                what, number, text = json.loads(line)
                is_open = what == "begin"
                if is_open:
                    recipe = text
                else:
                    yield number, recipe, text
        if process.returncode == 0:
            return
        if not is_open or recipe == "before the first forgery":
            raise RuntimeError(f"the process of forgeries ended with {process.returncode}, beside any")
        code = process.returncode
        yield number, recipe, signal.Signals(-code).name if code < 0 else f"exit {code}"
        first = number + 1
