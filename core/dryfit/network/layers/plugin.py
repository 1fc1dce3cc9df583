"""Plugin: a layer that a layer plugin implements."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.errors import DryfitError
from dryfit.network.format_combinations import chosen_combination
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layer_plugin import Fields, FieldValue, LayerPlugin, PluginKey, complete_fields, kept_fields
from dryfit.network.plugin_table import check_layer_plugin, find_plugin, get_plugin, register_layer_plugin
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("plugin", "PLUGIN_V3")
class Plugin(Layer):
    """A layer that a layer plugin implements.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: key of the plugin.
        fields: parameters passed to the plugin, by name.

    Source: TensorRT `IPluginV3Layer`.
    """

    has_fixed_types = True

    plugin_name: str
    plugin_version: str = "1"
    plugin_namespace: str = ""
    fields: dict[str, FieldValue] = attrs.field(factory=dict)

    @property
    def key(self) -> PluginKey:
        """Name, version and namespace of the plugin."""
        return self.plugin_name, self.plugin_version, self.plugin_namespace

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the output specs that the plugin reports."""
        plugin = self.implementation()
        fields = self.complete_fields()
        try:
            specs = list(plugin.output_specs(fields, inputs))
            if all(isinstance(spec, TensorSpec) for spec in specs) and not _may_be_quantized(plugin, inputs):
                chosen_combination(plugin, fields, inputs, ())  # refuses types that it cannot compute with
        except DryfitError as error:
            if error.where is None:
                raise self.problem(
                    error.message, found=error.found, allowed=error.allowed, remedy=error.remedy
                ) from error
            raise
        except Exception as error:  # a plugin is foreign code: whatever it raises is told with the layer's name
            raise self.problem(
                f"The plugin rejected the layer: {error or type(error).__name__}",
                remedy="Change the layer's fields or inputs; if they are correct, report it to the plugin's authors",
            ) from error
        if not all(isinstance(spec, TensorSpec) for spec in specs):
            raise self.problem(
                "The plugin's `output_specs` must return tensor specs",
                found=specs,
                remedy="Fix the plugin, or report it to its authors",
            )
        return specs

    def implementation(self) -> LayerPlugin:
        """Return the plugin.

        Raises:
            PluginError: No plugin has this name, or it cannot be used.
        """
        return get_plugin(self.key, self.where)

    def complete_fields(self) -> Fields:
        """Return the fields as the plugin declares them, including defaults.

        Raises:
            PluginError: The plugin does not exist.
            UnknownNameError: The plugin has no such field.
            NetworkError: A field is missing or has the wrong type.
        """
        return complete_fields(self.implementation(), self.fields, self.where)

    def fields_to_save(self) -> Fields:
        """Return the fields to store in an engine file: those the plugin selects, or all if it is not installed.

        Raises:
            PluginError: The plugin is installed but cannot be used.
            NetworkError: The plugin fails, or selects a value that cannot be stored in a file.
        """
        plugin = find_plugin(self.key)
        if plugin is None:
            return self.fields
        try:
            chosen = plugin.serialized_fields(self.complete_fields())
        except DryfitError:
            raise
        except Exception as error:  # foreign code, as above
            raise self.problem(
                f"The plugin failed in `serialized_fields`: {error or type(error).__name__}",
                remedy="Fix the plugin, or report it to its authors",
            ) from error
        # A field that is None is one that is absent: its default says so again.
        return kept_fields({name: value for name, value in chosen.items() if value is not None}, self.where)


class AddPlugin:
    """The builder methods of plugin layers."""

    def add_plugin(
        self: LayerOwner,
        inputs: Sequence[Tensor | None],
        plugin: str | LayerPlugin,
        fields: Fields | None = None,
        *,
        plugin_version: str = "1",
        plugin_namespace: str = "",
    ) -> Plugin:
        """Add a layer that a plugin implements.

        Args:
            inputs: the layer's inputs; None for an absent optional input.
            plugin: the plugin, which this call also registers, or the name of a registered or installed plugin.
            fields: parameters of the layer.
            plugin_version: version of the plugin; only if `plugin` is a name.
            plugin_namespace: namespace of the plugin; only if `plugin` is a name.

        Raises:
            PluginError: The plugin does not exist, or another plugin has its name.
            NetworkError: The plugin rejects the inputs or the fields.
            UnknownNameError: The plugin has no such field.
        """
        key = (plugin, plugin_version, plugin_namespace) if isinstance(plugin, str) else _registered(plugin)
        return self.add_layer(_plugin_layer(key, fields), inputs)

    def add_plugin_v3(
        self: LayerOwner,
        inputs: Sequence[Tensor | None],
        shape_inputs: Sequence[Tensor],
        plugin: LayerPlugin,
        fields: Fields | None = None,
    ) -> Plugin:
        """Add a plugin layer; TensorRT's `add_plugin_v3`. Shape inputs are ordinary inputs here, and come last.

        Raises:
            PluginError: Another plugin has the same name.
            NetworkError: The plugin rejects the inputs or the fields.
            UnknownNameError: The plugin has no such field.
        """
        return self.add_layer(_plugin_layer(_registered(plugin), fields), [*inputs, *shape_inputs])


def _may_be_quantized(plugin: LayerPlugin, inputs: Inputs) -> bool:
    """Whether the build may still give a plugin quantized tensors, so that its types are not final."""
    return plugin.takes_quantized and not any(spec is not None and spec.dtype.is_quantized for spec in inputs)


def _plugin_layer(key: PluginKey, fields: Fields | None) -> Plugin:
    """A layer that is in no network yet."""
    name, version, namespace = key
    return Plugin(
        plugin_name=name,
        plugin_version=version,
        plugin_namespace=namespace,
        fields=kept_fields(fields or {}, f"a new layer of the plugin {name!r}"),
    )


def _registered(plugin: LayerPlugin) -> PluginKey:
    """The key of a plugin that is given as an object.

    Raises:
        PluginError: The object is not a layer plugin, or another plugin has its name.
    """
    check_layer_plugin(plugin)
    register_layer_plugin(plugin)
    return plugin.key
