"""`dryfit qdq`: models that say by Q/DQ what is quantized."""

from __future__ import annotations

import click

from dryfit.cli.lazy_group import LazyGroup

COMMANDS = {
    "lint": "dryfit.cli.qdq_lint:lint",
}
"""Name to place of every command."""


@click.group(cls=LazyGroup, places=COMMANDS)
def qdq() -> None:
    """Models with QuantizeLinear and DequantizeLinear. No model runs."""
