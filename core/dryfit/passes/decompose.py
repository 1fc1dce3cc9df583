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
    origins: dict[str, str] = {}
    aliased_inputs = {
        layer.outputs[0].name: layer.connected_input(0).name
        for layer in copy.layers
        if isinstance(layer, KVCacheUpdate)
        and layer.outputs[0].is_network_output
        and layer.connected_input(0).is_network_input
    }
    for layer in [one for one in copy.layers if isinstance(one, CompositeLayer)]:
        origins |= _replace(copy, layer)
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


def _replace(network: Network, layer: CompositeLayer) -> dict[str, str]:
    """Put its parts in the place of a layer; returns the names of the parts, each with the layer's own."""
    parts = Parts(layer)
    results = layer.decompose(parts)
    names = [(output.name, output.io_dtype, layer.network.is_debug_tensor(output)) for output in layer.outputs]
    for old, new in zip(layer.outputs, results, strict=True):
        network.replace_uses(old, new)
        copy_tensor_notes(old, new)
    name = layer.name
    network.remove_layer(layer)
    for (output_name, io_dtype, is_debug), new in zip(names, results, strict=True):
        network.rename_tensor(new, output_name)
        new.io_dtype = io_dtype
        if is_debug:
            network.mark_debug(new)
    for part, added in parts.added:
        if not part:
            network.rename_layer(added, name)
        added.metadata, added.onnx_nodes = layer.metadata, layer.onnx_nodes
        added.quantize_method = layer.quantize_method
        if layer.precision is not None and _is_computed(added):
            added.precision = layer.precision
    for index, dtype in layer.output_types.items():
        producer = results[index].producer
        if producer is not None:
            producer.set_output_type(results[index].output_index, dtype)
    return {added.name: name for _, added in parts.added}


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
