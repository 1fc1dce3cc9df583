"""Layer plugins of installed packages, loaded when a layer first asks for one.

An entry point in the group `dryfit.layers` names a layer plugin, or a class of layer plugins that takes no arguments.
The entry point's name is the plugin's, `Name` or `namespace::Name`. A plugin that no entry point names may come from
the hook `register_layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dryfit.errors import PluginError
from dryfit.network import plugin_table
from dryfit.network.layer_plugin import LayerPlugin, PluginKey, plugin_title
from dryfit.plugins import facade, registry
from dryfit.plugins.contributions import OnnxOperator
from dryfit.plugins.discovery import CHOOSE_ONE, LAYERS, PluginOwner, owner_of

Owners = list[tuple[PluginOwner, LayerPlugin]]


def find_layer_plugin(key: PluginKey) -> LayerPlugin | None:
    """The plugin of this name, loaded; None where no package brings it. No other plugin is loaded.

    Raises:
        PluginError: it is broken, or two packages bring it.
    """
    owned = _owned(key)
    return owned[1] if owned is not None else None


def layer_plugin_package(key: PluginKey) -> str:
    """`distribution version` of the package that brings a plugin; "" for one that a program registered itself.

    Raises:
        PluginError: two packages bring it, or the one that does is broken.
    """
    owned = _owned(key)
    return owned[0].package if owned is not None else ""


def layer_plugin_titles() -> Sequence[str]:
    """The names of all plugins that packages bring, sorted; of those of hooks, with their versions."""
    named = {entry.name for entry in registry.entries(LAYERS)}
    return sorted(named | {plugin_title(plugin.key) for _, plugin in _brought_by_hooks()})


def why_no_layer_plugin(key: PluginKey) -> str:
    """Why a plugin is not found though a package brings one of its name; "" where none does."""
    for entry in registry.all_entries(LAYERS):
        owner = owner_of(entry)
        if entry.name == _entry_name(key):
            switched_off = registry.switches.reason(owner)
            return f"{owner} is switched off: {switched_off}" if switched_off else f"{owner} has another version"
    return ""


def _owned(key: PluginKey) -> tuple[PluginOwner, LayerPlugin] | None:
    """A plugin and who brings it: a package's entry point, or else a hook; dryfit's own before a stranger's."""
    found, broken = _named(key)
    if not found and not broken:
        found = [(owner, plugin) for owner, plugin in _brought_by_hooks() if plugin.key == key]
    found = [one for one in found if not one[0].is_foreign] or found
    if len(found) > 1:
        raise PluginError(
            f"The layer plugin {plugin_title(key)} is registered by more than one package",
            found=", ".join(str(owner) for owner, _ in found),
            remedy=CHOOSE_ONE,
        )
    if not found and broken:
        raise registry.failure(broken[0]).error(f"The layer plugin {plugin_title(key)} could not be loaded")
    return found[0] if found else None


def _named(key: PluginKey) -> tuple[Owners, list[PluginOwner]]:
    """The plugins of this name that entry points name, and the entry points of this name that are broken."""
    found: Owners = []
    broken: list[PluginOwner] = []
    for entry in registry.entries(LAYERS):
        if entry.name == _entry_name(key):
            plugin = registry.load(entry, _named_plugin(entry.name))
            if plugin is None:
                broken.append(owner_of(entry))
            elif plugin.key == key:
                found.append((owner_of(entry), plugin))
    return found, broken


def _brought_by_hooks() -> Owners:
    """The plugins that hooks bring, asked for once; what is none is recorded."""
    if LAYERS not in registry.answers:
        found: Owners = []
        for owned in facade.registered_layers():
            if isinstance(owned.value, OnnxOperator):
                continue
            try:
                plugin_table.check_layer_plugin(owned.value)
            except PluginError as error:
                facade.fail(owned, str(error))
            else:
                found.append((owned.owner, owned.value))
        registry.answers[LAYERS] = found
    known: Owners = registry.answers[LAYERS]
    return known


def _entry_name(key: PluginKey) -> str:
    name, _, namespace = key
    return f"{namespace}::{name}" if namespace else name


def _named_plugin(entry_name: str) -> Callable[[Any], LayerPlugin]:
    """The function that makes the plugin of an entry point from what it names."""

    def prepare(loaded: Any) -> LayerPlugin:
        plugin = loaded() if isinstance(loaded, type) and issubclass(loaded, LayerPlugin) else loaded
        plugin_table.check_layer_plugin(plugin)
        if _entry_name(plugin.key) != entry_name:
            raise PluginError(
                "A layer plugin must have the name of its entry point",
                found=repr(_entry_name(plugin.key)),
                allowed=repr(entry_name),
                remedy="Rename the entry point or the layer plugin",
            )
        return plugin  # type: ignore[no-any-return]

    return prepare
