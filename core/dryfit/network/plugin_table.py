"""The layer plugins of this process, by name, version and namespace."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from dryfit.errors import PluginError
from dryfit.network.installed_packages import installed_packages
from dryfit.network.layer_plugin import LayerPlugin, PluginKey, plugin_title

_REGISTERED: dict[PluginKey, LayerPlugin] = {}


def register_layer_plugin(plugin: LayerPlugin) -> None:
    """Register a plugin for the layers, ONNX nodes and engines that name it.

    Installed packages declare their plugins with an entry point instead, and are loaded on demand. Plugins are
    stateless, so another instance of the same class is the same plugin. If a class or function is defined again in the
    same place, as in a notebook, the latest definition is used.

    Raises:
        PluginError: Another plugin has this name, version and namespace, or the object is not a layer plugin.
    """
    check_layer_plugin(plugin)
    other = _REGISTERED.get(plugin.key, plugin)
    if _origin(other) != _origin(plugin):
        raise PluginError(
            "Layer plugin names must be unique",
            where=f"layer plugin {plugin_title(plugin.key)}",
            found=f"{_origin(other)} and {_origin(plugin)}",
            remedy="Change plugin_name, plugin_version or plugin_namespace of one of them",
        )
    _REGISTERED[plugin.key] = plugin


def check_layer_plugin(plugin: Any) -> None:
    """Raise unless the object is a layer plugin with a name.

    Raises:
        PluginError: The object is not a layer plugin, or has no name.
    """
    if not isinstance(plugin, LayerPlugin):
        raise PluginError(
            "The object is not a layer plugin",
            found=f"{plugin.__module__}.{plugin.__qualname__}" if isinstance(plugin, type) else type(plugin).__name__,
            allowed="an instance of a subclass of dryfit.LayerPlugin, or a function that dryfit.layer_plugin decorates",
            remedy="Derive from dryfit.LayerPlugin, or use the decorator",
        )
    if not plugin.plugin_name or not all(isinstance(part, str) for part in plugin.key):
        raise PluginError(
            "Name, version and namespace of a layer plugin must be strings, and the name must not be empty",
            where=_origin(plugin),
            found=plugin.key,
            remedy="Set plugin_name, plugin_version and plugin_namespace",
        )


def find_plugin(key: PluginKey) -> LayerPlugin | None:
    """Return the registered or installed plugin with this name, or None.

    Raises:
        PluginError: The plugin is installed but cannot be used.
    """
    if key not in _REGISTERED:
        found = installed_packages().layer_plugin(key)
        if found is not None:
            register_layer_plugin(found)
    return _REGISTERED.get(key)


def get_plugin(key: PluginKey, where: str) -> LayerPlugin:
    """Return the registered or installed plugin with this name.

    Raises:
        PluginError: The plugin does not exist, or cannot be used.
    """
    found = find_plugin(key)
    if found is None:
        reason = installed_packages().why_no_layer_plugin(key)
        raise PluginError(
            "Unknown layer plugin",
            where=where,
            found=f"{plugin_title(key)}; {reason}" if reason else plugin_title(key),
            allowed=", ".join(known_plugins()) or "none registered or installed",
            remedy=f"{likely_meant(key)}Install the package that provides it, or call register_layer_plugin",
        )
    return found


def known_plugins() -> list[str]:
    """Return the names of all registered and installed plugins, sorted. Calls hooks only; loads no plugin."""
    registered = {key: plugin_title(key) for key in _REGISTERED}
    plain = {title.partition(" version ")[0] for title in registered.values()}
    others = installed_packages().layer_plugin_titles()
    return sorted({*registered.values(), *(title for title in others if title not in plain)})


def likely_meant(key: PluginKey) -> str:
    """Return `Did you mean ...? ` if the name resembles that of a plugin, otherwise an empty string."""
    names = {title.partition(" version ")[0]: title for title in known_plugins()}
    lowered = {name.lower(): name for name in names}
    full = plugin_title(key).partition(" version ")[0].lower()
    close = difflib.get_close_matches(full, lowered, n=1, cutoff=0.7)
    return f"Did you mean {names[lowered[close[0]]]}? " if close else ""


def _origin(plugin: LayerPlugin) -> str:
    """Where a plugin was written: its class, or the function that it is made of."""
    return f"{plugin.__module__}.{getattr(plugin, '__qualname__', type(plugin).__qualname__)}"


def installed_layer_plugins() -> Mapping[PluginKey, LayerPlugin]:
    """Return the layer plugins that are registered or installed, by (name, version, namespace).

    Raises:
        PluginError: A plugin is installed but cannot be used.
    """
    found: dict[PluginKey, LayerPlugin] = {}
    for title in known_plugins():
        full, _, version = title.partition(" version ")
        namespace, _, name = full.rpartition("::")
        plugin = find_plugin((name, version or "1", namespace))
        if plugin is not None:
            found[plugin.key] = plugin
    return found
