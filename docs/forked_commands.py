"""Runs functions, `dryfit` commands and Python programs in forks of a process that has imported dryfit, and no more.

Most of a short command's time is its imports. A fork has them done, and nothing that one command registers, loads or
changes reaches the next.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import runpy
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

PACKAGES = ("dryfit", "dryfit_cpu", "dryfit_gpu", "dryfit_dla", "dryfit_plugins")
LEFT_OUT = "dryfit.testing"
"""Only conformance kits need it, and it imports pytest and hypothesis."""


class Ended(NamedTuple):
    """How a command ended: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


def import_everything() -> None:
    """Import all modules of dryfit, with what they import: what forks share."""
    for name in PACKAGES:
        _import_all(importlib.import_module(name))
    gc.collect()
    gc.freeze()  # a collection in a fork would copy all these pages


def _import_all(package: ModuleType) -> None:
    for one in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if one.name != LEFT_OUT:
            module = importlib.import_module(one.name)
            if one.ispkg:
                _import_all(module)


def fork(work: Callable[[], int | str | None]) -> int:
    """Run a function in a fork, which ends with the code that it returns or exits with; returns the fork's id."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the threads of libraries are idle, and not in the fork
        child = os.fork()
    if child:
        return child
    code: int | str | None = 1
    try:
        code = work()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def exit_code(child: int) -> int:
    """Wait for a fork; negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_command(words: Sequence[str], folder: str, environment: dict[str, str]) -> Ended:
    """Run a command in a folder that Python finds modules in.

    Args:
        words: `dryfit ...`, `python -c PROGRAM ...` or `python SCRIPT ...`.
        folder: the folder.
        environment: the command's environment variables.
    """
    reading, writing = os.pipe()  # ends with the last process that has it, a watcher's last words included
    with tempfile.TemporaryFile() as out, open(reading, "rb") as err, open(writing, "wb") as given:  # noqa: PTH123  pipes

        def work() -> None:
            with Path(os.devnull).open("rb") as nothing:
                os.dup2(nothing.fileno(), 0)
            for number, (name, file) in enumerate((("stdout", out), ("stderr", given)), start=1):
                os.dup2(file.fileno(), number)
                setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            sys.path.insert(0, folder)
            if words[0] == "dryfit":
                sys.argv = [*words]
                importlib.import_module("dryfit.cli.main").main(sys.argv[1:])
            elif words[1] == "-c":
                sys.argv = ["-c", *words[3:]]
                exec(compile(words[2], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  as Python does
            else:
                sys.argv = [*words[1:]]
                sys.path.insert(0, str(Path(folder, words[1]).resolve().parent))
                runpy.run_path(words[1], run_name="__main__")

        child = fork(work)
        given.close()
        told = err.read().decode("utf-8")
        code = exit_code(child)
        out.seek(0)
        return Ended(code, out.read().decode("utf-8"), told)
