"""A board without a board: a root with a shell, a Python and a `trtexec`, and without dryfit on its path.

`quick_trtexec` is a shell script that writes what a test asks for. `dryfit_trtexec` forwards to `dryfit exec`, removes
the lines in which dryfit explains itself, which no board writes, and reports the estimate of the stand-in's own board
as measured times, with a few percent of noise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

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

_FORWARDING = '''
"""trtexec of a stand-in: dryfit's own, with other rules and times."""
import json, random, re, sys
from dryfit.answers.estimate import NOTE  # an installed dryfit
from dryfit.answers.network_cost import network_cost
from dryfit.answers.trtexec import run as trtexec
from dryfit.building import design_for_assessment
from dryfit.cli.commands.exec import _printer
from dryfit.engine.tensorrt_layers import shown_names
assert NOTE

ARGUMENTS, EXTRA = sys.argv[1:], json.loads({extra!r})
OWN = re.compile(r"cannot run on DLA|^  likewise|time of this host|GPU compute time is unstable")
printed = _printer(to_stderr=False)

def report(severity, text):
    if not OWN.search(text):
        printed(severity, text)

def option(name):
    return next((word.partition("=")[2] for word in ARGUMENTS if word.startswith(name + "=")), "")

costs = []
infer = trtexec._Execution._infer

def watched(execution, engine):
    infer(execution, engine)
    design = design_for_assessment(execution.build.network, execution.build.config)
    costs.append((network_cost(design), engine))

trtexec._Execution._infer = watched
print("&&&& RUNNING TensorRT.trtexec [dryfit] # trtexec", *ARGUMENTS)
failed = ""
try:
    trtexec.exec_trtexec(ARGUMENTS, report=report, **EXTRA)
except Exception as error:
    failed = str(error)
    report("E", failed)
noise = random.Random(len(ARGUMENTS)).gauss
for cost, engine in costs:
    total = cost.latency_microseconds or 0.0
    if option("--exportTimes"):
        rows = [{{"computeMs": total / 1e3 * (1 + noise(0, 0.01))}} for _ in range(20)]
        open(option("--exportTimes"), "w").write(json.dumps(rows))
    if option("--exportProfile"):
        rows = [{{"count": 20}}]
        for segment in cost.segments:
            if segment.device == "DLA":
                ends = dict.fromkeys([segment.layers[0], segment.layers[-1]])
                name = "{{ForeignNode[" + "...".join(ends) + "]}}"
                rows.append({{"name": name, "averageMs": (segment.microseconds or 0) / 1e3 * (1 + noise(0, 0.01))}})
        open(option("--exportProfile"), "w").write(json.dumps(rows))
print("&&&&", "FAILED" if failed else "PASSED", "TensorRT.trtexec [dryfit] # trtexec")
sys.exit(1 if failed else 0)
'''


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
        import json

        script = self.root / "forwarding.py"
        script.write_text(_FORWARDING.format(extra=json.dumps(dict(extra))))
        cache = {name: os.environ[name] for name in ("DRYFIT_CACHE_DIR", "DRYFIT_CACHE_KEY") if name in os.environ}
        variables = " ".join(f"{name}={value}" for name, value in cache.items())
        self._install(f'#!/bin/sh\n{variables} exec {sys.executable} {script} "$@"\n')

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
