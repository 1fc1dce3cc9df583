"""Layers that no output depends on are removed."""

from __future__ import annotations

from dryfit.network.network import Network
from dryfit.passes.pipeline import network_pass
from dryfit.reference.executor import needed_layers


@network_pass("remove-dead-layers")
def remove_dead_layers(network: Network) -> bool:
    """Remove every layer that no output depends on. Inputs stay, also those that nothing uses."""
    if not network.outputs:
        return False
    needed = {id(layer) for layer in needed_layers(network)}
    dead = [layer for layer in network.layers if id(layer) not in needed]
    network.remove_layers(dead)
    return bool(dead)
