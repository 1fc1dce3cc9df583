"""The command `dryfit` itself as a group: its own commands, and beside them those that installed packages bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.lazy_group import LazyGroup
from dryfit.errors import DryfitError, PluginError

if TYPE_CHECKING:
    from dryfit.plugins.discovery import PluginOwner


class ReaderGoneError(Exception):
    """Nobody reads the output any more. An error of its own, since click ends with 1 for a broken pipe."""


class OpenGroup(LazyGroup):
    """A group to which packages add commands by the hook `register_commands`.

    Packages are asked only for help on the whole, and for a command that is not one of the group's own. What another
    package of dryfit's own distribution adds is listed among dryfit's commands.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the group's own commands, and of those that come with dryfit."""
        return sorted([*super().list_commands(ctx), *self._of_dryfit()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, the group's own or a package's; None where there is none."""
        return super().get_command(ctx, cmd_name) or self._added().get(cmd_name, (None,))[0]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. What a package's own raises is told as that package's fault, not as dryfit's.

        Raises:
            PluginError: a package's command failed.
            ReaderGoneError: whoever read the output has enough.
        """
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, DryfitError):
            raise
        except BrokenPipeError as error:
            raise ReaderGoneError from error
        except Exception as error:
            name = ctx.invoked_subcommand
            if name in self.places or name in self._of_dryfit() or name not in self._added():
                raise
            raise PluginError(
                f"The command {name} failed",
                where=self._added()[name][1].package,
                found=f"{type(error).__name__}: {error}",
                remedy="Report it to its maintainers; `dryfit --debug` shows the traceback",
            ) from error

    def known_names(self, ctx: click.Context) -> list[str]:
        """Every name that could have been meant."""
        return sorted({*self.list_commands(ctx), *self._added()})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The group's own commands, and then those of packages with their owners."""
        super().format_commands(ctx, formatter)
        added = [
            (name, f"{command.get_short_help_str(limit=300)} [{owner.package}]")
            for name, (command, owner) in self._added().items()
            if owner.is_foreign
        ]
        if added:
            with formatter.section("Commands of installed packages"):
                formatter.write_dl(added)

    def _of_dryfit(self) -> list[str]:
        return [name for name, (_, owner) in self._added().items() if not owner.is_foreign]

    def _added(self) -> dict[str, tuple[click.Command, PluginOwner]]:
        from dryfit.plugins import facade

        return {str(one.value.name): (one.value, one.owner) for one in facade.commands(self.places)}
