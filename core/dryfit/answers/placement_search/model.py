"""The cost of a placement by whole segments: the model of a search.

Each segment is estimated as a whole, so that fused steps and fixed costs of a segment are counted as the target does.
Segments are cut and tensors copied as in a build, and each result is cached. One simplification: types are those that
layers have if a device runs everything it can. Therefore the best placements are passed through the stages of a build
and evaluated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.answers.network_cost import transfer_cost
from dryfit.answers.placement_search.chain import Amounts
from dryfit.answers.placement_search.choices import CALLER, Choices, Flow
from dryfit.answers.placement_search.objective import Meter, Objective, total, value_of
from dryfit.answers.placement_search.types import DeviceTypes
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.decisions import segment_estimate
from dryfit.builder.design import Design
from dryfit.builder.formats.choice import choose_forms
from dryfit.builder.formats.forms import TensorForm
from dryfit.builder.formats.sides import FormatSide, Sides
from dryfit.builder.placement.cutter import Cutter, LayerRun, batch_of
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.target_variant import knowing, known_shape
from dryfit.builder.segments.pools import PoolNeeds
from dryfit.engine.plan import Reformat
from dryfit.target.cost import CostEstimate

Nodes = tuple[int, ...]


@frozen
class Placed:
    """A placement evaluated by the model.

    Attributes:
        devices: device of each layer.
        segments: device and numbers of layers, in execution order.
        amounts: amounts of the placement.
        too_large: numbers of segments that exceed the pools of their device.
        excess: number of segments above the limit, by device.
        counted: number of segments of the default device, if the objective counts them.
        moved: number of layers that are not on the default device.
    """

    devices: tuple[str, ...]
    segments: Sequence[tuple[str, Nodes]]
    amounts: Amounts
    too_large: Sequence[int]
    excess: Mapping[str, int]
    counted: int
    moved: int

    @property
    def can_be_loaded(self) -> bool:
        """Whether the placement is within the limits of segments and pools."""
        return not self.too_large and not self.excess

    @property
    def key(self) -> tuple[float, ...]:
        """Key of comparisons; the smallest is best. Placements that cannot be loaded are worse than all others."""
        return len(self.too_large), sum(self.excess.values()), value_of(self.amounts), self.counted, self.moved


class SegmentModel:
    """Evaluates placements of one network for one objective."""

    def __init__(self, choices: Choices, design: Design, config: BuilderConfig, meter: Meter) -> None:
        self.choices = choices
        self.meter = meter
        self.limits: dict[str, int] = {}
        for device, variant in design.variants.items():
            limit = variant.target.segment_rules.segment_limit(variant.software)
            if limit is not None:
                self.limits[device] = limit
        self._design = design
        self._segments: dict[tuple[str, Nodes], Amounts] = {}
        self._fits: dict[tuple[str, Nodes], bool] = {}
        self._types = DeviceTypes(choices, design, config)
        self._copies = FlowCopies(choices, design, config, self._types, meter)
        self.macs = [layer.multiply_accumulates(design.specs) for layer in choices.layers]

    def placed(self, devices: Sequence[str]) -> Placed:
        """Cut and evaluate a placement."""
        choices = self.choices
        cutter = Cutter(choices.layers, list(choices.edges), choices.with_devices(devices), self._design.variants)
        segments = [(devices[nodes[0]], tuple(nodes)) for nodes in cutter.cut()]
        parts = [self.segment(device, nodes) for device, nodes in segments]
        parts += [self.flow(number, devices) for number in range(len(self.choices.flows))]
        counts: dict[str, int] = {}
        for device, _ in segments:
            counts[device] = counts.get(device, 0) + 1
        return Placed(
            devices=tuple(devices),
            segments=segments,
            amounts=total((self.meter.zero, *parts)),
            too_large=[number for number, (device, nodes) in enumerate(segments) if not self.fits(device, nodes)],
            excess={
                device: counts[device] - limit for device, limit in self.limits.items() if counts.get(device, 0) > limit
            },
            counted=counts.get(choices.device, 0) if self.meter.objective is Objective.DLA_COVERAGE else 0,
            moved=sum(device != choices.device for device in devices),
        )

    def joins(self, layer: int, device: str) -> bool:
        """Return whether a layer can share a segment with the layer before it, with both on the device."""
        rules = self._design.variants[device].target.segment_rules
        before, after = (self.choices.layers[one].outputs for one in (layer - 1, layer))
        return not rules.same_batch or batch_of(before[0].shape) == batch_of(after[0].shape)

    def estimate(self, device: str, nodes: Sequence[int]) -> CostEstimate | None:
        """Return the target's estimate of layers as one segment."""
        layers = [self.choices.layers[node] for node in nodes]
        precisions = self._types.inside(device, layers)
        design = self._design
        sparse = [name for name in design.sparse_layers if design.assignment.devices[name] == device]
        return segment_estimate(design.variants[device], layers, design.specs, precisions, sparse)

    def segment(self, device: str, nodes: Nodes) -> Amounts:
        """Return the amounts of layers as one segment.

        Raises:
            ConfigError: The target does not estimate what the objective counts.
        """
        found = self._segments.get((device, nodes))
        if found is None:
            estimate = self.estimate(device, nodes) if self.meter.objective.needs else None
            found = self.meter.of_segment(device, estimate, sum(self.macs[node] for node in nodes))
            self._segments[device, nodes] = found
        return found

    def fits(self, device: str, nodes: Nodes) -> bool:
        """Return whether layers fit the pools of a device as one segment, computed without fusion.

        This takes a few us, because a search checks thousands of segments; most need less memory after fusion. The
        stages of a build, which each compared placement passes through, compute it exactly.
        """
        found = self._fits.get((device, nodes))
        if found is None:
            variant = self._design.variants[device]
            layers = [self.choices.layers[node] for node in nodes]
            needs = PoolNeeds(variant, self._design.specs, self._types.inside(device, layers))
            pools = [one.name for one in variant.target.memory_pools if one.per == "segment" and one.holds != "cache"]
            limits = {name: variant.pool_limits.get(name) for name in pools}
            needed = needs.of(layers) if pools else {}
            found = all(limits.get(name) is None or size <= (limits[name] or 0) for name, size in needed.items())
            self._fits[device, nodes] = found
        return found

    def flow(self, number: int, devices: Sequence[str] | Mapping[int, str]) -> Amounts:
        """Return the amounts of a tensor's copies."""
        flow = self.choices.flows[number]
        return self._copies.amounts(number, tuple(self.place(node, devices) for node in (flow.giver, *flow.takers)))

    def copies(self, number: int, source: str, destination: str) -> Amounts:
        """Return the amounts of a tensor's copies with its giver on one device, and movable takers on the other."""
        flow = self.choices.flows[number]
        options = self.choices.options
        ends = [destination if destination in options[node] else options[node][0] for node in flow.takers if node >= 0]
        giver = [source if flow.giver >= 0 else self.place(CALLER, ())]
        caller = [self.place(CALLER, ()) for node in flow.takers if node == CALLER]
        return self._copies.amounts(number, (*giver, *ends, *caller))

    def place(self, node: int, devices: Sequence[str] | Mapping[int, str]) -> str:
        """Return the device of a layer, or of the caller."""
        return self._design.cut.caller if node == CALLER else devices[node]


# Costs of copies ------------------------------------------------------------------------------------------------------


Places = tuple[str, ...]
"""Devices of a flow's giver and takers, in this order."""


class FlowCopies:
    """Evaluates copies between devices for one network and objective."""

    def __init__(
        self,
        choices: Choices,
        design: Design,
        config: BuilderConfig,
        types: DeviceTypes,
        meter: Meter,
    ) -> None:
        self._choices = choices
        self._design = design
        self._meter = meter
        self._devices = list(meter.devices)
        # One segment stands for all of a device: within a device nothing is copied from one to the other.
        self._segments: dict[str, int] = {}
        partition = Partition([LayerRun(device, []) for device in self._devices], self._segments, {}, [])
        self._sides = {
            device: Sides(partition, types.apart(device), design.variants, design.specs, config)
            for device in self._devices
        }
        self._known: dict[tuple[int, Places], Amounts] = {}

    def amounts(self, number: int, places: Places) -> Amounts:
        """Return the amounts of a flow's copies."""
        if len(set(places)) == 1:
            return self._meter.zero
        if (number, places) not in self._known:
            self._known[number, places] = self._reckoned(self._choices.flows[number], places)
        return self._known[number, places]

    def _reckoned(self, flow: Flow, places: Places) -> Amounts:
        layers = self._choices.layers
        for node, device in zip((flow.giver, *flow.takers), places, strict=True):
            if node != CALLER:
                self._segments[layers[node].name] = self._devices.index(device)
        giver = self._sides[places[0]].giver(flow.tensor)
        takers = self._takers(flow, giver, places[1:])
        if not takers:
            return self._meter.zero
        choice = choose_forms(giver, takers, lambda form: self._size(flow, form))
        parts = [self._meter.zero]
        for form in choice.copies:
            source, destination = choice.produced.device, form.device
            if source != destination:
                copy = Reformat(flow.tensor.name, source, destination, self._size(flow, form), "")
                cost = transfer_cost(self._design.variants, copy, source, destination)
                parts.append(self._meter.of_copy(cost.copier, cost.estimate))
        return total(parts)

    def _takers(self, flow: Flow, giver: FormatSide, places: Sequence[str]) -> list[FormatSide]:
        """Return the readers of the tensor by device."""
        found = []
        for device in dict.fromkeys(places):
            number = self._devices.index(device)
            sides = self._sides[device].takers(flow.tensor, giver)
            found += [side for side in sides if side.segment == number]
        if flow.takers[-1] == CALLER:
            found += [side for side in self._sides[places[-1]].takers(flow.tensor, giver) if side.segment < 0]
        return found

    def _size(self, flow: Flow, form: TensorForm) -> int:
        shape = known_shape(self._design.specs[flow.tensor.name])
        owner = knowing(self._design.variants, form.layout, [form.device])
        return owner.size_bytes(form.layout, shape, form.dtype)
