"""One layer takes the place of a quantized group."""

from __future__ import annotations

from dryfit.network.copying import copy_tensor_notes, note_origin
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.quantization.quantized_group import QuantizedGroup


def replace_group(network: Network, group: QuantizedGroup, layer: Layer) -> list[Layer]:
    """Let a layer read the group's quantized inputs and give its quantized outputs; returns the layers that went.

    It takes over the name of the group's layer, so that what the user said of that one still holds, the names of the
    quantized outputs, and the ONNX nodes of all that went. A dequantization that others read stays. The order of layers
    is right again when shapes are refreshed.

    Args:
        network: of the group.
        group: found in the network as it is now.
        layer: in no network; its outputs are like the group's.
    """
    added = network.add_layer(layer, group.inputs)
    gone: list[Layer] = [group.layer]
    for output, quantized, real in zip(added.outputs, group.outputs, group.layer.outputs, strict=True):
        copy_tensor_notes(quantized, output)
        for quantize, _ in list(real.consumers):
            network.replace_uses(quantize.outputs[0], output)
            gone.append(quantize)
    gone += group.private_dequantizes
    note_origin(added, *gone)
    network.remove_layers(gone)
    network.rename_layer(added, group.layer.name)
    for output, quantized in zip(added.outputs, group.outputs, strict=True):
        network.rename_tensor(output, quantized.name)
    return gone
