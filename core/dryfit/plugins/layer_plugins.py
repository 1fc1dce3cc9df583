"""Layer plugins of installed packages, loaded when a layer first asks for one.

An entry point in the group `dryfit.layers` names a layer plugin: an object with `output_specs` and `enqueue` (see
`dryfit.network.layers.plugin.LayerPlugin`), or a class of such objects that takes no arguments. The entry point's own
name is the plugin's: `Name`, or `namespace::Name`; an attribute `plugin_version` of the object is its version, "1"
without one.
"""

from __future__ import annotations

from typing import Any

from dryfit.errors import PluginError
from dryfit.network.layers import plugin as plugin_layer
from dryfit.network.layers.plugin import LayerPlugin, PluginKey, register_layer_plugin
from dryfit.plugins import registry


def connect() -> None:
    """Let layers find installed plugins: from now on one that is not registered is looked for here."""
    plugin_layer.find_layer_plugin = find_layer_plugin


def find_layer_plugin(
    name: str, version: str, namespace: str, *, plugins: registry.PluginRegistry | None = None
) -> LayerPlugin | None:
    """The installed plugin of this name, or None where no package brings it.

    Args:
        name: the plugin's name.
        version: the version that the layer asks for.
        namespace: the plugin's namespace; "" for none.
        plugins: where entry points are read; the installed packages by default.

    Raises:
        PluginError: the package that brings it is broken.
    """
    plugins = plugins or registry.installed()
    wanted = f"{namespace}::{name}" if namespace else name
    for entry in plugins.entries(registry.LAYERS):
        if entry.name == wanted:
            found = plugins.load(entry, _instance)
            if found is None:
                raise PluginError(
                    "The layer plugin could not be loaded",
                    where=f"entry point {entry.name!r} = {entry.value!r}",
                    found=plugins.failure(entry).message,
                    remedy="Its traceback is kept: see `dryfit.plugins.registry.failures()`",
                )
            if _version(found) == version:
                return found  # type: ignore[no-any-return]
    return None


def load_layer_plugins(plugins: registry.PluginRegistry | None = None) -> list[PluginKey]:
    """Register every installed layer plugin now; returns their (name, version, namespace), sorted.

    A plugin that is broken, or whose name is taken, is left out and recorded in the registry's failures.
    """
    plugins = plugins or registry.installed()
    keys: list[PluginKey] = []
    for entry in plugins.entries(registry.LAYERS):
        found = plugins.load(entry, _instance)
        if found is None:
            continue
        namespace, _, name = entry.name.rpartition("::")
        try:
            register_layer_plugin(name, found, version=_version(found), namespace=namespace)
        except PluginError as error:
            plugins.fail(entry, str(error))
        else:
            keys.append((name, _version(found), namespace))
    return sorted(keys)


def _version(one: Any) -> str:
    return str(getattr(one, "plugin_version", "1"))


def _instance(loaded: Any) -> LayerPlugin:
    """The layer plugin that an entry point names.

    Raises:
        PluginError: it names something else.
    """
    one = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(one, LayerPlugin):
        raise PluginError(
            "The entry point names no layer plugin",
            found=type(one).__name__,
            allowed="an object with the methods output_specs and enqueue",
        )
    return one
