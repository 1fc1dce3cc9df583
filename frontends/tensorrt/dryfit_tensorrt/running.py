"""Runs a program so that what it imports as `tensorrt`, `cuda` and `pycuda` is dryfit's, in it and in its children.

The program gets an environment in which Python imports `startup/sitecustomize.py` when it starts. It is not run inside
of this process: a program may replace signal handlers, exit, fork or be debugged as if it were started alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dryfit.errors import ConfigError
from dryfit_tensorrt.settings import VARIABLES, Settings

STARTUP = Path(__file__).parent / "startup"
"""Folder that is put first on PYTHONPATH."""

PROGRAMS = Path(__file__).parent / "programs"
"""Folder that is put first on PATH: it has a `trtexec`."""

PATH_VARIABLE = "PYTHONPATH"
PROGRAMS_VARIABLE = "PATH"
PYTHON_VARIABLE = "DRYFIT_TENSORRT_PYTHON"
"""The Python that runs dryfit's `trtexec`."""

_PYTHON_NAMES = ("python", "python3", f"python3.{sys.version_info.minor}")


def environment_of(settings: Settings, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with the names installed; the one of this process with additions if none is given."""
    base = dict(os.environ if environment is None else environment)
    folders = {
        PATH_VARIABLE: [str(STARTUP), *_others(base.get(PATH_VARIABLE, ""), STARTUP)],
        PROGRAMS_VARIABLE: [str(PROGRAMS), *_others(base.get(PROGRAMS_VARIABLE, os.defpath), PROGRAMS)],
    }
    paths = {name: os.pathsep.join(listed) for name, listed in folders.items()}
    return base | settings.environment() | paths | {PYTHON_VARIABLE: sys.executable}


def _others(path: str, folder: Path) -> list[str]:
    """Return the folders of a path variable without one of dryfit's."""
    return [place for place in path.split(os.pathsep) if place and place != str(folder)] if path else []


def shell_lines(settings: Settings | None, environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines for a POSIX shell's `eval` that install the names, or with None remove them."""
    if settings is not None:
        changed = environment_of(settings, environment)
        names = (*VARIABLES, PYTHON_VARIABLE, PROGRAMS_VARIABLE, PATH_VARIABLE)
        return [f"export {name}={shlex.quote(changed[name])}" for name in names]
    found = os.environ if environment is None else environment
    lines = [f"unset {name}" for name in (*VARIABLES, PYTHON_VARIABLE)]
    programs = _others(found.get(PROGRAMS_VARIABLE, ""), PROGRAMS)
    if programs:
        lines.append(f"export {PROGRAMS_VARIABLE}={shlex.quote(os.pathsep.join(programs))}")
    kept = _others(found.get(PATH_VARIABLE, ""), STARTUP)
    path = f"export {PATH_VARIABLE}={shlex.quote(os.pathsep.join(kept))}" if kept else f"unset {PATH_VARIABLE}"
    return [*lines, path]


def command_of(program: Sequence[str]) -> list[str]:
    """Return the command that runs a program with this Python.

    Args:
        program: a script, `-m` and a module or `-c` and code, `python` and its arguments, or a command, such as
            `polygraphy`, each with its arguments. A command that is installed beside this Python comes before others.

    Raises:
        ConfigError: there is no such program.
    """
    if not program:
        raise ConfigError(
            "A program to run is required",
            found="nothing after the options",
            remedy="Pass a script, `-m module` or a command, such as `-- polygraphy run model.onnx --trt`",
        )
    name, *arguments = program
    if name in _PYTHON_NAMES:
        return [sys.executable, *arguments]
    if name.startswith("-") or (Path(name).is_file() and name.endswith(".py")):
        return [sys.executable, *program]
    beside = [
        str(PROGRAMS),
        str(Path(sys.executable).parent),
        str(Path(sys.prefix, "bin")),
        os.environ.get("PATH", os.defpath),
    ]
    found = shutil.which(name, path=os.pathsep.join(beside))
    if found is None:
        raise ConfigError(
            "Unknown program",
            found=repr(name),
            allowed="a file that ends with .py, `-m module`, or a command on PATH",
            remedy="Check the spelling, and that the program is installed for this Python",
        )
    return [found, *arguments]


def run_program(program: Sequence[str], settings: Settings) -> int:
    """Run a program with the names installed; returns its exit code.

    On POSIX systems the program replaces this process, and nothing is returned.

    Raises:
        ConfigError: there is no such program.
    """
    command, environment = command_of(program), environment_of(settings)
    if os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(command[0], command, environment)  # noqa: S606  the user's own program
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603  the user's own program
