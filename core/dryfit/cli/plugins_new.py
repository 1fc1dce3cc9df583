"""`dryfit plugins new`: a package with a plugin of your own, ready to install, with tests that pass."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from dryfit.cli.console import print_line
from dryfit.cli.new_package import KINDS


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where the package's folder is made; here where left out.",
)
def new(kind: str, name: str, directory: Path) -> None:
    """Write a new package NAME with a target, a layer or a calibrator in it.

    It works as it is: install it, run its tests, then make it yours. Nothing is overwritten.
    """
    from dryfit.cli.new_package import package_names, rendered_files, write_package

    names = package_names(kind, name)
    contents = rendered_files(kind, names)
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
