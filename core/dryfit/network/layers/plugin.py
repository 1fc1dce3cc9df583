"""Plugin: a layer whose meaning comes from a layer plugin."""

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
    """A layer that a layer plugin defines.

    Attributes:
        plugin_name, plugin_version, plugin_namespace: which plugin.
        fields: the parameters that it gets, by name.

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
        """What the plugin says."""
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
        """The plugin.

        Raises:
            PluginError: there is none of this name, or it cannot be used.
        """
        return get_plugin(self.key, self.where)

    def complete_fields(self) -> Fields:
        """The fields as the plugin declares them, defaults included.

        Raises:
            PluginError: there is no such plugin.
            UnknownNameError: it has no such field.
            NetworkError: a field is missing, or of another type.
        """
        return complete_fields(self.implementation(), self.fields, self.where)

    def fields_to_save(self) -> Fields:
        """The fields that an engine file keeps: those that the plugin chooses, or all where it is not there to ask.

        Raises:
            PluginError: the plugin is installed and cannot be used.
            NetworkError: it chooses what no file can hold, or fails.
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
        """Add a layer that a plugin defines.

        Args:
            inputs: None where an optional input is absent.
            plugin: the plugin, which is registered with it, or its name.
            fields: its parameters.
            plugin_version: of the plugin; only with a name.
            plugin_namespace: of the plugin; only with a name.

        Raises:
            PluginError: there is no such plugin, or another has its name.
            NetworkError: it refuses the inputs or the fields.
            UnknownNameError: it has no such field.
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
        """TensorRT's name for `add_plugin`; here, shape inputs are inputs like the others, and come last.

        Raises:
            PluginError: another plugin has its name.
            NetworkError: it refuses the inputs or the fields.
            UnknownNameError: it has no such field.
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
        PluginError: it is no layer plugin, or another has its name.
    """
    check_layer_plugin(plugin)
    register_layer_plugin(plugin)
    return plugin.key
