"""Candidate placements: the optimum of a chain, and minimum cuts of any graph by costs of layers.

A cut uses the cost that each layer adds to its segment. If a target reports the steps of an estimate, the cost of a
step is assigned to its first layer; the other layers of the step cost nothing next to it, and their standalone cost
without it (an energy, which targets report as a total, is divided by the time of the steps). The objective throughput
is the largest of several sums, which a cut cannot minimize; there, the sums are combined with several sets of weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dryfit.answers.placement_search.chain import Amounts, Chain, best_on_chain
from dryfit.answers.placement_search.choices import CALLER
from dryfit.answers.placement_search.cut import CutFlow, Following, SideCosts, cheapest_sides
from dryfit.answers.placement_search.model import SegmentModel
from dryfit.answers.placement_search.objective import Objective, total
from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError
from dryfit.target.cost import CostEstimate, StepCost

WEIGHTS = 16
"""In how many parts the weight of a throughput is shared out between two devices. Our choice."""

PARTS = 1_000_000
"""Parts of a microsecond, or of whatever is counted, that a cut reckons with: in whole numbers it is exact."""


@frozen
class Candidate:
    """A placement found by a search method.

    Attributes:
        method: name of the search method.
        devices: device of each layer.
        is_exact: whether the placement is optimal in the model of the method.
    """

    method: str
    devices: tuple[str, ...]
    is_exact: bool = False

    def and_by(self, other: Candidate) -> Candidate:
        """Return the same placement, marked as also found by another method."""
        known = other.method in self.method
        method = self.method if known else f"{self.method}; also by {other.method}"
        return attrs.evolve(self, method=method, is_exact=self.is_exact or other.is_exact)


def is_chain(model: SegmentModel) -> bool:
    """Return whether each layer reads only the output of the layer before it and private inputs of the caller."""
    count = len(model.choices.layers)
    links = {(index, index + 1) for index in range(count - 1)}
    return set(model.choices.edges) == links and all(
        set(flow.takers) <= {flow.giver + 1, CALLER} if flow.giver != CALLER else len(flow.takers) == 1
        for flow in model.choices.flows
    )


def chain_candidate(model: SegmentModel, bound: float) -> Candidate | None:
    """Return the best placement of a chain.

    Args:
        model: model of a chain.
        bound: value of a loadable placement; infinite if none is known.
    """
    choices = model.choices
    given_by: dict[int, list[int]] = {}
    for number, flow in enumerate(choices.flows):
        # What the caller gives counts with the layer that takes it.
        after = flow.takers[0] if flow.giver == CALLER else flow.giver + 1
        given_by.setdefault(after, []).append(number)

    def segment(device: str, first: int, last: int) -> Amounts | None:
        nodes = tuple(range(first, last + 1))
        return model.segment(device, nodes) if model.fits(device, nodes) else None

    def step(layer: int, before: str | None, device: str | None) -> Amounts:
        devices = {layer - 1: before or "", layer: device or ""}
        parts = [model.flow(number, devices) for number in given_by.get(layer, ())]
        return total((model.meter.zero, *parts))

    chain = Chain(choices.options, segment, step, model.joins, model.limits, choices.device, len(model.meter.zero))
    # A bound is compared in the walk before it is rounded.
    found = best_on_chain(chain, bound + 1e-6)
    return None if found is None else Candidate("dynamic programming over the chain", found.devices, found.is_exact)


def cut_candidates(model: SegmentModel) -> Iterator[Candidate]:
    """Yield cuts of least cost, for one set of weights after the other."""
    first, second = _LayerCosts(model, model.choices.device), _LayerCosts(model, model.choices.other)
    weighings = list(_weighings(model))
    # Coverage counts segments as well, and throughput takes the largest of several sums: no cut finds these.
    is_exact = model.meter.objective in (Objective.LATENCY, Objective.ENERGY)
    for weights in weighings:
        costs = _side_costs(model, first, second, weights)
        sides = cheapest_sides(costs)[: len(model.choices.layers)]
        devices = tuple(
            options[0] if len(options) == 1 else model.choices.device if side else model.choices.other
            for options, side in zip(model.choices.options, sides, strict=True)
        )
        yield Candidate("minimum cut", devices, is_exact)


def _weighings(model: SegmentModel) -> Iterator[Amounts]:
    if model.meter.objective is not Objective.THROUGHPUT:
        yield (1.0,)
        return
    places = [model.meter.devices.index(one) for one in (model.choices.device, model.choices.other)]
    for part in range(WEIGHTS + 1):
        weights = [0.0] * len(model.meter.devices)
        for place, share in zip(places, (part, WEIGHTS - part), strict=True):
            weights[place] = share / WEIGHTS
        yield tuple(weights)


class _LayerCosts:
    """The cost that each layer adds on a device that runs everything it can.

    Attributes:
        amounts: amounts of each layer that can run on the device.
        followers: preceding layer in the same step, by layer.
    """

    def __init__(self, model: SegmentModel, device: str) -> None:
        self._model = model
        self._device = device
        nodes = [index for index, options in enumerate(model.choices.options) if device in options]
        self.amounts: dict[int, Amounts] = {}
        self.followers: dict[int, int] = {}
        estimate = model.estimate(device, nodes) if nodes and model.meter.objective.needs else None
        if estimate is None or not estimate.steps:
            self.amounts.update((node, self.alone(node)) for node in nodes)
            return
        number = {model.choices.layers[node].name: node for node in nodes}
        self.amounts.update((node, model.meter.zero) for node in nodes)
        for step in estimate.steps:
            if not step.layers or not number.keys() >= set(step.layers):
                raise PluginError(
                    "Each step of a cost estimate must name layers of the request",
                    where=f"target {device}",
                    found=", ".join(map(repr, step.layers)) or "no layer",
                    remedy="Return steps with names from `question.layers`, or leave `layers` out",
                )
            chain = [number[name] for name in step.layers]
            self.amounts[chain[0]] = model.meter.of_segment(device, _step_alone(estimate, step), step.macs)
            self.followers.update(zip(chain[1:], chain, strict=False))

    def alone(self, node: int) -> Amounts:
        """Return the amounts of a layer as a segment of its own."""
        return self._model.segment(self._device, (node,))

    def cost(self, node: int, weights: Amounts) -> int | None:
        """Return the cost that a layer adds; None if it cannot run on the device."""
        found = self.amounts.get(node)
        return None if found is None else weighed(found, weights)

    def alone_cost(self, node: int, before: int, weights: Amounts) -> int:
        """Return the cost that a layer adds if its predecessor is elsewhere; 0 if the two do not share a step."""
        return weighed(self.alone(node), weights) if self.followers.get(node) == before else 0


def _step_alone(estimate: CostEstimate, step: StepCost) -> CostEstimate:
    """Return the estimate of one step, with its share of the energy by time, as energy is estimated only in total."""
    energy, total_microseconds = estimate.energy, sum(one.microseconds for one in estimate.steps)
    if energy is not None and total_microseconds:
        energy = attrs.evolve(energy, amount=energy.amount * step.microseconds / total_microseconds)
    return attrs.evolve(estimate, microseconds=step.microseconds, energy=energy, steps=())


def weighed(amounts: Amounts, weights: Amounts) -> int:
    """Return the weighted sum of amounts, as an integer."""
    return round(sum(amount * weight for amount, weight in zip(amounts, weights, strict=True)) * PARTS)


def _side_costs(model: SegmentModel, first: _LayerCosts, second: _LayerCosts, weights: Amounts) -> SideCosts:
    """Return the costs of a cut. The caller is an additional node; a layer on a third device counts as the caller.

    Of two cuts of equal cost, the one with fewer copies wins: each copy adds 1, and all other costs are doubled often
    enough to outweigh them.
    """
    choices, caller = model.choices, len(model.choices.layers)
    finer = 2 * len(choices.flows) + 1
    caller_is_first = model.place(CALLER, ()) == choices.device

    def ends(flow_number: int) -> tuple[int, int]:
        to_first = weighed(model.copies(flow_number, choices.other, choices.device), weights)
        to_second = weighed(model.copies(flow_number, choices.device, choices.other), weights)
        return to_first * finer + 1, to_second * finer + 1

    def side(costs: _LayerCosts, node: int) -> int | None:
        options = choices.options[node]
        if options[0] not in (choices.device, choices.other):
            return None if costs is first else 0
        found = costs.cost(node, weights)
        return None if found is None else found * finer

    nodes = range(caller)
    pairs = {(node, before) for costs in (first, second) for node, before in costs.followers.items()}
    return SideCosts(
        on_first=[*(side(first, node) for node in nodes), 0 if caller_is_first else None],
        on_second=[*(side(second, node) for node in nodes), None if caller_is_first else 0],
        followings=[
            Following(
                node,
                before,
                first.alone_cost(node, before, weights) * finer,
                second.alone_cost(node, before, weights) * finer,
            )
            for node, before in sorted(pairs)
        ],
        flows=[
            CutFlow(_node(flow.giver, caller), [_node(one, caller) for one in flow.takers], *ends(number))
            for number, flow in enumerate(choices.flows)
        ],
        tied=[(group[0], other) for group in choices.groups for other in group[1:]],
    )


def _node(number: int, caller: int) -> int:
    return caller if number == CALLER else number
