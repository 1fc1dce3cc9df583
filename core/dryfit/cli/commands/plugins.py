"""`dryfit plugins`: what installed packages bring, whether it works, and new packages of your own."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from dryfit.cli.console import answer_options, print_line, show_answer
from dryfit.cli.failure_notes import SECONDS, seconds_allowed
from dryfit.cli.lazy_group import CommandGroup, LazyGroup
from dryfit.cli.new_package import KINDS
from dryfit.plugins.loading import TIMEOUT_VARIABLE, WAITING_FACTOR


@click.group(cls=CommandGroup)
def plugins() -> None:
    """The plugins of installed packages: devices, layers, importers, passes, calibrators, quantize methods, hooks."""


@plugins.command(name="list")
@answer_options
def list_plugins(as_json: bool) -> None:
    """List every installed plugin with its package and state. Nothing is imported; `doctor` tests them."""
    from dryfit.answers.plugins import plugins as installed

    show_answer(installed(), as_json=as_json)


@plugins.command()
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help=f"CPU time that a plugin may take, in seconds; one that waits is stopped after {WAITING_FACTOR} times as long "
    f"(default: {SECONDS:g} or the environment variable {TIMEOUT_VARIABLE}).",
)
@answer_options
@click.pass_context
def doctor(context: click.Context, timeout: float | None, as_json: bool) -> None:
    """Test every enabled plugin, and show what is wrong and how to fix it.

    Exits with 0 if there are no problems, and with 1 for a broken plugin or a switch that matches nothing installed.
    """
    from dryfit.answers.plugins import examine_plugins

    root = context.find_root()
    own_commands = list(root.command.places) if isinstance(root.command, LazyGroup) else []
    answer = examine_plugins(seconds_allowed() if timeout is None else timeout, own_commands)
    show_answer(answer, as_json=as_json)
    context.exit(int(answer.has_failed))


@plugins.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--like",
    metavar="DEVICE",
    help="Target only: start from a copy of the package of this installed target, such as ethos-u, under the new name.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder in which to create the package (default: this folder).",
)
def new(kind: str, name: str, like: str | None, directory: Path) -> None:
    """Create a new package NAME with a target, a layer or a calibrator.

    It works as generated: install it, run its tests, then adapt it. The folder must not exist yet.
    """
    from dryfit.cli.new_package import files_like, package_names, rendered_files, write_package

    if like is not None and kind != "target":
        raise click.UsageError("--like applies to targets only")
    names = package_names(kind, name)
    contents = rendered_files(kind, names) if like is None else files_like(like, names)
    folder = directory / names["distribution"]
    write_package(folder, contents)
    print_line(f"A new package {names['distribution']} with the module {names['module']}:")
    for path in contents:
        print_line(f"  {folder / path}")
    place = shlex.quote(str(folder))
    print_line()
    print_line("Next:")
    print_line(f"  pip install --editable {shlex.quote(f'{folder.absolute()}[testing]')}")
    print_line("  dryfit plugins doctor")
    print_line(f"  pytest {place}")
