"""What a shell's Tab key completes: names of devices, boards, modes, rules and algorithms; tried in bash and fish."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from dryfit.cli.main import dryfit
from dryfit.plugins import registry

BASH = """
eval "$(_DRYFIT_COMPLETE=bash_source dryfit)"
COMP_WORDS=(dryfit check --device D) COMP_CWORD=3
_dryfit_completion dryfit D --device
echo "${COMPREPLY[@]}"
"""


def completed(*arguments: str) -> list[str]:
    *before, incomplete = arguments
    shell = ShellComplete(dryfit, {}, "dryfit", "_DRYFIT_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("che",), ["check"]),
        (("check", "--device", "d"), ["DLA"]),
        (("check", "--fallback", "G"), ["GPU"]),
        (("check", "--platform", "orin-nx"), ["orin-nx-16", "orin-nx-8"]),
        (("targets", "show", "--platform", "xav"), ["xavier-nx"]),
        (("targets", "diff", "agx-xa"), ["agx-xavier"]),
        (("estimate", "--precision", "fp16,in"), ["fp16,int8"]),
        (("calibrate", "--calibrator", "min"), ["minmax"]),
        (("build", "--quantize-method", "tflite-2"), ["tflite-2.14", "tflite-2.5"]),
        (("explain-rule", "dla.convolution.ker"), ["dla.convolution.kernel"]),
        (("check", "--platform", "nothing-like"), []),
    ],
)
def test_names_are_completed(arguments: tuple[str, ...], names: list[str]) -> None:
    assert completed(*arguments) == names


def test_power_modes_are_those_of_the_platform() -> None:
    one = completed("estimate", "--platform", "orin-nano", "--power-mode", "")
    every = completed("estimate", "--power-mode", "")
    assert one
    assert set(one) < set(every)
    assert completed("estimate", "--device", "CPU", "--power-mode", "") == []


def test_what_fails_completes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(registry), "device_names", lambda self: 1 / 0)
    assert completed("check", "--device", "") == []


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        (
            "bash",
            BASH,
        ),
        ("fish", "_DRYFIT_COMPLETE=fish_source dryfit | source; complete -C 'dryfit check --device D'"),
        ("zsh", 'compdef() { echo DLA; }; eval "$(_DRYFIT_COMPLETE=zsh_source dryfit)"; which _dryfit_completion >&2'),
    ],
)
def test_the_documented_line_completes_in_a_shell(shell: str, script: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}, which is not installed")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "DLA"), done.stderr
