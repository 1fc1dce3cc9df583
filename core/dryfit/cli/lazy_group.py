"""Groups of commands: with whole sentences in their help, and imported at first use, so that `--help` is quick."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from dryfit.cli.trtexec_names import COMMAND_ADVICE, COMMANDS
from dryfit.errors import UnknownNameError


class CommandGroup(click.Group):
    """A group whose help lists each command with its whole first sentence, which click would cut off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, with lines wrapped."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, one.get_short_help_str(limit=300)) for name, one in found if one is not None and not one.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(CommandGroup):
    """A group whose commands are imported when they are asked for.

    Args:
        places: name of a command to its `module:attribute`.
        settings: what `click.Group` takes.
    """

    def __init__(self, *, places: Mapping[str, str], **settings: Any) -> None:
        super().__init__(**settings)
        self.places = dict(places)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Names of the commands."""
        return sorted(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        """The command of a name; None where there is none."""
        if cmd_name not in self.places:
            return None
        module, _, attribute = self.places[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; for an unknown name an error with the closest one."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            told = str(UnknownNameError("command", args[0], self.known_names(ctx)))
            raise click.UsageError(f"{told}. {COMMAND_ADVICE}" if args[0] in COMMANDS else told, ctx)
        return super().resolve_command(ctx, args)

    def known_names(self, ctx: click.Context) -> list[str]:
        """Every name that could have been meant."""
        return self.list_commands(ctx)
