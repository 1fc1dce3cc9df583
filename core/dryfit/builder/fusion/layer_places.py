"""Where each layer of the engine's network runs, the casts between types among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from dryfit.builder.fusion.groups import LayerPlace
from dryfit.builder.fusion.lowering import LoweredNetwork
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.precision.chosen import Precisions
from dryfit.network.layer import Layer
from dryfit.plugins import registry


def layer_places(
    roles: Mapping[str, LayerRole], partition: Partition, precisions: Precisions, caller: str, lowered: LoweredNetwork
) -> dict[str, LayerPlace]:
    """Layer name to place, for all layers but constants, which are nowhere.

    Args:
        roles: layer name to role.
        partition: segments, each on a device.
        precisions: computation types.
        caller: device that makes copies between segments.
        lowered: the engine's network.
    """
    host = registry.host().device
    places: dict[str, LayerPlace] = {}
    for layer in lowered.network.layers:
        role = roles.get(layer.name)
        if layer.kind == "constant" or role is LayerRole.CONSTANT:
            continue
        dtype = layer.outputs[0].dtype
        if layer.name in lowered.owners:
            continue
        if layer.name in lowered.reformats:
            places[layer.name] = LayerPlace(caller, -1, dtype)
        elif role is LayerRole.SHAPE:
            places[layer.name] = LayerPlace(host, -1, dtype, LayerRole.SHAPE)
        else:
            segment = partition.segments[layer.name]
            places[layer.name] = LayerPlace(partition.runs[segment].device, segment, precisions.layers[layer.name])
    places.update((name, places[owner]) for name, owner in lowered.owners.items())
    for layer in lowered.network.layers:
        if layer.name in lowered.reformats and layer.name not in lowered.owners:
            inner = _only_segment(layer, places) or _compiled_segment(layer, places, lowered)
            if inner is not None:
                places[layer.name] = attrs.evolve(places[layer.name], device=inner.device, segment=inner.segment)
    return places


def _only_segment(cast: Layer, places: dict[str, LayerPlace]) -> LayerPlace | None:
    """The place around a change of type inside a segment: it is that segment's own work."""
    source = cast.inputs[0].producer if cast.inputs[0] is not None else None
    around = [places[source.name] if source is not None else None]
    around += [places[reader.name] for reader, _ in cast.outputs[0].consumers]
    segments = {place.segment if place is not None else -1 for place in around}
    is_inside = len(segments) == 1 and -1 not in segments and not cast.outputs[0].is_network_output
    return around[0] if is_inside else None


def _compiled_segment(cast: Layer, places: dict[str, LayerPlace], lowered: LoweredNetwork) -> LayerPlace | None:
    """The place of a compiled segment that a cast leaves and comes back to, with others reading it too.

    Such a segment runs as one operation, so nothing can run between two of its layers.
    """
    source = cast
    while source.name in lowered.reformats:
        before = source.inputs[0].producer if source.inputs[0] is not None else None
        if before is None:
            return None
        source = before
    place = places.get(source.name)
    if place is None or place.segment < 0 or registry.target(place.device).compile_segment_at is None:
        return None
    comes_back = any(places[reader.name].segment == place.segment for reader in _readers(cast, lowered))
    return place if comes_back else None


def _readers(cast: Layer, lowered: LoweredNetwork) -> Iterator[Layer]:
    """The layers that read a cast, or a cast of it, and are no casts between types themselves."""
    for reader, _ in cast.outputs[0].consumers:
        if reader.name in lowered.reformats:
            yield from _readers(reader, lowered)
        else:
            yield reader
