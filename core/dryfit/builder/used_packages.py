"""Which installed packages an engine takes something from."""

from __future__ import annotations

from collections.abc import Iterable

from dryfit.engine.packages import layer_key, method_key, target_key
from dryfit.engine.plan import Operation
from dryfit.network.layers.plugin import Plugin
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.plugins.layer_plugins import layer_plugin_package
from dryfit.plugins.quantize_methods import quantize_method_package


def used_packages(network: Network, operations: Iterable[Operation]) -> dict[str, str]:
    """`Plan.packages`: each device, plugin layer and quantize method of an engine with its package, sorted.

    A layer plugin that the user registered by hand comes from no package, and is left out.
    """
    found = {target_key(device): registry.target_package(device) for device in {one.device for one in operations}}
    for layer in network.layers:
        if isinstance(layer, Plugin):
            key = (layer.plugin_name, layer.plugin_version, layer.plugin_namespace)
            found[layer_key(*key)] = layer_plugin_package(key)
        elif isinstance(layer, QuantizedOperator):
            found[method_key(layer.method)] = quantize_method_package(layer.method)
    return {what: package for what, package in sorted(found.items()) if package}
