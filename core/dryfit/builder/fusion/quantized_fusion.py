"""What dequantizations mean for fusing: they are repeated in groups, and left out where nobody reads what they give.

A group that sums products may give real numbers. Every other one has to end quantized, or it is none: its layers then
read real numbers, which dequantizations of their own give.

Source: TensorRT, Working with Quantized Types, Q/DQ Layer-Placement Recommendations: non-weighted layers with INT8
inputs also require INT8 outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup, is_repeatable


def dequantizations_before(layer: Layer) -> list[Layer]:
    """The dequantizations that a layer reads through, each once, in the order of its inputs.

    Where a scale is dequantized itself, that comes first.
    """
    found: dict[str, Layer] = {}
    for tensor in layer.inputs:
        producer = None if tensor is None else tensor.producer
        if producer is not None and is_repeatable(producer):
            found |= {one.name: one for one in (*dequantizations_before(producer), producer)}
    return list(found.values())


def quantized_type(group: LayerGroup) -> DataType | None:
    """The type of the activations that a group's main layer reads quantized; None where only weights are."""
    for tensor in group.main.inputs:
        producer = None if tensor is None else tensor.producer
        source = producer.inputs[0] if producer in group.prologue and producer is not None else None
        if source is not None and not source.is_constant:
            return source.dtype
    return None


def may_end(group: LayerGroup) -> bool:
    """Whether a quantized group of an explicitly quantized network is whole with the layers that it has."""
    return group.main.sums_products or group.layers[-1].kind == "quantize"


def sources_of_its_own(group: LayerGroup, outputs: Collection[str]) -> list[Tensor]:
    """The quantized tensors that only this group reads, what is ready last first.

    Args:
        group: holds dequantizations.
        outputs: names of the network's outputs, which the caller reads.
    """
    inside = {layer.name for layer in group.layers}
    found: dict[str, Tensor] = {}
    for layer in group.layers:
        source = layer.inputs[0] if is_repeatable(layer) else None
        if source is None or source.producer is None:
            continue
        stored = {source.name, *(tensor.name for tensor in layer.outputs)} & set(outputs)
        if not stored and _readers(source) == {layer.name} and _readers(layer.outputs[0]) <= inside:
            found[source.name] = source
    return sorted(found.values(), key=lambda tensor: -(tensor.producer.index if tensor.producer is not None else 0))


def needed(groups: Sequence[LayerGroup], outputs: Collection[str]) -> list[int]:
    """Indices of the groups that have to run: all but dequantizations that every reader does for itself.

    Args:
        groups: all groups of a network.
        outputs: names of the network's outputs.
    """
    absorbed = {
        (layer.name, reader.name)
        for group in groups
        if len(group.layers) > 1
        for layer in group.layers
        if is_repeatable(layer)
        for reader in group.layers
    }

    running: set[str] = set()

    def has_to_run(group: LayerGroup) -> bool:
        """To be asked of the last group first: what a dequantization reads may be dequantized too."""
        if len(group.layers) > 1 or not is_repeatable(group.main):
            return True
        given, name = group.outputs[0], group.main.name
        readers = _readers(given)
        is_read = any(one in running or (name, one) not in absorbed for one in readers)
        if given.name in outputs or not readers or is_read:
            running.add(name)
            return True
        return False

    order = sorted(range(len(groups)), key=lambda index: -(groups[index].main.index or 0))
    return sorted(index for index in order if has_to_run(groups[index]))


def _readers(tensor: Tensor) -> set[str]:
    return {consumer.name for consumer, _ in tensor.consumers}
