"""Groups of layers that run as one: where their layers run, the records of fusing, and the order in which they run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.fusion.lowering import LoweredNetwork
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.precision.chosen import Precisions
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.plugins import registry
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel


@attrs.frozen
class LayerPlace:
    """Where a layer of the engine's network runs.

    Attributes:
        device: its device; the host for a shape computation.
        segment: index of its segment; -1 for none.
        precision: the type it is computed in.
        role: what part it plays.
    """

    device: str
    segment: int
    precision: DataType
    role: LayerRole = LayerRole.WORK

    def is_beside(self, other: LayerPlace | None) -> bool:
        """Whether two places differ in precision at most."""
        return (
            other is not None
            and other.segment == self.segment
            and other.device == self.device
            and other.role is self.role
        )


@attrs.frozen(eq=False)
class JoinedGroup:
    """Layers that run as one, by a kernel that is still to be chosen.

    Attributes:
        group: the layers.
        candidates: the kernels of the highest rank that can run them; at least one.
        place: where; of a compiled segment that of its first layer, whose precision need not be that of the others. A
            group that reads quantized activations is computed in their type, whatever its layers are.
        fusion: name of the device's fusion that joined them; "" for a single layer (with what quantizes around it), for
            a compiled segment, and where the device declares no fusions.
    """

    group: LayerGroup
    candidates: Sequence[Kernel]
    place: LayerPlace
    fusion: str = ""


@frozen(eq=False)
class FusedGroup:
    """Layers that run as one.

    Attributes:
        group: the layers.
        kernel: what runs them.
        place: as in `JoinedGroup`.
        reason: why by this kernel, in words.
        fusion: as in `JoinedGroup`.
    """

    group: LayerGroup
    kernel: Kernel
    place: LayerPlace
    reason: str = ""
    fusion: str = ""

    def __str__(self) -> str:
        joined = f", fusion {self.fusion}" if self.fusion else ""
        reason = f", {self.reason}" if self.reason else ""
        return f"{self.group.name}: {self.kernel.name} on {self.place.device}{joined}{reason}"


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


def in_order(groups: Sequence[LayerGroup]) -> list[int]:
    """Indices of the groups in an order in which they can run.

    Of the groups that could run next the one goes first whose last layer stands first in the network.

    Raises:
        BuildError: groups need each other's outputs, which only compiled segments can, since they run as one.
    """
    producer = {tensor.name: index for index, group in enumerate(groups) for tensor in group.outputs}
    needs = [{producer[tensor.name] for tensor in group.inputs if tensor.name in producer} for group in groups]
    readers: list[list[int]] = [[] for _ in groups]
    for index, needed in enumerate(needs):
        for source in needed:
            readers[source].append(index)
    missing = [len(needed) for needed in needs]
    ready = [(group.layers[-1].index, index) for index, group in enumerate(groups) if not missing[index]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (groups[reader].layers[-1].index, reader))
    if len(order) < len(groups):
        raise _circle([groups[index] for index in range(len(groups)) if missing[index]])
    return order


def _circle(groups: Sequence[LayerGroup]) -> BuildError:
    return BuildError(
        "A compiled segment must not depend on its own outputs",
        where="segment group order",
        found=", ".join(repr(group.name) for group in groups[:10]),
        remedy="Build with fixed shapes, so that dimensions are known before the run, or let one of the layers run on "
        "another device",
    )
