"""`--quiet`: the outcome of any command that shows an answer."""

from __future__ import annotations

import click
import pytest

from dryfit.cli.main import dryfit

BOARD = ("--platform", "orin-nx-16", "--fp16", "--shape", "image=1x1x8x8")


def commands(group: click.Group, path: tuple[str, ...] = ()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_command_that_has_json_has_a_quiet_form():
    options = {path: {name for one in command.params for name in one.opts} for path, command in commands(dryfit)}
    lacking = [path for path, names in options.items() if "--json" in names and "--quiet" not in names]
    assert lacking == [("exec",)], "the log of exec is trtexec's"


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("explain", "do not run on DLA"),
        ("estimate", "Estimated cost of"),
        ("place", "Placement of"),
    ],
)
def test_quiet_prints_one_line_with_the_outcome(command, outcome, digits_model, dryfit_command):
    loud = dryfit_command(command, digits_model, *BOARD)
    quiet = dryfit_command(command, digits_model, *BOARD, "--quiet")
    assert (loud.code, quiet.code) == (0, 0)
    assert len(loud.out.splitlines()) > len(quiet.out.splitlines()) == 1
    assert outcome in quiet.out


def test_json_is_json_with_quiet_too(digits_model, dryfit_command):
    whole = dryfit_command("check", digits_model, *BOARD, "--json").out
    assert dryfit_command("check", digits_model, *BOARD, "--json", "--quiet").out == whole
