from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.core.cli.test_plugins import dryfit
from tests.core.plugins.packages import install, target_module

from dryfit.cli import plugins_schema
from dryfit.plugins.registry import CALIBRATORS, GROUPS, HOOKS, TARGETS, installed

ONLY_FOREIGN = {"DRYFIT_DISABLE_PLUGINS": "dryfit"}
"""Dryfit's own plugins are not tried then; those that are tried have them all the same."""


def findings(folder: Path, *arguments: str, **environment: str) -> list[dict[str, Any]]:
    """What doctor finds of packages that are not dryfit's."""
    done = dryfit(folder, "plugins", "doctor", "--json", *arguments, **{**ONLY_FOREIGN, **environment})
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, plugins_schema.SCHEMA, jsonschema.Draft202012Validator)
    assert done.returncode == (1 if answer["findings"] else 0)
    found: list[dict[str, Any]] = answer["findings"]
    return found


def test_sound_plugins_end_with_0(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    done = dryfit(tmp_path, "plugins", "doctor", **ONLY_FOREIGN)
    assert done.stdout.startswith("1 plugins tried: all is well; ")
    assert done.returncode == 0


def test_a_switch_that_names_nothing_is_told_and_ends_with_1(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    done = dryfit(tmp_path, "plugins", "doctor", DRYFIT_DISABLE_PLUGINS="dryfit,acme-npuu")
    assert "DRYFIT_DISABLE_PLUGINS names nothing that is installed: acme-npuu." in done.stdout
    assert "1 plugins tried: all is well" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os; os._exit(0)", "it ends the interpreter while it is imported (os._exit(0))"),
        ("import posix; posix._exit(3)", "the interpreter ended with code 3 while it was tried"),
        ("import ctypes; ctypes.string_at(0)", "the interpreter ended with code -11 while it was tried"),
        ("print('DRYFIT-EXAMINATION', end=''); raise RuntimeError('loud')", "RuntimeError: loud"),
        ("input()", "EOFError: EOF when reading a line"),
        ("import time; time.sleep(100)", "its import takes longer than 5 s"),
    ],
)
def test_a_plugin_that_ends_or_stops_its_interpreter_ends_nothing_else(tmp_path: Path, text: str, message: str) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": text})
    [found] = findings(tmp_path, "--timeout", "5")
    assert (found["message"], found["name"], found["version"]) == (message, "acme-npu", "1.2")
    assert found["remedy"]


def test_everything_that_a_record_names_is_tried(tmp_path: Path) -> None:
    modules = target_module("acme")
    modules["acme"] = modules["acme"].replace("limits_at=", "kernels_at='acme_kernels:KERNELS', limits_at=")
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, modules)
    [found] = findings(tmp_path)
    assert "found ModuleNotFoundError: No module named 'acme_kernels'" in found["message"]
    assert "target ACME_NPU, kernels_at = 'acme_kernels:KERNELS'" in found["message"]


def test_every_registering_hook_is_tried(tmp_path: Path) -> None:
    bodies = {
        "register_targets": "[1]",
        "register_layers": "[2]",
        "register_commands": "[__import__('click').Command('check')]",
        "contribute_passes": "1 / 0",
    }
    text = "import dryfit\n" + "".join(
        f"@dryfit.hookimpl\ndef {name}(): return {body}\n" for name, body in bodies.items()
    )
    install(tmp_path, "acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": text})
    assert {one["hook"]: one["message"] for one in findings(tmp_path)} == {
        "register_targets": "The entry point names no target (found int; allowed: a Target record)",
        "register_layers": "The plugin handed over something else "
        "(found int; allowed: layer plugins and OnnxOperator records)",
        "register_commands": "The command check is claimed by dryfit and acme 1.2 (acme)",
        "contribute_passes": "ZeroDivisionError: division by zero",
    }


def test_metadata_without_a_version_is_a_finding(tmp_path: Path) -> None:
    modules = target_module("acme")
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, modules, version=None)
    [found] = findings(tmp_path)
    assert (found["message"], found["version"]) == ("the metadata of its package has no version", "")


def test_what_is_switched_off_is_not_tried(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": "1 / 0"})
    assert findings(tmp_path, DRYFIT_DISABLE_PLUGINS="dryfit,acme") == []


def test_text_has_the_reason_the_remedy_and_the_traceback(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": "import acme_driver"})
    done = dryfit(tmp_path, "plugins", "doctor", **ONLY_FOREIGN)
    lines = done.stdout.splitlines()
    assert lines[0] == ("acme-npu 1.2 (acme) in dryfit.targets: ModuleNotFoundError: No module named 'acme_driver'")
    assert lines[1] == "    Install what brings the module acme_driver, or reinstall the package"
    assert lines[2] == "    | Traceback (most recent call last):"
    assert lines[-1].startswith("1 plugins tried: something is wrong with 1; ")
    assert done.returncode == 1


def test_a_time_that_is_not_positive_is_a_usage_error(dryfit_command: Any) -> None:
    assert dryfit_command("plugins", "doctor", "--timeout", "0").code == 2


def test_who_loses_a_name_to_dryfit_is_told_once(tmp_path: Path) -> None:
    install(tmp_path, "acme", {CALIBRATORS: {"minmax": "acme:ANY"}}, {"acme": "ANY = 1"})
    others = [one.name for group in GROUPS for one in installed().entries(group) if one.name != "minmax"]
    [finding] = findings(tmp_path, DRYFIT_DISABLE_PLUGINS=",".join(others))
    assert finding["message"].endswith("it stays dryfit's own")
    assert finding["remedy"].startswith("Uninstall one, or name its package in")
