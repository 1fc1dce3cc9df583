from __future__ import annotations

import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import dryfit.cli.main as command
from dryfit.errors import ConfigError


def test_help_lists_every_command(dryfit_command: Any) -> None:
    ended = dryfit_command("--help")
    assert ended.code == 0
    assert all(f"  {name} " in ended.out for name in command.COMMANDS)


def test_every_command_has_help_of_its_own(dryfit_command: Any) -> None:
    for name in command.COMMANDS:
        ended = dryfit_command(name, "--help")
        assert ended.code == 0
        assert f"Usage: dryfit {name}" in ended.out


def test_the_versions_are_those_of_the_packages(dryfit_command: Any) -> None:
    first, second, third = dryfit_command("--version").out.splitlines()
    assert first == f"dryfit {version('dryfit')}"
    assert second.startswith(f"Python {platform.python_version()} ")
    assert all(f"{name} {version(name)}" in third for name in ("numpy", "onnx", "numba", "llvmlite"))


def test_the_command_is_also_a_module_of_python() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "dryfit", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.startswith(f"dryfit {version('dryfit')}\n")


def test_an_unknown_command_is_an_error_that_names_the_closest(dryfit_command: Any) -> None:
    ended = dryfit_command("chek", "model.onnx")
    assert ended.code == 2
    assert "Unknown command: 'chek'" in ended.err
    assert "Did you mean 'check'?" in ended.err


def test_a_wrong_option_is_an_error_with_code_2(dryfit_command: Any) -> None:
    assert dryfit_command("targets", "list", "--yaml").code == 2


def test_a_file_that_is_not_there_is_an_error_with_code_2(dryfit_command: Any, tmp_path: Path) -> None:
    ended = dryfit_command("check", tmp_path / "no.onnx")
    assert ended.code == 2
    assert "no.onnx" in ended.err


@pytest.mark.parametrize("debug", [False, True])
def test_an_error_is_one_message_and_a_traceback_only_where_asked_for(
    dryfit_command: Any, monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    def fail(**options: object) -> None:
        raise ConfigError("It does not fit", found=3, allowed="1 to 2")

    monkeypatch.setattr(command.dryfit, "main", fail)
    ended = dryfit_command(*(["--debug"] if debug else []), "targets", "list")
    assert ended.code == 2
    assert ended.err.endswith("Error: It does not fit (found 3; allowed: 1 to 2)\n")
    assert ("Traceback" in ended.err) is debug


def test_a_fault_of_ours_is_no_answer(dryfit_command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dryfit.plugins.registry.targets", lambda: 1 // 0)
    ended = dryfit_command("targets", "list")
    assert ended.code == 3
    assert "ZeroDivisionError" in ended.err
    assert "This is a bug in dryfit, not in your input. Please report it with the lines above." in ended.err


def test_interruption_ends_with_2_and_no_traceback(dryfit_command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dryfit.plugins.registry.targets", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    ended = dryfit_command("targets", "list")
    assert (ended.code, ended.err.strip()) == (2, "Stopped.")


def test_a_reader_that_stops_reading_is_no_error() -> None:
    program = Path(sys.executable).with_name("dryfit")
    with subprocess.Popen(
        [program, "targets", "show", "DLA"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        assert (command.wait(), command.stderr.read()) == (0, b"")
