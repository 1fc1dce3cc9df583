"""Packages whose import prints, or ends the interpreter, beside dryfit: each command answers, or says who ended it."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from tests.core.cli.test_plugins import dryfit
from tests.core.plugins.packages import install, target_module

from dryfit.plugins.discovery import HOOKS, TARGETS

PRINTS = """
import os, subprocess, sys
print("from Python")
sys.__stdout__.write("from the stream\\n")
sys.__stdout__.flush()
os.write(1, b"from the system\\n")
subprocess.run(["echo", "from a child"])
"""


def packages(folder: Path, text: str) -> Path:
    """A folder with a target and a module of hooks that begin with the text, and a target that declares such a one."""
    install(
        folder, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": text + dedent(target_module("acme")["acme"])}
    )
    hook = text + "\nimport dryfit\n@dryfit.hookimpl\ndef contribute_passes(): return []\n"
    install(folder, "acme-hooks", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": hook})
    modules = target_module("later", "LATER")
    modules["later"] = modules["later"].replace('"later:LIMITS"', '"later:LIMITS", memory_pools_at="later_pools:POOLS"')
    install(folder, "later", {TARGETS: {"later": "later:TARGET"}}, {**modules, "later_pools": text + "\nPOOLS = ()\n"})
    return folder


def check(folder: Path, model: Path, device: str = "DLA") -> tuple[int, str, str]:
    where = ("--device", device, "--precision", "fp16", "--fallback", "GPU", "--shape", "image=1x1x8x8", "--json")
    done = dryfit(folder, "check", str(model), *where)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("device", ["DLA", "ACME_NPU", "LATER"])
def test_what_an_import_prints_stays_out_of_the_answer(tmp_path: Path, digits_model: Path, device: str) -> None:
    code, out, told = check(packages(tmp_path, PRINTS), digits_model, device)
    assert code == 0
    assert json.loads(out)["device"] == device
    for source in ("Python", "the stream", "the system", "a child"):
        assert f"from {source}" in told


def test_an_import_that_ends_the_interpreter_is_left_out(tmp_path: Path, digits_model: Path) -> None:
    folder = packages(tmp_path, "import os\nos._exit(0)\n")
    code, out, told = check(folder, digits_model)
    assert code == 0
    assert json.loads(out)["device"] == "DLA"
    assert "acme 1.2 (acme-hooks)" in told
    assert "os._exit(0)" in told
    listed = dryfit(folder, "targets", "list")
    assert listed.returncode == 0
    assert "DLA" in listed.stdout
    assert "acme-npu 1.2 (acme)" in listed.stdout
    asked, _, why = check(folder, digits_model, "ACME_NPU")
    assert asked == 2
    assert "os._exit(0)" in why
    asked, _, why = check(folder, digits_model, "LATER")
    assert asked == 2
    assert "memory_pools_at = 'later_pools:POOLS'" in why


@pytest.mark.parametrize("text", ["import ctypes; ctypes.string_at(0)", "import posix; posix._exit(3)"])
def test_an_import_that_nothing_survives_is_named(tmp_path: Path, digits_model: Path, text: str) -> None:
    folder = packages(tmp_path, f"{text}\n")
    for done in (dryfit(folder, "targets", "list"), dryfit(folder, "check", str(digits_model), "--device", "LATER")):
        assert done.returncode != 0
        assert done.stderr.count("ended dryfit while it was imported") == 1
        assert "DRYFIT_DISABLE_PLUGINS" in done.stderr


def test_a_child_that_an_import_forks_may_end_as_it_likes(tmp_path: Path) -> None:
    text = """
import os
child = os.fork()
if not child:
    os._exit(7)
STATUS = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert STATUS == 7, STATUS
"""
    done = dryfit(packages(tmp_path, text), "targets", "list")
    assert "ACME_NPU" in done.stdout
    assert done.stderr == ""
