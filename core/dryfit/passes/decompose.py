"""The network that a build starts from: composite layers replaced by their parts, and what runs must also compute.

Debug tensors and the conditions of assertions become outputs of the engine's network, which nothing fuses or removes.
Callers do not get them with the other outputs: a context hands debug tensors to its listener, and checks conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.errors import NetworkError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_tensor_notes
from dryfit.network.layers.assertion import Assertion, AssertionRecord
from dryfit.network.layers.attention import KVCacheUpdate
from dryfit.network.layers.composite import CompositeLayer, Parts
from dryfit.network.network import Network


@attrs.frozen(eq=False)
class DecomposedNetwork:
    """A network without composite layers and assertions.

    Attributes:
        network: a copy of the user's; the user's own if it has nothing to decompose, check or debug.
        origins: name of each layer that is part of a composite one, to the name of that layer.
        assertions: conditions that each run must satisfy.
        debug_tensors: names of the tensors marked as debug tensors.
        hidden_outputs: names of the outputs that the user's network does not have.
        aliased_inputs: name of each output that is an updated cache, to that of the input that is the cache.
    """

    network: Network
    origins: Mapping[str, str] = attrs.field(factory=dict)
    assertions: Sequence[AssertionRecord] = ()
    debug_tensors: Sequence[str] = ()
    hidden_outputs: Sequence[str] = ()
    aliased_inputs: Mapping[str, str] = attrs.field(factory=dict)


def decomposed(network: Network) -> DecomposedNetwork:
    """Decompose a network. The layer that computes the result of a composite layer takes its name.

    Raises:
        NetworkError: A layer's parameters do not match its inputs.
    """
    is_plain = not any(isinstance(layer, (CompositeLayer, Assertion)) for layer in network.layers)
    if is_plain and not network.debug_tensors:
        return DecomposedNetwork(network)
    copy = copy_network(network)
    aliased_inputs = {
        layer.outputs[0].name: layer.connected_input(0).name
        for layer in copy.layers
        if isinstance(layer, KVCacheUpdate)
        and layer.outputs[0].is_network_output
        and layer.connected_input(0).is_network_input
    }
    origins = _replace_composites(copy)
    assertions = [
        AssertionRecord(layer.name, layer.message, layer.connected_input(0).name)
        for layer in copy.layers
        if isinstance(layer, Assertion)
    ]
    copy.remove_layers([layer for layer in copy.layers if isinstance(layer, Assertion)])
    copy.sort()
    debug_tensors = [tensor.name for tensor in network.debug_tensors]
    hidden = []
    for name in dict.fromkeys([*debug_tensors, *(one.condition for one in assertions)]):
        tensor = copy.tensor(name)
        if not tensor.is_network_input and not tensor.is_network_output:
            copy.mark_output(tensor)
            hidden.append(name)
    return DecomposedNetwork(copy, origins, assertions, debug_tensors, hidden, aliased_inputs)


def _replace_composites(network: Network) -> dict[str, str]:
    """Put the parts of composite layers in their places; returns the name of each part, with that of its layer."""
    # All parts are added before any layer goes, as each change makes the shapes behind it stale.
    found = [_Decomposition(layer) for layer in list(network.layers) if isinstance(layer, CompositeLayer)]
    for one in found:
        for old, new in zip(one.layer.outputs, one.results, strict=True):
            network.replace_uses(old, new)
            copy_tensor_notes(old, new)
            new.io_dtype = old.io_dtype
            if network.is_debug_tensor(old):
                network.mark_debug(new)
    network.remove_layers([one.layer for one in found])
    for one in found:
        one.take_names(network)
    return {added.name: one.layer.name for one in found for _, added in one.parts.added}


class _Decomposition:
    """A composite layer and the parts that were added for it."""

    def __init__(self, layer: CompositeLayer) -> None:
        self.layer = layer
        self.parts = Parts(layer)
        self.results = layer.decompose(self.parts)

    def take_names(self, network: Network) -> None:
        """Give the parts the names and the settings of the layer, which is removed."""
        layer = self.layer
        for old, new in zip(layer.outputs, self.results, strict=True):
            network.rename_tensor(new, old.name)
        for part, added in self.parts.added:
            if not part:
                network.rename_layer(added, layer.name)
            added.metadata, added.onnx_nodes = layer.metadata, layer.onnx_nodes
            added.quantize_method = layer.quantize_method
            if layer.precision is not None and _is_computed(added):
                added.precision = layer.precision
        for index, dtype in layer.output_types.items():
            new = self.results[index]
            if new.producer is not None:
                new.producer.set_output_type(new.output_index, dtype)


def _is_computed(layer: Layer) -> bool:
    """Whether a precision that was set on a composite layer is meant for a part."""
    is_real = all(tensor.dtype.is_floating_point for tensor in (*layer.connected_inputs, *layer.outputs))
    return is_real and not layer.has_fixed_types and layer.kind != "constant" and layer.outputs[0].dtype in _COMPUTED


_COMPUTED = (DataType.FLOAT, DataType.HALF, DataType.BF16)


def without_known_assertions(found: DecomposedNetwork, network: Network) -> DecomposedNetwork:
    """Return the findings without assertions that are known to hold.

    Args:
        found: what `decomposed` returned.
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
