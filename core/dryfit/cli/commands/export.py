"""`dryfit export`: what a device's own toolchain takes."""

from __future__ import annotations

import click

from dryfit.cli.lazy_group import LazyGroup

COMMANDS = {
    "loadables": "dryfit.cli.export_loadables:loadables",
    "trtexec": "dryfit.cli.export_trtexec:trtexec",
}
"""Name to place of every command."""


@click.group(cls=LazyGroup, places=COMMANDS)
def export() -> None:
    """Files for a device's own tools. Nothing is run."""
