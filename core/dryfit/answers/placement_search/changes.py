"""What a proposed placement changes, and why: the sets of layers that move together, and what it costs to stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.placement_search.model import Placed, SegmentModel
from dryfit.answers.placement_search.objective import Objective, value_of
from dryfit.answers.placement_search.repair import moved
from dryfit.builder.assessment import Assessment
from dryfit.estimate_text import duration, two_digits
from dryfit.short_text import count_text


@attrs.frozen
class Change:
    """Neighbouring layers that go from one device to another.

    Attributes:
        layers: names, in execution order.
        source, destination: devices.
        reason: why, in one sentence without its full stop.
        value_otherwise: the value of the objective, by the model of segments, if they alone stayed; None where they
            cannot.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        "layers": "layers",
        "source": "from",
        "destination": "to",
        "reason": "reason",
        "value_otherwise": "value_otherwise",
    }

    layers: Sequence[str]
    source: str
    destination: str
    reason: str
    value_otherwise: float | None = None


def changes_between(model: SegmentModel, before: Assessment, after: Assessment, unit: str) -> list[Change]:
    """The changes, in execution order.

    Args:
        model: of the network, for the objective.
        before: as a build makes it of the config as it is.
        after: as a build would make the proposal.
        unit: of the objective's values.
    """
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
            reason, value = f"before, {old[names[0]].cause}; now there is room for them", None
        changes.append(Change(names, source, destination, reason, value))
    return changes


def _neighbours(ways: Mapping[int, tuple[str, str]], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Layers that go the same way, in sets that edges connect."""
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
    """The reason, and the value of the objective if the layers stayed."""
    if otherwise.too_large:
        return f"with them a segment of {device} does not fit its memory pools", None
    if otherwise.excess:
        limit = model.limits[device]
        return f"with them {device} has {_segments(limit + otherwise.excess[device])}, and loads {limit}", None
    objective = model.meter.objective
    value, other = value_of(now.amounts), value_of(otherwise.amounts)
    if objective is Objective.DLA_COVERAGE and value == other:
        return f"with them {device} has {_segments(otherwise.counted)}, and {now.counted} without", other
    what = {
        Objective.LATENCY: "one run takes an estimated",
        Objective.THROUGHPUT: "the busiest device works an estimated",
        Objective.ENERGY: "one run draws an estimated",
        Objective.DLA_COVERAGE: "there are",
    }[objective]
    if objective in (Objective.LATENCY, Objective.THROUGHPUT):
        return f"if they stayed, {what} {duration(other)} instead of {duration(value)}", other
    number = two_digits if objective is Objective.ENERGY else "{:,.0f}".format
    return f"if they stayed, {what} {number(other)} {unit} instead of {number(value)}", other


def _segments(count: int) -> str:
    return count_text(count, "segment")
