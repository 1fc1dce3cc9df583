"""Where INT8 pays for layers that sum no products: fewer bytes are moved than conversions around them add.

Layers that sum products are always worth it: their multipliers are what INT8 is for. The others only save bytes. They
are looked at in whole neighbourhoods, because a conversion stands only where a neighbourhood ends.

Source: our choice. TensorRT measures kernels with the reformats around them; bytes are what such layers are bound by.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_steps import is_inside_step

Elements = Callable[[Tensor], int]
"""Number of elements of a tensor."""


def layers_without_benefit(
    layers: Sequence[Layer],
    eligible: Collection[str],
    real_bytes: Mapping[str, int],
    elements: Elements,
    is_exchanged: Callable[[Tensor], bool],
) -> frozenset[str]:
    """Names of the eligible layers for which INT8 does not pay.

    A layer that belongs to the step of one that sums products goes with it.

    Args:
        layers: those that run on devices, in topological order.
        eligible: names of those that could be computed in INT8.
        real_bytes: layer name to the bytes of an element if it is not.
        elements: of a tensor, at the shapes that count.
        is_exchanged: whether a tensor is in INT8 between INT8 layers: real data that is no constant.
    """
    inside = {
        tensor.name
        for layer in layers
        for tensor in layer.outputs
        if layer.name in eligible and is_inside_step(tensor) and tensor.consumers[0][0].name in eligible
    }
    cheap = _cheap(layers, eligible, inside)
    losing: set[str] = set()
    for members in _neighbourhoods(cheap, lambda tensor: tensor.name in inside or is_exchanged(tensor)):
        saved = lost = 0
        for name in members:
            width = real_bytes[name]
            for tensor, others in _connections(cheap[name]):
                # What is inside a step is stored nowhere.
                if tensor.name in inside or not is_exchanged(tensor):
                    continue
                saved += (width - 1) * elements(tensor)
                outside = [other for other in others if other not in members]
                # Without a neighbour it is the caller of the engine, who has real numbers.
                converts = any(other not in eligible for other in outside) or not others
                saves = any(other in eligible for other in outside)
                lost += (width + 1) * elements(tensor) * (int(converts) - int(saves))
        if lost >= saved:
            losing.update(members)
    return frozenset(losing)


def _cheap(layers: Sequence[Layer], eligible: Collection[str], inside: Collection[str]) -> dict[str, Layer]:
    """The eligible layers that neither sum products nor belong to the step of one that does."""
    worthy: set[str] = set()
    for layer in layers:
        sources = [tensor for tensor in layer.inputs if tensor is not None and tensor.name in inside]
        goes_on = any(tensor.producer is not None and tensor.producer.name in worthy for tensor in sources)
        if layer.name in eligible and (layer.sums_products or goes_on):
            worthy.add(layer.name)
    return {layer.name: layer for layer in layers if layer.name in eligible and layer.name not in worthy}


def _connections(layer: Layer) -> Iterator[tuple[Tensor, list[str]]]:
    """The tensors of a layer, each with the layers on its other side."""
    for tensor in dict.fromkeys(tensor for tensor in layer.inputs if tensor is not None):
        yield tensor, [tensor.producer.name] if tensor.producer is not None else []
    for tensor in layer.outputs:
        yield tensor, [reader.name for reader, _ in tensor.consumers]


def _neighbourhoods(layers: Mapping[str, Layer], is_exchanged: Callable[[Tensor], bool]) -> list[set[str]]:
    """The layers in sets that are connected by tensors."""
    found: list[set[str]] = []
    seen: set[str] = set()
    for first in layers:
        if first in seen:
            continue
        members, waiting = set[str](), [first]
        while waiting:
            name = waiting.pop()
            if name in members:
                continue
            members.add(name)
            waiting += [
                other
                for tensor, others in _connections(layers[name])
                if is_exchanged(tensor)
                for other in others
                if other in layers
            ]
        seen |= members
        found.append(members)
    return found
