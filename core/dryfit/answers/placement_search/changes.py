"""The changes of a proposed placement with their reasons: layers that move together, and the cost of staying."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from dryfit.answers.placement_search.choices import CALLER
from dryfit.answers.placement_search.model import Nodes, Placed, SegmentModel
from dryfit.answers.placement_search.objective import Objective, value_of
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import Assessment
from dryfit.estimate_text import duration, two_digits
from dryfit.json_names import json_names
from dryfit.short_text import count_text


@frozen
class Change:
    """Neighboring layers that move from one device to another.

    Attributes:
        layers: names of the layers, in execution order.
        source, destination: device before and after the change.
        reason: reason for the change, in one sentence without its full stop.
        value_otherwise: value of the objective, by the model of segments, if only these layers stayed; None if they
            cannot.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("layers source:from destination:to reason value_otherwise")

    layers: Sequence[str]
    source: str
    destination: str
    reason: str
    value_otherwise: float | None = None


def changes_between(model: SegmentModel, before: Assessment, after: Assessment, unit: str) -> list[Change]:
    """Return the changes in execution order."""
    old = {layer.layer: layer for layer in before.layers}
    new = {layer.layer: layer.device for layer in after.layers}
    layers = model.choices.layers
    devices = [new.get(layer.name, old[layer.name].device) for layer in layers]
    ways = {
        index: (old[layer.name].device, devices[index])
        for index, layer in enumerate(layers)
        if old[layer.name].device != devices[index]
    }
    if not ways:
        return []
    now = model.placed(devices)
    changes = []
    for group in _neighbours(ways, model.choices.edges):
        source, destination = ways[group[0]]
        names = [layers[index].name for index in group]
        if source == model.choices.device:
            otherwise = model.placed(moved(model, devices, group, source))
            reason, value = _why_not_stay(model, now, otherwise, source, unit)
        else:
            reason, value = f"before: {old[names[0]].cause}; now they fit", None
        changes.append(Change(names, source, destination, reason, value))
    return changes


def _neighbours(ways: Mapping[int, tuple[str, str]], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return layers that move in the same direction, as sets connected by edges."""
    roots = {index: index for index in ways}

    def root(index: int) -> int:
        while roots[index] != index:
            index = roots[index]
        return index

    for one, other in edges:
        if one in ways and other in ways and ways[one] == ways[other]:
            low, high = sorted((root(one), root(other)))
            roots[high] = low
    groups: dict[int, list[int]] = {}
    for index in sorted(ways):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def _why_not_stay(
    model: SegmentModel, now: Placed, otherwise: Placed, device: str, unit: str
) -> tuple[str, float | None]:
    """Return the reason, and the value of the objective if the layers stayed."""
    if otherwise.too_large:
        return f"with them a segment of {device} does not fit its memory pools", None
    if otherwise.excess:
        limit = model.limits[device]
        return f"with them {device} has {_segments(limit + otherwise.excess[device])}, and the limit is {limit}", None
    objective = model.meter.objective
    value, other = value_of(now.amounts), value_of(otherwise.amounts)
    if objective is Objective.DLA_COVERAGE and value == other:
        return f"with them {device} has {_segments(otherwise.counted)}, and {now.counted} without", other
    what = {
        Objective.LATENCY: "latency would be an estimated",
        Objective.THROUGHPUT: "the busiest device would take an estimated",
        Objective.ENERGY: "the energy per inference would be an estimated",
        Objective.DLA_COVERAGE: "there are",
    }[objective]
    if objective in (Objective.LATENCY, Objective.THROUGHPUT):
        return f"if they stayed, {what} {duration(other)} instead of {duration(value)}", other
    number = two_digits if objective is Objective.ENERGY else "{:,.0f}".format
    return f"if they stayed, {what} {number(other)} {unit} instead of {number(value)}", other


def _segments(count: int) -> str:
    return count_text(count, "segment")


# Repair ---------------------------------------------------------------------------------------------------------------


TRIALS = 400
"""Placements that are tried for an improvement at most. Our choice: seconds on a few hundred layers."""


def repaired(model: SegmentModel, devices: Sequence[str]) -> Placed:
    """Return a placement that satisfies the limits, as far as layers can move."""
    placed = model.placed(devices)
    while placed.too_large or placed.excess:
        trials = list(_smaller(model, placed)) if placed.too_large else list(_fewer(model, placed))
        found = min((model.placed(one) for one in trials), key=lambda one: one.key, default=None)
        if found is None or found.key >= placed.key:
            break
        placed = found
    return placed


def improved(model: SegmentModel, placed: Placed, trials: int = TRIALS) -> Placed:
    """Return the placement after all improving steps; at each point, the first step that improves it is taken."""
    left, seen = trials, {placed.devices}
    found = True
    while found:
        found = False
        for devices in _steps(model, placed):
            if devices in seen:
                continue
            if not left:
                return placed
            seen.add(devices)
            left -= 1
            trial = model.placed(devices)
            if trial.key < placed.key:
                placed, found = trial, True
                break
    return placed


def _smaller(model: SegmentModel, placed: Placed) -> Iterator[tuple[str, ...]]:
    """Return ways to split a segment that is too large."""
    device, nodes = placed.segments[placed.too_large[0]]
    other = _other(model, device)
    first, last = _longest(model, device, nodes), _longest(model, device, nodes[::-1])
    yield moved(model, placed.devices, nodes, other)
    yield moved(model, placed.devices, nodes[first:], other)
    yield moved(model, placed.devices, nodes[: len(nodes) - last], other)
    yield moved(model, placed.devices, _separators(model, device, nodes), other)


def _longest(model: SegmentModel, device: str, nodes: Nodes) -> int:
    """Return how many of the first layers fit as one segment, by bisection."""
    fitting, too_many = 0, len(nodes)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if model.fits(device, tuple(sorted(nodes[:middle]))):
            fitting = middle
        else:
            too_many = middle
    return fitting


def _separators(model: SegmentModel, device: str, nodes: Nodes) -> Nodes:
    """Return the layers between runs that fit, each as long as possible."""
    separators: list[int] = []
    rest = nodes
    while rest and not model.fits(device, rest):
        kept = _longest(model, device, rest)
        separators.append(rest[kept])
        rest = rest[kept + 1 :]
    return tuple(separators)


def _fewer(model: SegmentModel, placed: Placed) -> Iterator[tuple[str, ...]]:
    """Return the placement without excess segments of a device, choosing the least useful ones one by one."""
    device, excess = next(iter(placed.excess.items()))
    other = _other(model, device)
    trials = []
    for number, (where, nodes) in enumerate(placed.segments):
        devices = moved(model, placed.devices, nodes, other)
        if where == device and devices != placed.devices:
            trials.append((model.placed(devices).key[1:], number))
    leaving = [node for _, number in sorted(trials)[:excess] for node in placed.segments[number][1]]
    if leaving:
        yield moved(model, placed.devices, leaving, other)


def _steps(model: SegmentModel, placed: Placed) -> Iterator[tuple[str, ...]]:
    """Return neighboring placements: whole segments on the other device, then single layers at borders."""
    for device, nodes in placed.segments:
        yield moved(model, placed.devices, nodes, _other(model, device))
    for node in _at_borders(model, placed):
        yield moved(model, placed.devices, (node,), _other(model, placed.devices[node]))


def _at_borders(model: SegmentModel, placed: Placed) -> Iterable[int]:
    """Return the layers that exchange tensors with another device, in order."""
    found: set[int] = set()
    for flow in model.choices.flows:
        ends = [flow.giver, *flow.takers]
        if len({model.place(node, placed.devices) for node in ends}) > 1:
            found.update(node for node in ends if node != CALLER)
    return sorted(found)


def moved(model: SegmentModel, devices: Sequence[str], nodes: Sequence[int], device: str) -> tuple[str, ...]:
    """Return a placement with movable layers on a device, together with all layers that must move with them."""
    owners = {model.choices.owners[node] for node in nodes if len(model.choices.options[node]) > 1}
    chosen = {node for group in model.choices.groups if model.choices.owners[group[0]] in owners for node in group}
    return tuple(device if node in chosen else one for node, one in enumerate(devices))


def _other(model: SegmentModel, device: str) -> str:
    return model.choices.other if device == model.choices.device else model.choices.device
