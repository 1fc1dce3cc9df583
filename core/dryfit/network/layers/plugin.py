"""Plugin: a layer whose meaning comes from a layer plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import attrs
import numpy as np

from dryfit.errors import DryfitError, PluginError
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec

FieldValue = bool | int | float | str | tuple[Any, ...] | np.ndarray[Any, Any]
"""What a plugin field can hold; tuples hold bools, numbers, strings or tuples."""
Fields = Mapping[str, FieldValue]


@runtime_checkable
class LayerPlugin(Protocol):
    """What a layer plugin answers: its outputs' shapes and types, and their contents.

    A plugin has no state: what differs from layer to layer stands in `fields`.
    """

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """Shapes and types of the outputs; -1 for an extent that is dynamic or depends on the data.

        Args:
            fields: the layer's parameters.
            inputs: specs, None where an optional input is absent.

        Raises:
            ValueError: fields and inputs do not fit together. The text says why; the layer's name is added to it.
        """
        ...

    def enqueue(self, fields: Fields, inputs: Sequence[np.ndarray[Any, Any] | None]) -> Sequence[np.ndarray[Any, Any]]:
        """The outputs as arrays of the types that `output_specs` says. The inputs are not changed.

        Args:
            fields: the layer's parameters.
            inputs: arrays, None where an optional input is absent.
        """
        ...


PluginKey = tuple[str, str, str]
"""(name, version, namespace)."""

_PLUGINS: dict[PluginKey, LayerPlugin] = {}

find_layer_plugin: Callable[[str, str, str], LayerPlugin | None] | None = None
"""Asked for a plugin that is not registered; whoever discovers installed plugins points it at its loader."""


def register_layer_plugin(name: str, plugin: LayerPlugin, *, version: str = "1", namespace: str = "") -> None:
    """Make a plugin available to the layers that name it.

    Raises:
        PluginError: another plugin has this name, version and namespace, or it is no layer plugin.
    """
    key = (name, version, namespace)
    if not isinstance(plugin, LayerPlugin):
        raise PluginError(
            "The object is no layer plugin",
            where=f"layer plugin {_written(key)}",
            found=type(plugin).__name__,
            allowed="an object with the methods output_specs and enqueue",
        )
    if _PLUGINS.get(key, plugin) is not plugin:
        raise PluginError("Two layer plugins have one name", where=f"layer plugin {_written(key)}", found=plugin)
    _PLUGINS[key] = plugin


def layer_plugin(name: str, version: str = "1", namespace: str = "") -> LayerPlugin:
    """The plugin of this name, registered or found.

    Raises:
        PluginError: there is none; says which there are.
    """
    key = (name, version, namespace)
    if key not in _PLUGINS and find_layer_plugin is not None:
        found = find_layer_plugin(name, version, namespace)
        if found is not None:
            register_layer_plugin(name, found, version=version, namespace=namespace)
    if key not in _PLUGINS:
        raise PluginError(
            "There is no such layer plugin",
            found=_written(key),
            allowed=", ".join(_written(known) for known in sorted(_PLUGINS)) or "none is registered",
            remedy="Install the package that brings it, or call register_layer_plugin",
        )
    return _PLUGINS[key]


def _written(key: PluginKey) -> str:
    name, version, namespace = key
    return f"{namespace}::{name} version {version}" if namespace else f"{name} version {version}"


@layer_kind("plugin", "PLUGIN_V3")
class Plugin(Layer):
    """A layer that a layer plugin defines.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: which plugin.
        fields: the parameters that it gets, by name.

    Source: TensorRT `IPluginV3Layer`.
    """

    plugin_name: str
    plugin_version: str = "1"
    plugin_namespace: str = ""
    fields: dict[str, FieldValue] = attrs.field(factory=dict)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """What the plugin says."""
        plugin = self.implementation()
        try:
            specs = list(plugin.output_specs(self.fields, inputs))
        except DryfitError:
            raise
        except Exception as error:  # a plugin is foreign code: whatever it raises is told with the layer's name
            raise self.problem(f"The plugin refuses the layer: {error or type(error).__name__}") from error
        if not all(isinstance(spec, TensorSpec) for spec in specs):
            raise self.problem("The plugin's `output_specs` returns tensor specs", found=specs)
        return specs

    def implementation(self) -> LayerPlugin:
        """The plugin.

        Raises:
            PluginError: it is not installed.
        """
        try:
            return layer_plugin(self.plugin_name, self.plugin_version, self.plugin_namespace)
        except PluginError as error:
            raise PluginError(
                error.message,
                where=f"layer {self.name!r}",
                found=error.found,
                allowed=error.allowed,
                remedy=error.remedy,
            ) from error


class AddPlugin:
    """The builder method of plugin layers."""

    def add_plugin(
        self: LayerOwner,
        inputs: Sequence[Tensor | None],
        plugin_name: str,
        fields: Fields | None = None,
        *,
        plugin_version: str = "1",
        plugin_namespace: str = "",
    ) -> Plugin:
        """Add a layer that a plugin defines.

        Args:
            inputs: None where an optional input is absent.
            plugin_name: of the plugin.
            fields: its parameters.
            plugin_version: of the plugin.
            plugin_namespace: of the plugin.

        Raises:
            PluginError: there is no such plugin.
            NetworkError: it refuses the inputs or the fields.
        """
        layer = Plugin(
            plugin_name=plugin_name,
            plugin_version=plugin_version,
            plugin_namespace=plugin_namespace,
            fields=dict(fields or {}),
        )
        return self.add_layer(layer, inputs)
