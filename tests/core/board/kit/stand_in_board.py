"""A board without a board: a root with a shell, a Python and a `trtexec`, and without dryfit on its path.

`quick_trtexec` is a shell script that writes what a test asks for. `dryfit_trtexec` forwards to `stand_in_trtexec`:
dryfit's own, with other rules and times. A `RootBoard` is a root of its own in namespaces without a network, in which
there is no dryfit; its trtexec asks a `BoardServer` outside.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import attrs
import pytest
from tests.core.board.kit import stand_in_trtexec

_TRTEXEC = stand_in_trtexec.__file__

TOOLS = ("sh", "dirname", "env", "uname", "sleep", "cat", "echo", "mkdir", "ls", "rm", "sed", "tr", "test")

_QUICK = """#!/bin/sh
# Writes canned results where the options ask for them.
echo "$*" >> {calls}
for word in "$@"; do
    case "$word" in
        --help) echo "&&&& RUNNING TensorRT.trtexec [TensorRT v{version}] # trtexec --help"; echo "{options}"; exit 0 ;;
        --exportLayerInfo=*) echo '{{"Layers": ["a"], "Bindings": ["x"]}}' > "${{word#*=}}" ;;
        --exportTimes=*) echo '[{{"computeMs": 1.5}}, {{"computeMs": 2.5}}]' > "${{word#*=}}" ;;
    esac
done
echo "&&&& RUNNING TensorRT.trtexec [TensorRT v{version}] # trtexec $*"
{before}
echo "&&&& {outcome} TensorRT.trtexec [TensorRT v{version}] # trtexec $*"
exit {code}
"""


@attrs.define
class StandInBoard:
    """A board.

    Attributes:
        root: folder with everything.
        kit: folder of the unpacked kit.
        python: Python of the board.
        environment: more variables of the processes.
    """

    root: Path
    kit: Path
    python: str
    environment: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def make(cls, root: Path, kit: Path, python: str | None = None) -> StandInBoard:
        """Unpack a kit in a new root with the tools of a small system."""
        tools = root / "bin"
        tools.mkdir(parents=True)
        for name in TOOLS:
            found = shutil.which(name)
            if found is not None:
                (tools / name).symlink_to(found)
        own = python or getattr(sys, "_base_executable", sys.executable)
        (tools / "python3").symlink_to(own)
        with zipfile.ZipFile(kit) as archive:
            archive.extractall(root / "home")
        (folder,) = (root / "home").iterdir()
        return cls(root, folder, own)

    @property
    def calls(self) -> Sequence[str]:
        """The options of each call of the quick trtexec, without those for its help."""
        path = self.root / "calls.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line != "--help"]

    def quick_trtexec(
        self, before: str = "", *, version: str = "8502", options: str = "", outcome: str = "PASSED", code: int = 0
    ) -> None:
        """Install a trtexec that takes milliseconds; `before` are lines of shell before it ends."""
        text = _QUICK.format(
            calls=self.root / "calls.txt",
            before=before,
            version=version,
            options=options or "--onnx=<file> --verbose --exportLayerInfo --exportTimes",
            outcome=outcome,
            code=code,
        )
        self._install(text)

    def dryfit_trtexec(self, extra: Mapping[str, object]) -> None:
        """Install a trtexec that forwards to dryfit; `extra` are keyword arguments of `dryfit.exec_trtexec`."""
        said = shlex.quote(json.dumps(dict(extra)))
        cache = {name: os.environ[name] for name in ("DRYFIT_CACHE_DIR", "DRYFIT_CACHE_KEY") if name in os.environ}
        variables = " ".join(f"{name}={value}" for name, value in cache.items())
        self._install(f'#!/bin/sh\n{variables} exec {sys.executable} {_TRTEXEC} {said} "$@"\n')

    def run(self, *arguments: str, before: str = "", timeout: float = 1200) -> subprocess.CompletedProcess[str]:
        """Run the kit's script in an empty environment; `before` are words of shell before it."""
        return subprocess.run(
            ["/bin/sh", "-c", f'{before} sh run.sh "$@"', "sh", *arguments],
            cwd=self.kit,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    @property
    def variables(self) -> dict[str, str]:
        """The whole environment of a process."""
        return {"PATH": str(self.root / "bin"), **self.environment}

    def _install(self, text: str) -> None:
        path = self.root / "bin" / "trtexec"
        path.write_text(text)
        path.chmod(0o755)


# A root of its own ----------------------------------------------------------------------------------------------------

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib64")
_ENTER = """set -e
for name in {folders}; do mount --rbind "/$name" "$1/$name"; done
mount --bind /dev/null "$1/dev/null"
mount --bind "$2" "$1/run/board"
mount --bind "$1/tensorrt" "$1/usr/src"
root=$1
shift 2
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/home /bin/sh -c 'cd /home/dryfit-kit && exec "$@"' sh "$@"
"""
"""Runs in new namespaces: the system is that of this machine, and trtexec is where JetPack has it."""
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child")


@attrs.define
class BoardServer:
    """A process outside of all roots that executes their trtexec command lines.

    Attributes:
        socket: its address.
        process: the process.
    """

    socket: Path
    process: subprocess.Popen[str]

    @classmethod
    def start(cls, folder: Path, *, is_warm: bool = False) -> Self:
        """Start it, with its address in a folder; a warm one is for many builds."""
        path = folder / "board.socket"
        command = [sys.executable, _TRTEXEC, "--serve", str(path), *(["--warm"] if is_warm else [])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return cls(path, process)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


@attrs.define
class RootBoard:
    """A board with a root of its own, no network and no dryfit.

    Attributes:
        root: the root.
        server: executes its trtexec.
    """

    root: Path
    server: BoardServer

    @classmethod
    def make(cls, root: Path, kit: Path, server: BoardServer, extra: Mapping[str, object]) -> Self:
        """Unpack a kit in a new root; `extra` are keyword arguments of `dryfit.exec_trtexec`."""
        for name in ("dev", "run", "home", "tmp", "tensorrt/tensorrt/bin"):
            (root / name).mkdir(parents=True)
        for name in _SYSTEM:
            if Path("/", name).is_symlink():
                (root / name).symlink_to(Path("/", name).readlink())
            elif Path("/", name).is_dir():
                (root / name).mkdir()
        for name in ("dev/null", "run/board"):
            (root / name).touch()
        trtexec = root / "tensorrt/tensorrt/bin/trtexec"
        trtexec.write_text(stand_in_trtexec.CLIENT.format(root=str(root), extra=json.dumps(dict(extra))))
        trtexec.chmod(0o755)
        with zipfile.ZipFile(kit) as archive:
            archive.extractall(root / "home")
        return cls(root, server)

    @property
    def kit(self) -> Path:
        """The unpacked kit, as seen from outside."""
        return self.root / "home" / "dryfit-kit"

    def run(self, *command: str, timeout: float = 3600) -> subprocess.CompletedProcess[str]:
        """Run a command of the board in the folder of the kit."""
        folders = " ".join(
            name for name in _SYSTEM if (self.root / name).is_dir() and not (self.root / name).is_symlink()
        )
        enter = [*_UNSHARE, "/bin/sh", "-c", _ENTER.format(folders=folders), "sh", str(self.root)]
        return subprocess.run(
            [*enter, str(self.server.socket), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def require_roots() -> None:
    """Skip a test where this machine cannot make a root of its own, or has no Python outside of this environment."""
    if shutil.which("unshare") is None or not Path("/usr/bin/python3").exists():
        pytest.skip("needs unshare and /usr/bin/python3")
    ended = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip(f"needs namespaces: {ended.stderr.strip()}")
