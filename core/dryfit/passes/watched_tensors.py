"""What runs watch besides the outputs: debug tensors, and conditions of assertions.

They become outputs of the engine's network, which nothing fuses or removes. Callers do not get them with the other
outputs: a context hands debug tensors to its listener, and checks conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError
from dryfit.network.copying import copy_network
from dryfit.network.layers.assertion import Assertion, AssertionRecord
from dryfit.network.layers.attention import KVCacheUpdate
from dryfit.network.network import Network


@frozen(eq=False)
class WatchedNetwork:
    """A network without assertions, whose outputs include what runs watch.

    Attributes:
        network: a copy of the user's; the user's own if it has nothing to check or debug.
        assertions: conditions that each run must satisfy.
        debug_tensors: names of the tensors marked as debug tensors.
        hidden_outputs: names of the outputs that the user's network does not have.
        aliased_inputs: name of each output that is an updated cache, to that of the input that is the cache.
    """

    network: Network
    assertions: Sequence[AssertionRecord] = ()
    debug_tensors: Sequence[str] = ()
    hidden_outputs: Sequence[str] = ()
    aliased_inputs: Mapping[str, str] = attrs.field(factory=dict)


def watched(network: Network) -> WatchedNetwork:
    """Return a network whose debug tensors and conditions of assertions are outputs."""
    aliased_inputs = {
        layer.outputs[0].name: layer.connected_input(0).name
        for layer in network.layers
        if isinstance(layer, KVCacheUpdate)
        and layer.outputs[0].is_network_output
        and layer.connected_input(0).is_network_input
    }
    assertions = [
        AssertionRecord(layer.name, layer.message, layer.connected_input(0).name)
        for layer in network.layers
        if isinstance(layer, Assertion)
    ]
    debug_tensors = [tensor.name for tensor in network.debug_tensors]
    if not assertions and not debug_tensors:
        return WatchedNetwork(network, aliased_inputs=aliased_inputs)
    copy = copy_network(network)
    copy.remove_layers([layer for layer in copy.layers if isinstance(layer, Assertion)])
    hidden = []
    for name in dict.fromkeys([*debug_tensors, *(one.condition for one in assertions)]):
        tensor = copy.tensor(name)
        if not tensor.is_network_input and not tensor.is_network_output:
            copy.mark_output(tensor)
            hidden.append(name)
    return WatchedNetwork(copy, assertions, debug_tensors, hidden, aliased_inputs)


def without_known_assertions(found: WatchedNetwork, network: Network) -> WatchedNetwork:
    """Return the findings without assertions that are known to hold.

    Args:
        found: what `watched` returned.
        network: its network, with everything computed that is known before a run.

    Raises:
        NetworkError: A condition is known to be false.
    """
    left, hidden = [], list(found.hidden_outputs)
    for one in found.assertions:
        tensor = network.tensor(one.condition)
        value = tensor.spec.value
        if value is None:
            left.append(one)
        elif not value.all():
            raise NetworkError(
                f"Assertion failed: {one.message}",
                where=f"layer {one.layer!r} (assertion)",
                found="a condition that is false for every input",
                remedy="Change the network, or its shapes, so that the condition holds",
            )
    needed = {*found.debug_tensors, *(one.condition for one in left)}
    for name in [name for name in hidden if name not in needed]:
        hidden.remove(name)
        network.unmark_output(network.tensor(name))
    return attrs.evolve(found, assertions=left, hidden_outputs=hidden)
