"""Layers take the places of quantized groups, all in one sweep over the network."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.copying import copy_tensor_notes, note_origin
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.quantization.quantized_group import QuantizedGroup


def replace_groups(network: Network, replacements: Sequence[tuple[QuantizedGroup, Layer]]) -> list[list[Layer]]:
    """Let layers read the quantized inputs of groups and give their quantized outputs.

    Each takes over the name of its group's layer, so that what the user said of that one still holds, the names of the
    quantized outputs, and the ONNX nodes of all that went. A dequantization that others read stays. The order of layers
    is right again when shapes are refreshed. Takes time linear in layers, however many groups there are.

    Args:
        network: of the groups.
        replacements: groups of the network as it is now, in its order, and for each a layer that is in no network and
            whose outputs are like the group's.

    Returns:
        For each group the layers that went, the group's own first.
    """
    # They are read before anything changes, so that nothing is inferred again for each group.
    specs = [[tensor.spec for tensor in group.outputs] for group, _ in replacements]
    added = [_put_in_place(network, *one, given) for one, given in zip(replacements, specs, strict=True)]
    gone = [_members(group) for group, _ in replacements]
    for new, old in zip(added, gone, strict=True):
        note_origin(new, *old)
    network.remove_layers([layer for members in gone for layer in members])
    # Names are free only now.
    for (group, _), new in zip(replacements, added, strict=True):
        network.rename_layer(new, group.layer.name)
        for output, quantized in zip(new.outputs, group.outputs, strict=True):
            network.rename_tensor(output, quantized.name)
    return gone


def _put_in_place(network: Network, group: QuantizedGroup, layer: Layer, specs: Sequence[TensorSpec]) -> Layer:
    """Add a layer behind a group's inputs, and let it give what the group gives."""
    added = network.add_layer(layer, group.inputs, specs)
    for output, quantized, real in zip(added.outputs, group.outputs, group.real_outputs, strict=True):
        copy_tensor_notes(quantized, output)
        for quantize, _ in real.consumers:
            network.replace_uses(quantize.outputs[0], output)
    return added


def _members(group: QuantizedGroup) -> list[Layer]:
    """The layers that go with a group: all but dequantizations that others read."""
    quantizes = [quantize for real in group.real_outputs for quantize, _ in real.consumers]
    activation = [] if group.activation is None else [group.activation]
    return [group.layer, *activation, *quantizes, *group.private_dequantizes]
