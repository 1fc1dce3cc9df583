"""A network's layers as numbers, while they are being cut into segments, and the words for what was cut.

`dryfit.builder.placement.partition` decides when to cut and what moves; this is the state it works on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.builder.placement.assign import Assignment
from dryfit.builder.placement.graph_partition import partition_graph
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.network.layer import Layer
from dryfit.network.tensor import Shape

Edge = tuple[int, int]
Segment = list[int]
"""Numbers of layers, in order."""


@frozen
class LayerRun:
    """One segment.

    Attributes:
        device: its device.
        layers: in execution order.
        cut_cause: why it does not continue an earlier segment of its device; "" for the first.
    """

    device: str
    layers: Sequence[Layer]
    cut_cause: str = ""


def batch_of(shape: Shape) -> int:
    """The product of all dimensions but the last three; -1 where one of them is dynamic.

    Source: TensorRT 10 developer guide, Working with DLA: general restrictions, the note on batch.
    """
    return -1 if any(extent < 0 for extent in shape[:-3]) else math.prod(shape[:-3])


class Cutter:
    """The layers as numbers, and their devices while they may still change."""

    def __init__(
        self, layers: Sequence[Layer], edges: list[Edge], assignment: Assignment, variants: Mapping[str, TargetVariant]
    ) -> None:
        self.layers = layers
        self.variants = variants
        self.devices = [assignment.devices[layer.name] for layer in layers]
        self.moved: dict[str, str] = {}
        self._edges = edges
        self._causes = assignment.causes
        self._batches = [batch_of(layer.outputs[0].shape) if layer.outputs else 1 for layer in layers]
        # What runs together already stays together while other segments move: this keeps the numbers of those that
        # fit, and the loop over moves ends, because each move takes a segment away.
        self._together = {layer: layer for layer in range(len(layers))}
        # Which part of a segment that was cut to fit a layer belongs to, and why each part but the first is its own.
        self._parts = dict.fromkeys(range(len(layers)), 0)
        self._part_causes: list[str] = [""]
        self.cuts: list[str] = []
        self._numbers = {layer.name: number for number, layer in enumerate(layers)}

    def cut(self) -> list[Segment]:
        """The segments, in execution order."""
        units = max(self._together.values(), default=-1) + 1
        colours = [0] * units
        known: dict[tuple[str, int, int], int] = {}
        for layer, unit in self._together.items():
            colours[unit] = known.setdefault(self._colour(layer), len(known))
        edges = {(self._together[source], self._together[target]) for source, target in self._edges}
        numbers = partition_graph(colours, ((source, target) for source, target in edges if source != target))
        segments: list[Segment] = [[] for _ in range(max(numbers, default=-1) + 1)]
        for layer, unit in self._together.items():
            segments[numbers[unit]].append(layer)
        return segments

    def _colour(self, layer: int) -> tuple[str, int, int]:
        device = self.devices[layer]
        same_batch = self.variants[device].target.segment_rules.same_batch
        return device, self._batches[layer] if same_batch else 0, self._parts[layer]

    def split(
        self,
        segments: Sequence[Segment],
        parts: Mapping[int, Sequence[Sequence[Layer]]],
        causes: Mapping[int, str],
    ) -> None:
        """Make several segments of one.

        Args:
            segments: of the last cut.
            parts: number of a segment to its layers in parts, in an order in which they can run.
            causes: number of a segment to why it is cut.
        """
        unit = 0
        for number, segment in enumerate(segments):
            if number not in parts:
                self._together.update(dict.fromkeys(segment, unit))
                unit += 1
                continue
            first_cause = self.part_cause(segment[0])
            words = f"{self.describe(segment)}: {causes[number]}"
            self.cuts.append(f"{self.describe(segment)} is cut into {len(parts[number])} segments: {causes[number]}")
            for index, part in enumerate(parts[number]):
                members = [self._numbers[layer.name] for layer in part]
                self._part_causes.append(words if index else first_cause)
                self._parts.update(dict.fromkeys(members, len(self._part_causes) - 1))
                self._together.update(dict.fromkeys(members, unit))
                unit += 1

    def part_cause(self, layer: int) -> str:
        """Why the part that a layer belongs to was cut from the one before it; "" where it was not."""
        return self._part_causes[self._parts[layer]]

    def move(self, segments: Sequence[Segment], causes: Mapping[int, str], device: str) -> None:
        """Give whole segments another device."""
        for number, segment in enumerate(segments):
            words = self.describe(segment) if number in causes else ""
            for layer in segment:
                self._together[layer] = number
                if number in causes:
                    self.devices[layer] = device
                    self.moved[self.layers[layer].name] = f"{words}: {causes[number]}"

    def variant(self, segment: Segment) -> TargetVariant:
        """The device of a segment."""
        return self.variants[self.devices[segment[0]]]

    def describe(self, segment: Segment) -> str:
        """A segment in words, by its first and last layer."""
        first, last = self.layers[segment[0]].name, self.layers[segment[-1]].name
        span = f"layer {first!r}" if len(segment) == 1 else f"layers {first!r} to {last!r}"
        return f"{self.devices[segment[0]]} segment of {span}"

    def numbers(self, segments: Sequence[Segment]) -> dict[str, int]:
        """Layer name to segment."""
        return {self.layers[layer].name: number for number, segment in enumerate(segments) for layer in segment}

    def runs(self, segments: Sequence[Segment]) -> list[LayerRun]:
        """The segments, each with the cause of its cut; the first of a device has none."""
        devices = [self.devices[segment[0]] for segment in segments]
        firsts = {device: number for number, device in reversed([*enumerate(devices)])}
        cut = [number for number, device in enumerate(devices) if firsts[device] != number]
        witnesses = _Witnesses(self, segments, self._edges) if cut else None
        causes = {number: witnesses.cut_cause(segments[number]) for number in cut} if witnesses else {}
        return [
            LayerRun(device, [self.layers[layer] for layer in segments[number]], causes.get(number, ""))
            for number, device in enumerate(devices)
        ]

    def why(self, layer: int) -> str:
        """Why a layer runs on its device."""
        name = self.layers[layer].name
        return self.moved.get(name) or self._causes[name]

    def batch(self, layer: int) -> int:
        """The batch of a layer."""
        return self._batches[layer]


class _Witnesses:
    """For each cut the layer that shows why it is there.

    Going through the layers in execution order, each learns which segment of each device is the last on a way to it.
    """

    def __init__(self, cutter: Cutter, segments: Sequence[Segment], edges: Sequence[Edge]) -> None:
        self._cutter = cutter
        self._before: list[list[int]] = [[] for _ in cutter.layers]
        for source, target in edges:
            self._before[target].append(source)
        self._latest: list[dict[str, int]] = [{} for _ in cutter.layers]
        for number, segment in enumerate(segments):
            for layer in segment:
                latest = self._latest[layer]
                for source in self._before[layer]:
                    for device, other in self._latest[source].items():
                        latest[device] = max(latest.get(device, -1), other)
                latest[cutter.devices[layer]] = number

    def cut_cause(self, segment: Segment) -> str:
        """Why a segment does not continue an earlier one of its device."""
        cutter, members = self._cutter, set(segment)
        device = cutter.variant(segment).device
        entering = [(source, layer) for layer in segment for source in self._before[layer] if source not in members]
        for source, layer in entering:
            if cutter.devices[source] == device and cutter.batch(source) != cutter.batch(layer):
                rules = cutter.variants[device].target.segment_rules
                if rules.same_batch:
                    name = cutter.layers[layer].name
                    change = f"from {cutter.batch(source)} to {cutter.batch(layer)}"
                    return with_source(f"the batch changes {change} at layer {name!r}", rules.source)
        if any(cutter.devices[source] == device for source, _ in entering) and cutter.part_cause(segment[0]):
            return cutter.part_cause(segment[0])
        others = [(source, layer) for source, layer in entering if cutter.devices[source] != device]
        between = [source for source, _ in others if device in self._latest[source]]
        if between:
            latest = max(between, key=lambda source: (self._latest[source][device], source))
            where = f"on {cutter.devices[latest]}" if cutter.devices[latest] else "which has no device"
            return (
                f"layer {cutter.layers[latest].name!r} {where} lies between segment {self._latest[latest][device]} "
                f"and this one: {cutter.why(latest)}"
            )
        if any(device in self._latest[source] for source, _ in entering):
            return "other segments lie between it and the previous one"
        return f"it shares no tensor with an earlier segment of {device}"


def with_source(cause: str, source: str) -> str:
    """A cause with the document that it comes from, where there is one."""
    return f"{cause} [{source}]" if source else cause
