"""Reads jobs from an npz file, runs each in the library that is named, and writes what came out.

A file holds `document`, JSON as bytes, and arrays `<job>_<index>`. A job that the library refuses is answered with the
library's message. Written for Python 3.7, see the package.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Jobs = list[tuple[dict[str, Any], Sequence[np.ndarray[Any, Any]]]]


def read(path: str | Path) -> Jobs:
    """The documents and arrays of a file, one pair a job."""
    with np.load(path) as stored:
        documents = json.loads(stored["document"].tobytes().decode())
        return [
            (document, [stored[f"{job}_{index}"] for index in range(document["arrays"])])
            for job, document in enumerate(documents)
        ]


def write(path: str | Path, jobs: Jobs) -> None:
    """Write pairs of a document and arrays."""
    documents = [dict(document, arrays=len(arrays)) for document, arrays in jobs]
    stored: dict[str, Any] = {"document": np.frombuffer(json.dumps(documents).encode(), np.uint8)}
    for job, (_, arrays) in enumerate(jobs):
        stored.update({f"{job}_{index}": array for index, array in enumerate(arrays)})
    np.savez(path, **stored)


def main(library: str, request: str, answer: str) -> None:
    """Answer a request; the first answer tells the library's version."""
    run = importlib.import_module("run_" + library)
    answers: Jobs = [({"version": run.version()}, [])]
    for document, arrays in read(request):
        try:
            answers.append(({}, [run.output(document, arrays)]))
        except Exception as error:  # noqa: BLE001  # any refusal of the library is an answer
            answers.append(({"refusal": f"{type(error).__name__}: {error}"}, []))
    write(answer, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
