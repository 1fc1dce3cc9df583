"""The hook that adds `dryfit tensorrt` to the command line; each build loads it, so it imports little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dryfit

if TYPE_CHECKING:
    import click


@dryfit.hookimpl
def register_commands() -> Sequence[click.Command]:
    """Return the commands."""
    from dryfit_tensorrt.commands import COMMANDS

    return COMMANDS
