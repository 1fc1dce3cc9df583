"""Runs jobs in a library's own process, and finds out which job ended it where one did."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from tests.oracles.workers import run

from dryfit.errors import ExecutionError

Array = np.ndarray[Any, Any]
Answers = list[Array | str]
"""An output, or why there is none."""
_SECONDS = 600


@attrs.frozen(eq=False)
class Job:
    """What a worker runs: a document that its program understands, and arrays."""

    document: dict[str, Any]
    arrays: Sequence[Array]


def answers_of(python: str, library: str, jobs: Sequence[Job], versions: set[str]) -> Answers:
    """The answers to jobs, one each. A job that ends the process is answered with how it ended.

    Args:
        python: the interpreter.
        library: the worker's program, `run_<library>.py`.
        jobs: all run in one process, unless one of them ends it.
        versions: the library's name and version is added.

    Raises:
        ExecutionError: the library does not start there.
    """
    if not jobs:
        return []
    ending, answers = _process(python, library, jobs, versions)
    if answers is not None:
        return answers
    if len(jobs) > 1:
        half = len(jobs) // 2
        return [
            *answers_of(python, library, jobs[:half], versions),
            *answers_of(python, library, jobs[half:], versions),
        ]
    return [f"the library ended the process: {ending}"]


def _process(python: str, library: str, jobs: Sequence[Job], versions: set[str]) -> tuple[str, Answers | None]:
    """How a process ended, and its answers; None where a signal ended it."""
    with tempfile.TemporaryDirectory(prefix="dryfit-oracle-") as folder:
        request, answer = Path(folder) / "request.npz", Path(folder) / "answer.npz"
        run.write(request, [(job.document, job.arrays) for job in jobs])
        program = Path(run.__file__)
        ended = subprocess.run(  # the interpreter is the caller's choice
            [python, str(program), library, str(request), str(answer)],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        if ended.returncode < 0:
            return signal.Signals(-ended.returncode).name, None
        if ended.returncode:
            raise ExecutionError(
                f"The oracle {library} does not run in {python}", found=ended.stderr.strip().splitlines()[-1:]
            )
        (first, _), *rest = run.read(answer)
    versions.add(first["version"])
    return "", [document["refusal"] if "refusal" in document else arrays[0] for document, arrays in rest]
