"""Trying one plugin alone, in a process of its own: `python -m dryfit.cli.plugins_examination GROUP NAME DISTRIBUTION`.

A plugin that never comes to an end, or ends the interpreter, then ends nothing else. The answer is one marked line of
JSON on stdout, so that whatever the plugin prints stands beside it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from importlib.metadata import EntryPoint

import attrs

from dryfit.cli.main import COMMANDS
from dryfit.cli.plugins_doctor import MARK
from dryfit.errors import PluginError
from dryfit.plugins import facade
from dryfit.plugins.calibrators import calibrator
from dryfit.plugins.discovery import (
    CALIBRATORS,
    HOOKS,
    IMPORTERS,
    LAYERS,
    PASSES,
    TARGETS,
    installed_entry_points,
    owner_of,
)
from dryfit.plugins.failures import PluginFailure
from dryfit.plugins.layer_plugins import InstalledLayerPlugins
from dryfit.plugins.loading import described
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.target.target import Target


def examine(group: str, name: str, distribution: str) -> list[PluginFailure]:
    """What is wrong with a plugin, tried beside dryfit's own plugins and no others."""

    def is_asked(entry: EntryPoint) -> bool:
        owner = owner_of(entry)
        return (owner.group, owner.name, owner.distribution) == (group, name, distribution)

    def read(of_group: str) -> list[EntryPoint]:
        found = installed_entry_points(of_group)
        return [entry for entry in found if is_asked(entry) or not owner_of(entry).is_foreign]

    plugins = PluginRegistry(read, disabled="", selected=distribution)
    for entry in filter(is_asked, read(group)):
        _use(entry, plugins)
    return [one for one in plugins.failures() if (one.group, one.name, one.distribution) == (group, name, distribution)]


def _use(entry: EntryPoint, plugins: PluginRegistry) -> None:
    """Ask of a plugin what dryfit would ask of it at first use; what fails is recorded in the registry."""
    if entry.group == TARGETS:
        target = plugins.catalog.find(entry.name)
        if target is not None:
            _load_declarations(target, entry, plugins)
    elif entry.group == LAYERS:
        namespace, _, name = entry.name.rpartition("::")
        with contextlib.suppress(PluginError):  # it is recorded
            InstalledLayerPlugins(plugins).find((name, "1", namespace))
    elif entry.group == IMPORTERS:
        domain, _, op_type = entry.name.rpartition("::")
        facade.onnx_operators(domain, op_type, plugins)
    elif entry.group == PASSES:
        facade.contributed_passes(plugins)
    elif entry.group == CALIBRATORS:
        with contextlib.suppress(PluginError):  # it is recorded
            calibrator(entry.name, plugins=plugins)
    elif entry.group == HOOKS:
        plugins.targets()
        InstalledLayerPlugins(plugins).titles()
        facade.commands(COMMANDS, plugins)
        facade.contributed_passes(plugins)
    else:
        plugins.load(entry)


def _load_declarations(target: Target, entry: EntryPoint, plugins: PluginRegistry) -> None:
    """Load everything that the record names as `module:attribute`."""
    for field in attrs.fields(Target):
        if field.name.endswith("_at"):
            try:
                getattr(target, field.name.removesuffix("_at"))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
                message, remedy = described(error)
                plugins.fail(entry, message, traceback.format_exc(), remedy=remedy)
                return


if __name__ == "__main__":
    failures = examine(*sys.argv[1:])
    print("\n" + MARK + json.dumps([attrs.asdict(one) for one in failures]), flush=True)  # noqa: T201  the answer
