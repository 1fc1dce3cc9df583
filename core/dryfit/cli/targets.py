"""`dryfit targets`: which devices there are, what is known of one, and how two platforms or versions differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.console import json_option, print_json, print_line, print_table
from dryfit.errors import ConfigError
from dryfit.plugins.failures import DOCTOR, PluginFailure

if TYPE_CHECKING:
    from dryfit.target.target import Target


@click.group()
def targets() -> None:
    """The devices that dryfit knows."""


@targets.command(name="list")
@json_option
@click.pass_obj
def list_targets(told: set[PluginFailure], as_json: bool) -> None:
    """List every installed device with its platforms, and the plugins that bring devices and cannot be used."""
    from dryfit.plugins import registry

    found = [_summary(target) for target in registry.targets().values()]
    failed = [one for one in registry.failures() if one.group == registry.TARGETS or one.hook == "register_targets"]
    told.update(failed)
    if as_json:
        failures = [_failure(one) for one in failed]
        print_json({"targets": found, "failures": failures, "plugins": registry.active_plugins()})
        return
    rows = [(one["device"], one["title"], one["precisions"], one["platforms"]) for one in found]
    print_table("", ["device", "what it is", "precisions", "platforms"], rows)
    if failed:
        print_table("Cannot be used", ["plugin", "why"], [(str(one.owner), one.message) for one in failed])
        print_line(f"`{DOCTOR}` says what to do.")


@targets.command()
@click.argument("device")
@click.option("--platform", metavar="NAME", help="Variant of the device; its default where left out.")
@click.option("--software", metavar="VERSION", help="Software version; the newest where left out.")
@json_option
def show(device: str, platform: str | None, software: str | None, as_json: bool) -> None:
    """Show what is known of one DEVICE: platforms, formats, memory pools, arithmetic, limits."""
    from dryfit.cli.target_differences import target_facts
    from dryfit.plugins import registry

    target = registry.target(device)
    chosen = target.platform(platform)
    facts = target_facts(target, chosen, target.software(software, chosen))
    if as_json:
        print_json({**_summary(target), **facts})
        return
    print_line(f"{target.device}: {target.title}, {chosen.title}, software {facts['software'] or 'any'}")
    print_line(f"Simulated here: {target.simulated or 'nothing, it is this machine'}")
    platforms = [(one.name, one.title, one.cores, one.aliases) for one in target.platforms]
    print_table("Platforms", ["name", "board", "cores", "also called"], platforms)
    for title, columns in (
        ("Formats", ("direction", "type", "format")),
        ("Memory pools", ("name", "holds", "default", "source")),
        ("Fusions", ("name", "kinds", "source")),
        ("Arithmetic", ("precision", "accumulator", "rounding", "fidelity")),
        ("Limits", ("rule", "kinds", "text", "fidelity")),
    ):
        rows = [[row[column] for column in columns] for row in facts[title.lower().replace(" ", "_")]]
        if rows:
            print_table(title, columns, rows)


@targets.command()
@click.argument("first", metavar="FIRST")
@click.argument("second", metavar="SECOND")
@click.option("--device", default="DLA", show_default=True, metavar="NAME", help="Device of platforms without one.")
@json_option
def diff(first: str, second: str, device: str, as_json: bool) -> None:
    """Show how two platforms or versions of a device differ: rules, formats, memory pools, platforms.

    Each side is a platform or a device, and may have a version: `orin xavier`, `orin@8.5 orin@10.3`,
    `dla@8.4 dla@10.3`. A device with a version means the first of its platforms that has this version.
    """
    from dryfit.cli.target_differences import differences, side_facts

    sides = [side_facts(text, device) for text in (first, second)]
    names = [" ".join(filter(None, [side["platform"], side["software"]])) for side in sides]
    devices = [side["device"] for side in sides]
    if devices[0] != devices[1]:
        raise ConfigError("Two devices cannot be compared, only variants of one", found=" and ".join(devices))
    if names[0] == names[1]:
        raise ConfigError("Both sides are the same", where="targets diff", found=names[0])
    found = differences(*sides)
    if as_json:
        print_json({"device": devices[0], "first": names[0], "second": names[1], "differences": found})
        return
    rows = [(one["what"], one["first"], one["second"]) for one in found]
    if rows:
        print_table(f"{devices[0]}: {names[0]} and {names[1]}", ["", *names], rows)
    else:
        print_line(f"{devices[0]}: nothing that dryfit knows differs between {names[0]} and {names[1]}")


def _summary(target: Target) -> dict[str, Any]:
    return {
        "device": target.device,
        "title": target.title,
        "precisions": [precision.name for precision in target.precisions],
        "platforms": [platform.name for platform in target.platforms],
        "software_versions": [_version(version) for version in target.software_versions],
        "simulated": target.simulated,
    }


def _failure(failure: PluginFailure) -> dict[str, str]:
    return {
        "name": failure.name,
        "distribution": failure.distribution,
        "version": failure.version,
        "message": failure.message,
    }


def _version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
