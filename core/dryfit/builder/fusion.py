"""Which layers run as one: each segment's layers joined to groups, as the device and the kernels that run them allow.

Greedy, in execution order: a layer joins the group whose output it reads, where nobody else reads that output, one of
the kernels that may run the group takes the layer, and a fusion of the device begins so, if the device declares any. A
sum of two branches joins the one that is ready last, so that the other operand is there when the group runs. What in
the end is the beginning of a fusion only is cut back to the longest that is whole. Then the kernel is chosen.

A segment that its target compiles is one group, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from dryfit.builder.group_order import in_order
from dryfit.builder.kernel_choice import KernelChoice
from dryfit.builder.layer_roles import LayerRole
from dryfit.engine.segment_program import segment_kernel
from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.target.fusions import Fusion, allowing
from dryfit.target.group import LayerGroup, SegmentGroup
from dryfit.target.kernels import Kernel, Specs


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


@attrs.frozen(eq=False)
class FusedGroup:
    """Layers that run as one.

    Attributes:
        group: the layers.
        kernel: what runs them.
        place: where; of a compiled segment that of its first layer, whose precision need not be that of the others.
        reason: why by this kernel, in words.
        fusion: name of the device's fusion that joined them; "" for a single layer, for a compiled segment, and where
            the device declares no fusions.
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


@attrs.frozen(eq=False)
class _GrowingGroup:
    """Layers that run as one, the kernels that may run them, and where."""

    group: LayerGroup
    candidates: Sequence[Kernel]
    place: LayerPlace


def fuse_layers(
    network: Network, places: Mapping[str, LayerPlace], choice: KernelChoice | None = None
) -> list[FusedGroup]:
    """The groups of the engine's network, in an order in which they can run.

    Args:
        network: layers in execution order.
        places: layer name to place, for all layers but constants.
        choice: of kernels; where it is left out, nothing is measured and no kernel is named.

    Raises:
        BuildError: no kernel runs a layer, or a compiled segment needs what can be computed only after it.
    """
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    outputs = {tensor.name for tensor in network.outputs}
    fuser = _Fuser(specs, outputs, choice or KernelChoice())
    compiled: dict[int, list[Layer]] = {}
    for layer in network.layers:
        place = places.get(layer.name)
        if place is not None and is_compiled(place):
            compiled.setdefault(place.segment, []).append(layer)
        elif place is not None:
            fuser.add(layer, place)
    segments = [_whole_segment(layers, places) for layers in compiled.values()]
    groups = [*fuser.finished(), *segments]
    return [groups[index] for index in in_order([fused.group for fused in groups])]


def is_compiled(place: LayerPlace) -> bool:
    """Whether a layer belongs to a segment that its target compiles to a program."""
    return place.segment >= 0 and registry.target(place.device).compile_segment_at is not None


def _whole_segment(layers: Sequence[Layer], places: Mapping[str, LayerPlace]) -> FusedGroup:
    place = places[layers[0].name]
    load_segment = registry.target(place.device).load_segment
    if load_segment is None:
        raise PluginError(f"The target {place.device} compiles segments and cannot load them")
    kernel = segment_kernel(place.device, lambda program: load_segment(program.tobytes()))
    return FusedGroup(SegmentGroup(layers), kernel, place, "the segment is compiled")


class _Fuser:
    """Adds one layer after another."""

    def __init__(self, specs: Specs, outputs: set[str], choice: KernelChoice) -> None:
        self._specs = specs
        self._outputs = outputs
        self._choice = choice
        self._groups: list[_GrowingGroup] = []
        self._group_of: dict[str, int] = {}

    def add(self, layer: Layer, place: LayerPlace) -> None:
        for tensor in self._latest_first(layer):
            if self._join(layer, place, tensor):
                return
        group = LayerGroup((layer,))
        self._group_of[layer.name] = len(self._groups)
        self._groups.append(_GrowingGroup(group, self._choice.candidates(place.device, group, self._specs), place))

    def _latest_first(self, layer: Layer) -> Sequence[Tensor]:
        """The inputs that other layers give, the one that is ready last first."""
        given = {tensor.name: tensor for tensor in layer.inputs if tensor is not None and tensor.producer is not None}
        return sorted(given.values(), key=lambda tensor: -(tensor.producer.index if tensor.producer else 0))

    def _join(self, layer: Layer, place: LayerPlace, tensor: Tensor) -> bool:
        """Add a layer to the group that gives one of its inputs, if group and kernel allow it."""
        producer = tensor.producer
        number = self._group_of.get(producer.name if producer is not None else "")
        if number is None or tensor.name in self._outputs or place.segment < 0:
            return False
        fused = self._groups[number]
        is_end = fused.group.layers[-1] is producer and len(fused.group.outputs) == 1
        is_only_reader = all(consumer is layer for consumer, _ in tensor.consumers)
        if not (is_end and is_only_reader and fused.place == place and rounds_once(place)):
            return False
        longer = LayerGroup((*fused.group.layers, layer))
        fusions = registry.target(place.device).fusions
        if fusions is not None and not any(fusion.may_begin_with(longer.layers) for fusion in fusions):
            return False
        candidates = self._choice.taking(fused.candidates, fused.group, layer, self._specs)
        if not candidates:
            return False
        self._groups[number] = attrs.evolve(fused, group=longer, candidates=candidates)
        self._group_of[layer.name] = number
        return True

    def finished(self) -> list[FusedGroup]:
        """The groups with their kernels, none longer than the fusions of its device allow."""
        return [part for growing in self._groups for part in self._parts(growing)]

    def _parts(self, growing: _GrowingGroup) -> Iterable[FusedGroup]:
        """A group; where it is no whole fusion, the longest that it begins with, and what becomes of the rest."""
        layers, place = growing.group.layers, growing.place
        fusions = registry.target(place.device).fusions
        count, fusion = (len(layers), "") if fusions is None else _longest(fusions, layers)
        group, candidates = growing.group, growing.candidates
        if count < len(layers):
            group = LayerGroup(layers[:count])
            candidates = self._candidates(layers[:count], place)
        kernel, reason = self._choice.fastest(candidates, group)
        yield FusedGroup(group, kernel, place, reason, fusion)
        rest = _Fuser(self._specs, self._outputs, self._choice)
        for layer in layers[count:]:
            rest.add(layer, place)
        yield from rest.finished()

    def _candidates(self, layers: Sequence[Layer], place: LayerPlace) -> Sequence[Kernel]:
        """The kernels that take these layers one after another."""
        candidates = self._choice.candidates(place.device, LayerGroup(layers[:1]), self._specs)
        for count, layer in enumerate(layers[1:], start=1):
            candidates = self._choice.taking(candidates, LayerGroup(layers[:count]), layer, self._specs)
        return candidates


def _longest(fusions: Sequence[Fusion], layers: Sequence[Layer]) -> tuple[int, str]:
    """How many of the layers, from the first on, run as one, and the fusion's name; 1 and "" where no fusion fits."""
    for count in range(len(layers), 1, -1):
        fusion = allowing(fusions, layers[:count])
        if fusion is not None:
            return count, fusion.name
    return 1, ""


def rounds_once(place: LayerPlace) -> bool:
    """Whether the device rounds a group's result once, rather than after each layer."""
    arithmetic = registry.target(place.device).arithmetic.get(place.precision)
    return arithmetic is None or arithmetic.rounds != "layer"
