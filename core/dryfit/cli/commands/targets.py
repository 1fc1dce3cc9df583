"""`dryfit targets`: which devices there are, what is known of one, and how two platforms or versions differ."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.cli import completion
from dryfit.cli.console import answer_options, show_answer
from dryfit.cli.lazy_group import CommandGroup
from dryfit.cli.network_options import overlay_option
from dryfit.plugins.failures import PluginFailure


@click.group(cls=CommandGroup)
def targets() -> None:
    """Show and compare the installed devices."""


@targets.command(name="list")
@answer_options
@click.pass_obj
def list_targets(told: set[PluginFailure], as_json: bool) -> None:
    """List every installed device with its platforms, and device plugins that cannot be used."""
    from dryfit.answers.targets import targets as installed

    answer = installed()
    told.update(answer.failed)
    show_answer(answer, as_json=as_json)


@targets.command()
@click.argument("device", shell_complete=completion.devices)
@click.option(
    "--platform",
    metavar="NAME",
    shell_complete=completion.platforms,
    help="Board (default: the device's own default).",
)
@click.option("--software", metavar="VERSION", help="Software version (default: newest).")
@overlay_option
@answer_options
def show(device: str, platform: str | None, software: str | None, overlays: tuple[Path, ...], as_json: bool) -> None:
    """Show one DEVICE: platforms, formats, memory pools, arithmetic, limits."""
    from dryfit.answers.targets import describe_target

    show_answer(describe_target(device, platform, software, overlays=overlays), as_json=as_json)


@targets.command()
@click.argument("first", metavar="FIRST", shell_complete=completion.platforms)
@click.argument("second", metavar="SECOND", shell_complete=completion.platforms)
@click.option(
    "--device",
    default="DLA",
    show_default=True,
    metavar="NAME",
    shell_complete=completion.devices,
    help="Device for platforms given without one.",
)
@answer_options
def diff(first: str, second: str, device: str, as_json: bool) -> None:
    """Show how two platforms or versions of a device differ: rules, formats, memory pools, platforms.

    Each side is a platform or a device, optionally with a version: `orin xavier`, `orin@8.5 orin@10.3`, `dla@8.4
    dla@10.3`. A device with a version selects its first platform with this version.
    """
    from dryfit.answers.targets import compare_targets

    show_answer(compare_targets(first, second, device), as_json=as_json)
