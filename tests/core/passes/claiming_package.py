"""A stranger's package that computes quantized sums: a layer plugin, and the hook that claims groups for it."""

ACME = """
import numpy as np
from dryfit import hookimpl
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.layers.plugin import Plugin
from dryfit.network.tensor import TensorSpec
from dryfit.plugins.contributions import GroupClaim


class Sum(LayerPlugin):
    plugin_name, plugin_namespace, takes_quantized = "Sum", "acme", True

    def output_specs(self, fields, inputs):
        if inputs[0].shape[1] == 5:
            raise ValueError("5 channels are too odd")
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def enqueue(self, fields, inputs):
        a, b = inputs
        if a.dtype != np.int8:
            return [a + b]
        (a_scale, b_scale), (y_scale,) = fields["input_scales"], fields["output_scales"]
        total = a.astype(np.int32) * (a_scale / y_scale) + b.astype(np.int32) * (b_scale / y_scale)
        return [np.clip(np.rint(total), -128, 127).astype(np.int8)]
"""

CLAIMING = """

@hookimpl
def claim_quantized_group(group):
    if group.layer.kind != "elementwise":
        return None
    scales = {"input_scales": tuple(group.input_scales), "output_scales": tuple(group.output_scales)}
    layer = Plugin(plugin_name="Sum", plugin_namespace="acme", fields=scales)
    return GroupClaim(layer, "sums integers")
"""

ENTRIES = {"dryfit.hooks": {"acme": "acme"}, "dryfit.layers": {"acme::Sum": "acme:Sum"}}
