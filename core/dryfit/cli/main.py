"""The command `dryfit`: each command is one file here, loaded when it is asked for."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import click

from dryfit.errors import DryfitError, UnknownNameError

COMMANDS = {
    "build": "dryfit.cli.build:build",
    "check": "dryfit.cli.check:check",
    "explain": "dryfit.cli.explain:explain",
    "explain-rule": "dryfit.cli.explain_rule:explain_rule",
    "inspect": "dryfit.cli.inspect:inspect",
    "run": "dryfit.cli.run:run",
    "targets": "dryfit.cli.targets:targets",
}
"""Name to place of every command."""


class LazyGroup(click.Group):
    """A group whose commands are imported at first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names of the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; for an unknown name an error with the closest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(str(UnknownNameError("command", args[0], COMMANDS)), ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("dryfit"), prog_name="dryfit")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--no-plugins", is_flag=True, help="Load nothing that other packages registered.")
def dryfit(debug: bool, no_plugins: bool) -> None:  # noqa: ARG001  `main` looks for --debug, also when parsing fails
    """See where the layers of a network can run, why, and run it here with a device's rules. No device is needed."""
    if no_plugins:
        os.environ["DRYFIT_DISABLE_PLUGINS"] = "*"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command's entry point.

    Exits with 0 (an answer), 1 (what --fail-on names was found), 2 (an error of the user's) or 3 (a fault of ours).
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        status: Any = dryfit.main(args=given, prog_name="dryfit", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except DryfitError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has enough (`dryfit ... | head`): that is no error. Nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception:  # noqa: BLE001  a fault of ours must not end with 1, which is an answer
        traceback.print_exc()
        click.echo("This is a fault in dryfit, not in your input. Please report it with the lines above.", err=True)
        sys.exit(3)
    sys.exit(status if isinstance(status, int) else 0)
