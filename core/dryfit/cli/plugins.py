"""`dryfit plugins`: what installed packages bring, whether it works, and new packages of your own."""

from __future__ import annotations

import attrs
import click

from dryfit.cli.console import json_option, print_json, print_line, print_table
from dryfit.cli.lazy_group import LazyGroup

COMMANDS = {
    "doctor": "dryfit.cli.plugins_doctor:doctor",
    "list": "dryfit.cli.plugins:list_plugins",
    "new": "dryfit.cli.plugins_new:new",
}
"""Name to place of every command."""


@click.group(cls=LazyGroup, places=COMMANDS)
def plugins() -> None:
    """The plugins of installed packages: devices, layers, importers, passes, calibrators, quantize methods, hooks."""


@click.command(name="list")
@json_option
def list_plugins(as_json: bool) -> None:
    """List every installed plugin with its package and its state. Nothing is imported; `doctor` tries them."""
    from dryfit.plugins import registry
    from dryfit.plugins.installed_plugins import installed_plugins

    found = installed_plugins(registry)
    if as_json:
        print_json({"plugins": [attrs.asdict(one) for one in found]})
        return
    rows = [
        (f"{one.distribution} {one.version}", one.group, one.name, one.registers, f"{one.state} {one.reason}".strip())
        for one in found
    ]
    print_table("", ["package", "group", "name", "registers", "state"], rows)
    print_line("What a package promises is tried at first use, and by `dryfit plugins doctor`.")
