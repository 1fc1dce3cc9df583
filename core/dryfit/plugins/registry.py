"""The plugins of this process: what every other part of dryfit asks for devices and for the state of plugins.

Entry points are read at start, and each is loaded at first use. Which plugins are switched off is told in
`dryfit.plugins.switches`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dryfit.plugins.discovery import CALIBRATORS, GROUPS, HOOKS, IMPORTERS, LAYERS, PASSES, QUANTIZE_METHODS, TARGETS
from dryfit.plugins.failures import PluginFailure
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.plugins.switches import DISABLE_VARIABLE, LOAD_VARIABLE

if TYPE_CHECKING:
    from dryfit.target.target import Target

__all__ = [
    "CALIBRATORS",
    "DISABLE_VARIABLE",
    "GROUPS",
    "HOOKS",
    "IMPORTERS",
    "LAYERS",
    "LOAD_VARIABLE",
    "PASSES",
    "QUANTIZE_METHODS",
    "TARGETS",
    "PluginFailure",
    "PluginRegistry",
    "active_plugins",
    "device_names",
    "fail_function",
    "failures",
    "find_target",
    "function_failure",
    "host",
    "installed",
    "switch_off_foreign",
    "target",
    "target_package",
    "targets",
    "targets_in_turn",
    "use",
]

_registry: PluginRegistry | None = None


def installed() -> PluginRegistry:
    """The registry of the installed packages, made at first use."""
    global _registry  # noqa: PLW0603  one registry a process: entry points are read once
    if _registry is None:
        _registry = PluginRegistry()
    return _registry


def use(plugins: PluginRegistry) -> None:
    """From now on this process knows the plugins of this registry."""
    global _registry  # noqa: PLW0603  see `installed`
    _registry = plugins


def switch_off_foreign() -> None:
    """From now on this process knows only plugins that come with dryfit. What was loaded before is forgotten."""
    global _registry  # noqa: PLW0603  see `installed`
    _registry = PluginRegistry(disabled=f"*,{os.environ.get(DISABLE_VARIABLE, '')}")


def targets() -> dict[str, Target]:
    """Device name to target, sorted by device; loads all of them. A lookup by name is cheaper and safer: `target`."""
    return installed().targets()


def targets_in_turn() -> Iterator[Target]:
    """All targets, those of dryfit first, each loaded when it is reached: for searches that may end early."""
    return installed().catalog.in_turn()


def target(device: str) -> Target:
    """The target of a device, its name in any case. What its package left out is filled in from the host's.

    Raises:
        UnknownNameError: no installed package brings this device.
        PluginError: two packages do, or the one that does is broken or switched off.
    """
    return installed().target(device)


def find_target(device: str) -> Target | None:
    """The target of a device; None where it is not installed or cannot be used."""
    return installed().catalog.find(device)


def device_names() -> list[str]:
    """The devices that entry points name, sorted, without loading them, and those that hooks bring."""
    return installed().catalog.device_names()


def target_package(device: str) -> str:
    """`distribution version` of the package that brings a device; "" where that is not known."""
    return installed().catalog.package(device)


def fail_function(device: str, part: str, error: BaseException) -> None:
    """Record that a function of a device's target raised when it was asked: see `TargetCatalog.fail_function`."""
    installed().catalog.fail_function(device, part, error)


def function_failure(device: str, part: str) -> str:
    """What a function of a device's target raised so far; "" where it raised nothing."""
    owner = installed().catalog.owner(device)
    return next((one.message for one in failures() if (one.owner, one.part) == (owner, part)), "")


def host() -> Target:
    """The CPU target, which emulates the others.

    Raises:
        PluginError: there is none.
    """
    return installed().host()


def failures() -> list[PluginFailure]:
    """What could not be used of plugins so far."""
    return installed().failures()


def active_plugins() -> list[str]:
    """`name version (distribution)` of every active plugin, sorted; engines and reports carry it."""
    return installed().active()
