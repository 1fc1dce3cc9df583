"""Layer plugins of installed packages, loaded when a layer first asks for one.

An entry point in the group `dryfit.layers` names a layer plugin, or a class of layer plugins that takes no arguments.
The entry point's name is the plugin's, `Name` or `namespace::Name`. A plugin that no entry point names may come from
the hook `register_layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from dryfit.errors import PluginError
from dryfit.network import plugin_table
from dryfit.network.layer_plugin import LayerPlugin, PluginKey, plugin_title
from dryfit.plugins import facade, registry
from dryfit.plugins.contributions import OnnxOperator
from dryfit.plugins.discovery import PluginOwner, owner_of
from dryfit.plugins.switches import CHOOSE_ONE

Owners = list[tuple[PluginOwner, LayerPlugin]]


def connect() -> None:
    """Let layers find installed plugins: from now on one that is not registered is looked for here."""
    if not isinstance(plugin_table.installed, InstalledLayerPlugins):
        plugin_table.installed = InstalledLayerPlugins()


def layer_plugin_package(key: PluginKey) -> str:
    """`distribution version` of the package that brings a plugin; "" for one that a program registered itself.

    Raises:
        PluginError: two packages bring it, or the one that does is broken.
    """
    return InstalledLayerPlugins().package(key)


class InstalledLayerPlugins:
    """The layer plugins of installed packages.

    Args:
        plugins: where packages are read; the installed ones by default.
    """

    def __init__(self, plugins: registry.PluginRegistry | None = None) -> None:
        self._given = plugins

    def find(self, key: PluginKey) -> LayerPlugin | None:
        """The plugin of this name, loaded; None where no package brings it. No other plugin is loaded.

        Raises:
            PluginError: it is broken, or two packages bring it.
        """
        owned = self._owned(key)
        return owned[1] if owned is not None else None

    def package(self, key: PluginKey) -> str:
        """`distribution version` of the package that brings a plugin; "" where none does.

        Raises:
            PluginError: two packages bring it, or the one that does is broken.
        """
        owned = self._owned(key)
        return owned[0].package if owned is not None else ""

    def titles(self) -> Sequence[str]:
        """The names of all plugins that packages bring, sorted; of those of hooks, with their versions."""
        named = {entry.name for entry in self._plugins.entries(registry.LAYERS)}
        return sorted(named | {plugin_title(plugin.key) for _, plugin in _brought_by_hooks(self._plugins)})

    def reason(self, key: PluginKey) -> str:
        """Why a plugin is not found though a package brings one of its name; "" where none does."""
        for entry in self._plugins.all_entries(registry.LAYERS):
            owner = owner_of(entry)
            if entry.name == _entry_name(key):
                switched_off = self._plugins.switches.reason(owner)
                return f"{owner} is switched off: {switched_off}" if switched_off else f"{owner} has another version"
        return ""

    @property
    def _plugins(self) -> registry.PluginRegistry:
        return registry.installed() if self._given is None else self._given

    def _owned(self, key: PluginKey) -> tuple[PluginOwner, LayerPlugin] | None:
        """A plugin and who brings it: a package's entry point, or else a hook; dryfit's own before a stranger's."""
        found, broken = self._named(key)
        if not found and not broken:
            found = [(owner, plugin) for owner, plugin in _brought_by_hooks(self._plugins) if plugin.key == key]
        found = [one for one in found if not one[0].is_foreign] or found
        if len(found) > 1:
            raise PluginError(
                f"The layer plugin {plugin_title(key)} is brought by more than one package",
                found=", ".join(str(owner) for owner, _ in found),
                remedy=CHOOSE_ONE,
            )
        if not found and broken:
            raise self._plugins.failure(broken[0]).error(f"The layer plugin {plugin_title(key)} could not be loaded")
        return found[0] if found else None

    def _named(self, key: PluginKey) -> tuple[Owners, list[PluginOwner]]:
        """The plugins of this name that entry points name, and the entry points of this name that are broken."""
        found: Owners = []
        broken: list[PluginOwner] = []
        for entry in self._plugins.entries(registry.LAYERS):
            if entry.name == _entry_name(key):
                plugin = self._plugins.load(entry, _named_plugin(entry.name))
                if plugin is None:
                    broken.append(owner_of(entry))
                elif plugin.key == key:
                    found.append((owner_of(entry), plugin))
        return found, broken


@lru_cache(maxsize=8)
def _brought_by_hooks(plugins: registry.PluginRegistry) -> Owners:
    """The plugins that hooks bring, asked for once; what is none is recorded."""
    found: Owners = []
    for owned in facade.registered_layers(plugins):
        if isinstance(owned.value, OnnxOperator):
            continue
        try:
            plugin_table.check_layer_plugin(owned.value)
        except PluginError as error:
            facade.fail(owned, str(error), plugins=plugins)
        else:
            found.append((owned.owner, owned.value))
    return found


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
                "A layer plugin has its entry point's name",
                found=repr(_entry_name(plugin.key)),
                allowed=repr(entry_name),
            )
        return plugin  # type: ignore[no-any-return]

    return prepare
