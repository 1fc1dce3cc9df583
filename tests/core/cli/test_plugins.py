from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs.guides import run_in_fork
from tests.core.plugins.packages import install, target_module
from tests.schemas import validate

from dryfit import __version__
from dryfit.answers.plugins import PluginsAnswer
from dryfit.plugins import registry
from dryfit.plugins.discovery import HOOKS, TARGETS

COMMAND = """
    import click
    import dryfit

    @click.command()
    @click.option("--board", default="one")
    def upload(board):
        "Send an engine to a board."
        if board == "burning":
            raise RuntimeError("the board is on fire")
        if board == "missing":
            raise dryfit.ConfigError("There is no such board")
        click.echo(f"sent to {board}")

    @dryfit.hookimpl
    def register_commands():
        return [upload]
"""


def dryfit(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`dryfit` in a process of its own, with a folder on the path: a fork that has imported dryfit, and no plugin."""
    words = ["dryfit", *map(str, arguments)]
    ended = run_in_fork(words, str(folder), {**os.environ, "PYTHONPATH": str(folder), **environment})
    return subprocess.CompletedProcess(words, ended.code, ended.out, ended.err)


@pytest.fixture
def with_command(tmp_path: Path) -> Path:
    """A folder with a package that brings a command."""
    return install(tmp_path, "acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": COMMAND})


def test_list_shows_packages_groups_and_states(dryfit_command: Any) -> None:
    text = dryfit_command("plugins", "list").out
    [line] = [line for line in text.splitlines() if "device DLA" in line]
    state = line.split()[-1]
    assert state in ("loaded", "available")
    assert line.split() == ["dryfit", __version__, "dryfit.targets", "dla", "device", "DLA", state]
    answer = dryfit_command("plugins", "list", "--json").json
    validate(answer, PluginsAnswer.schema())
    assert {one["name"] for one in answer["plugins"] if one["group"] == "dryfit.targets"} >= {"cpu", "dla", "gpu"}


def test_a_command_of_a_package_is_listed_and_runs(with_command: Path) -> None:
    help_text = dryfit(with_command, "--help").stdout
    assert "Commands of installed packages:" in help_text
    assert "Send an engine to a board. [acme 1.2]" in help_text
    done = dryfit(with_command, "upload", "--board", "two")
    assert (done.returncode, done.stdout, done.stderr) == (0, "sent to two\n", "")
    misspelled = dryfit(with_command, "uplaod")
    assert misspelled.returncode == 2
    assert "Did you mean 'upload'?" in misspelled.stderr


def test_what_a_packages_command_does_wrong_is_not_dryfits_fault(with_command: Path) -> None:
    done = dryfit(with_command, "upload", "--board", "burning")
    assert done.returncode == 2
    assert done.stderr == (
        "Error: acme 1.2: The command upload failed (found RuntimeError: the board is on fire). "
        "Report it to its maintainers; `dryfit --debug` shows the traceback\n"
    )
    assert "Traceback" in dryfit(with_command, "--debug", "upload", "--board", "burning").stderr
    assert dryfit(with_command, "upload", "--board", "missing").stderr == "Error: There is no such board\n"


def test_without_plugins_there_are_only_dryfits_own_commands(with_command: Path) -> None:
    assert "upload" not in dryfit(with_command, "--no-plugins", "--help").stdout
    done = dryfit(with_command, "--no-plugins", "upload")
    assert done.returncode == 2
    assert "Unknown command: 'upload'" in done.stderr
    listed = dryfit(with_command, "--no-plugins", "plugins", "list").stdout
    assert re.search(r"disabled by --no-plugins\s+or\s+DRYFIT_DISABLE_PLUGINS=\*", listed)


def test_dryfits_own_commands_import_no_hooks_that_they_do_not_call(tmp_path: Path) -> None:
    text = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\nraise ImportError"
    install(tmp_path, "acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": text})
    for arguments in (
        ["--version"],
        ["targets", "show", "DLA"],
        ["plugins", "list"],
        ["explain-rule", "dla.convolution"],
    ):
        done = dryfit(tmp_path, *arguments)
        assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "imported").exists()


def test_what_was_left_out_is_told_once_on_stderr_after_the_answer(tmp_path: Path) -> None:
    install(tmp_path, "acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": "1 / 0"})
    done = dryfit(tmp_path, "--help")
    assert done.returncode == 0
    assert done.stderr == (
        "Skipped: acme 1.2 (acme) in dryfit.hooks: ZeroDivisionError: division by zero. See `dryfit plugins doctor`.\n"
    )


def test_what_fails_only_at_work_says_how_to_see_more(tmp_path: Path, digits_model: Path) -> None:
    text = "import dryfit\n@dryfit.hookimpl\ndef observe_build(): 1 / 0"
    install(tmp_path, "acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": text})
    asked = ["check", str(digits_model), "--device", "GPU", "--shape", "image=1x1x8x8"]
    told = dryfit(tmp_path, *asked).stderr
    assert told.endswith("hook observe_build: ZeroDivisionError: division by zero. `dryfit --debug` shows more.\n")
    assert 'acme_hooks.py", line 3, in observe_build' in dryfit(tmp_path, "--debug", *asked).stderr


def test_targets_are_listed_beside_those_that_cannot_be_used(tmp_path: Path) -> None:
    install(tmp_path, "good", {TARGETS: {"acme-npu": "good:TARGET"}}, target_module("good"))
    install(tmp_path, "bad", {TARGETS: {"bad": "bad:TARGET"}}, {"bad": "1 / 0"})
    done = dryfit(tmp_path, "targets", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ACME_NPU  Acme" in done.stdout
    assert "bad 1.2 (bad)  ZeroDivisionError: division by zero" in done.stdout


def test_an_import_without_end_is_cut_off(tmp_path: Path) -> None:
    endless = {"endless": "import time\nwhile True: time.sleep(1)"}
    install(tmp_path, "endless", {TARGETS: {"endless": "endless:TARGET"}}, endless)
    done = dryfit(tmp_path, "targets", "list", DRYFIT_PLUGIN_TIMEOUT="0.5")
    assert done.returncode == 0
    assert "its import takes longer than 0.5 s" in done.stdout
    assert "DLA" in done.stdout


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_a_time_that_is_no_number_of_seconds_is_refused(
    dryfit_command: Any, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("DRYFIT_PLUGIN_TIMEOUT", text)
    ended = dryfit_command("targets", "list")
    assert ended.code == 2
    assert (
        "environment variable DRYFIT_PLUGIN_TIMEOUT: The import timeout of a plugin must be a number of seconds"
        in ended.err
    )
    assert f"(found {text!r}; allowed: more than 0)" in ended.err


def test_an_interrupted_import_says_how_to_do_without_the_plugin(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme": "acme:TARGET"}}, {"acme": "raise KeyboardInterrupt"})
    done = dryfit(tmp_path, "targets", "list")
    assert done.returncode == 2
    assert done.stderr.split("\n")[-3:] == [
        "Stopped.",
        "While loading the plugin acme 1.2 (acme). DRYFIT_DISABLE_PLUGINS=acme switches it off.",
        "",
    ]


def test_every_report_and_every_engine_says_which_plugins_were_active(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "digits.engine"
    asked = (digits_model, "--device", "DLA", "--precision", "fp16", "--fallback", "GPU", "--shape", "image=2x1x8x8")
    active = registry.active_plugins()
    assert dryfit_command("check", *asked, "--json").json["plugins"] == active
    assert dryfit_command("explain", *asked, "--no-edits", "--json").json["plugins"] == active
    assert dryfit_command("build", *asked, "-o", engine, "--json").json["plugins"] == active
    assert dryfit_command("run", engine, "--random", 1, "--json").json["plugins"] == active
    # An engine keeps what it was built with, whatever is installed where it is looked at.
    monkeypatch.setattr(registry, "active_plugins", lambda: ["other 1.0 (other)"])
    assert dryfit_command("inspect", engine, "--json").json["plugins"] == active
    assert dryfit_command("run", engine, "--random", 1, "--json").json["plugins"] == ["other 1.0 (other)"]


@pytest.mark.parametrize("arguments", [("--help",), ("targets", "list"), ("plugins", "list"), ("plugins", "--help")])
def test_help_and_lists_import_neither_numpy_nor_numba(arguments: tuple[str, ...]) -> None:
    code = f"""
import sys
from dryfit.cli.main import main
try:
    main({list(arguments)!r})
except SystemExit as end:
    assert not end.code
assert not {{"numpy", "numba", "onnx", "jinja2"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
