"""The command `dryfit`: each command is one file of `dryfit.cli.commands`, loaded when it is asked for."""

from __future__ import annotations

import io
import logging
import os
import pkgutil
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from dryfit.cli import commands
from dryfit.cli.console import print_note
from dryfit.cli.failure_notes import print_failure_notes, seconds_allowed
from dryfit.cli.log import PrintableFormatter
from dryfit.cli.package_commands import OpenGroup, ReaderGoneError
from dryfit.cli.trtexec_names import explained
from dryfit.errors import DryfitError
from dryfit.plugins import loading, registry
from dryfit.plugins.failures import PluginFailure
from dryfit.target.first_import import watch_imports

COMMANDS = {
    one.name.replace("_", "-"): f"{commands.__name__}.{one.name}:{one.name}"
    for one in pkgutil.iter_modules(commands.__path__)
}
"""Name to place of every command: a file of `dryfit.cli.commands` has a command of its own name."""


def _only_own_plugins(context: click.Context, parameter: click.Parameter, chosen: bool) -> None:  # noqa: ARG001  click's
    if chosen:
        registry.switch_off_foreign()


def _print_versions(context: click.Context, parameter: click.Parameter, asked: bool) -> None:  # noqa: ARG001  click's
    if asked and not context.resilient_parsing:
        from dryfit.answers.installation import version_text

        click.echo(version_text())
        context.exit()


@click.group(
    cls=OpenGroup,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show the versions of dryfit and its dependencies, and exit.",
)
# `_run` looks for --debug in the arguments, since it counts also when they cannot be parsed.
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors and of failing plugins.")
@click.option(
    "--no-plugins",
    is_flag=True,
    is_eager=True,  # before --help, which lists the commands of packages
    expose_value=False,
    callback=_only_own_plugins,
    help="Do not load plugins of other packages.",
)
def dryfit() -> None:
    """Check where the layers of a network can run and why, and run it here in a device's arithmetic."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command in this process, whose settings stay as they are.

    Exits with 0 (an answer), 1 (what --fail-on names was found), 2 (an error of the user's) or 3 (a fault of ours).
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    told = set(registry.failures())
    if logging.lastResort is not None:  # writes the log of commands that send it nowhere
        logging.lastResort.setFormatter(PrintableFormatter())
    try:
        loading.allow_seconds(seconds_allowed())
        watch_imports(on=True)
        status = _run(given, told)
        print_failure_notes(told, debug="--debug" in given)
    except DryfitError as error:
        print_note(str(_error_text(error)))
        status = 2
    finally:
        loading.allow_seconds(None)
        watch_imports(on=False)
    sys.exit(status)


def _run(given: list[str], told: set[PluginFailure]) -> int:
    """Run a command and tell how it ends; returns the exit code.

    Args:
        given: the arguments.
        told: the failures of plugins that need no note any more; commands add those that their answer has.
    """
    try:
        status: Any = dryfit.main(args=given, prog_name="dryfit", standalone_mode=False, obj=told)
    except click.exceptions.Abort as stopped:
        print_note("\n".join(["Stopped.", *getattr(stopped.__cause__, "__notes__", ())]))
        return 2
    except click.ClickException as error:
        shown = io.StringIO()
        (explained(error) if isinstance(error, click.NoSuchOption) else error).show(shown)
        print_note(shown.getvalue().removesuffix("\n"))
        return 2
    except ReaderGoneError:
        # The reader of our output has enough (`dryfit ... | head`): that is no error. Nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001  a fault of ours must not end with 1, which is an answer
        text = _error_text(error)
        if text is None or "--debug" in given:
            print_note(traceback.format_exc().rstrip("\n"))
        print_note(text or "This is a bug in dryfit, not in your input. Please report it with the lines above.")
        return 3 if text is None else 2
    return status if isinstance(status, int) else 0


def _error_text(error: Exception) -> str | None:
    """The message of an error that the user's input, configuration or environment caused; None for a fault of ours."""
    match error:
        case DryfitError():
            return f"Error: {error}"
        case MemoryError():
            remedy = "Use smaller shapes, batches or models, close other programs or raise the limit (ulimit -v)"
            return f"Error: Not enough memory (found: {str(error) or 'an allocation failed'}). {remedy}"
        case OSError():
            return f"Error: {error.strerror or error}" + (f": {error.filename!r}" if error.filename else "")
        case _:
            return None
