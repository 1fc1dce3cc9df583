"""`dryfit sparsity`: weights of which a device skips the zeros."""

from __future__ import annotations

import click

from dryfit.cli.lazy_group import LazyGroup

COMMANDS = {
    "check": "dryfit.cli.sparsity_check:check",
    "prune": "dryfit.cli.sparsity_prune:prune",
}
"""Name to place of every command."""


@click.group(cls=LazyGroup, places=COMMANDS)
def sparsity() -> None:
    """Weights with zeros that a device skips, such as 2:4. No model runs."""
