"""Which quantize method each layer of a network has."""

from __future__ import annotations

from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.method import QuantizeMethod

NONE = "none"
"""The name that says: no method, whatever else is said."""


def chosen_method(layer: Layer) -> str:
    """The name of the method of a layer of a network: its own, or else the network's; "" for none."""
    name: str = layer.quantize_method or layer.network.quantize_method
    return "" if name == NONE else name


def asks_itself(layer: Layer) -> bool:
    """Whether a layer names a method of its own."""
    return layer.quantize_method not in ("", NONE)


def chosen_methods(network: Network) -> dict[str, QuantizeMethod]:
    """The methods that are named in a network, each loaded once.

    Raises:
        UnknownNameError: no installed package brings a method; names the layer that asks for it.
        PluginError: a method cannot be loaded.
    """
    found: dict[str, QuantizeMethod] = {}
    if network.quantize_method not in ("", NONE):
        where = f"network {network.name!r}, quantize_method"
        found[network.quantize_method] = quantize_method(network.quantize_method, where=where)
    for layer in network.layers:
        name = layer.quantize_method
        if asks_itself(layer) and name not in found:
            found[name] = quantize_method(name, where=f"{layer.where}, quantize_method")
    return found
