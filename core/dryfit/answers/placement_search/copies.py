"""What the copies of one tensor take, wherever its giver and its takers are: chosen as a build chooses them.

The choice of a build for one tensor touches no other's, so each is asked for alone, and remembered.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.answers.network_cost import transfer_cost
from dryfit.answers.placement_search.chain import Amounts
from dryfit.answers.placement_search.choices import CALLER, Choices, Flow
from dryfit.answers.placement_search.objective import Meter, total
from dryfit.answers.placement_search.types import DeviceTypes
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.builder.formats.choice import choose_forms
from dryfit.builder.formats.forms import TensorForm
from dryfit.builder.formats.sides import Side, Sides
from dryfit.builder.placement.cutter import LayerRun
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.target_variant import knowing, known_shape
from dryfit.engine.plan import Reformat

Places = tuple[str, ...]
"""Devices of a flow's giver and takers, in this order."""


class FlowCopies:
    """Reckons copies between devices for one network and objective.

    Args:
        choices: the network's layers and flows.
        design: decisions about it, for all but the devices.
        config: that it was designed with.
        types: of the layers on each device.
        meter: what counts.
    """

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
        """What the copies of a flow take.

        Args:
            number: of the flow.
            places: devices of its giver and its takers.
        """
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

    def _takers(self, flow: Flow, giver: Side, places: Sequence[str]) -> list[Side]:
        """Those who take the tensor, each as its own device sees it."""
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
