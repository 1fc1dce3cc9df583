"""What Tab completes beyond commands, options and files: names that only the installed packages know.

A list is made when a shell asks for it. A package that cannot be used completes nothing; `dryfit plugins doctor` says
why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _completing(names: Callable[[click.Context], Iterable[str]]) -> Complete:
    """Those of the names that begin with what was typed, in any case."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  click's
        try:
            return [name for name in names(context) if name.lower().startswith(incomplete.lower())]
        except Exception:  # noqa: BLE001  whatever fails, the command itself says so; a shell shows nothing but names
            return []

    return complete


@_completing
def devices(context: click.Context) -> Iterable[str]:  # noqa: ARG001  nothing given changes them
    """Names of the installed devices."""
    from dryfit.plugins import registry

    return registry.device_names()


@_completing
def platforms(context: click.Context) -> Iterable[str]:
    """Names of the platforms: of the given device, or of all."""
    return dict.fromkeys(platform.name for platform in _platforms(context))


@_completing
def power_modes(context: click.Context) -> Iterable[str]:
    """Names of the power modes of the given platform, or of all."""
    asked = context.params.get("platform")
    return dict.fromkeys(
        mode.name for one in _platforms(context) if asked in (None, one.name) for mode in one.power_modes
    )


@_completing
def calibrators(context: click.Context) -> Iterable[str]:  # noqa: ARG001  nothing given changes them
    """Names of the installed calibration algorithms."""
    from dryfit.plugins import registry
    from dryfit.plugins.discovery import CALIBRATORS

    return sorted({entry.name for entry in registry.entries(CALIBRATORS)})


@_completing
def quantize_methods(context: click.Context) -> Iterable[str]:  # noqa: ARG001  nothing given changes them
    """Names of the installed quantize methods."""
    from dryfit.plugins import registry
    from dryfit.plugins.discovery import QUANTIZE_METHODS

    return sorted({entry.name for entry in registry.entries(QUANTIZE_METHODS)})


@_completing
def rules(context: click.Context) -> Iterable[str]:  # noqa: ARG001  nothing given changes them
    """Ids of all rules."""
    from dryfit.answers.explain_rule import all_rules

    return [rule.rule for family in all_rules() for rule in family.rules]


def _platforms(context: click.Context) -> Iterable[Any]:
    from dryfit.plugins import registry

    device = (context.params.get("device") or "").upper()
    return [one for name, target in registry.targets().items() if device in ("", name) for one in target.platforms]
