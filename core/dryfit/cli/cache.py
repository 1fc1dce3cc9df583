"""`dryfit cache`: files of INT8 scales and ranges, of TensorRT's form and others, looked at, checked and rewritten."""

from __future__ import annotations

import click

from dryfit.cli.lazy_group import LazyGroup

COMMANDS = {
    "check": "dryfit.cli.cache_check:check",
    "convert": "dryfit.cli.cache_convert:convert",
    "diff": "dryfit.cli.cache_diff:diff",
    "merge": "dryfit.cli.cache_merge:merge",
    "show": "dryfit.cli.cache_show:show",
}
"""Name to place of every command."""


@click.group(cls=LazyGroup, places=COMMANDS)
def cache() -> None:
    """Calibration caches: TensorRT's, ONNX Runtime's, range files, and dryfit's own. No model runs."""
