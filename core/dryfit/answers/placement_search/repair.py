"""Placements made to keep the limits of segments and pools, and improved by small steps.

A segment that is too large for its pools leaves as a whole, keeps its first or last layers, or is taken apart by layers
that leave; of segments that are too many the least useful leave. Then whole segments, and layers at borders, change
their side as long as that makes a placement better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dryfit.answers.placement_search.choices import CALLER
from dryfit.answers.placement_search.model import Nodes, Placed, SegmentModel

TRIALS = 400
"""Placements that are tried for an improvement at most. Our choice: seconds on a few hundred layers."""


def repaired(model: SegmentModel, devices: Sequence[str]) -> Placed:
    """A placement that keeps the limits, as far as layers can leave."""
    placed = model.placed(devices)
    while placed.too_large or placed.excess:
        trials = list(_smaller(model, placed)) if placed.too_large else list(_fewer(model, placed))
        found = min((model.placed(one) for one in trials), key=lambda one: one.key, default=None)
        if found is None or found.key >= placed.key:
            break
        placed = found
    return placed


def improved(model: SegmentModel, placed: Placed, trials: int = TRIALS) -> Placed:
    """The placement after all steps that make it better, the first that helps at a time."""
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
    """Ways to take a segment that is too large apart."""
    device, nodes = placed.segments[placed.too_large[0]]
    other = _other(model, device)
    first, last = _longest(model, device, nodes), _longest(model, device, nodes[::-1])
    yield moved(model, placed.devices, nodes, other)
    yield moved(model, placed.devices, nodes[first:], other)
    yield moved(model, placed.devices, nodes[: len(nodes) - last], other)
    yield moved(model, placed.devices, _separators(model, device, nodes), other)


def _longest(model: SegmentModel, device: str, nodes: Nodes) -> int:
    """How many of the first layers fit as one segment, found by halving."""
    fitting, too_many = 0, len(nodes)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if model.fits(device, tuple(sorted(nodes[:middle]))):
            fitting = middle
        else:
            too_many = middle
    return fitting


def _separators(model: SegmentModel, device: str, nodes: Nodes) -> Nodes:
    """Layers between runs that fit, each as long as it can be."""
    separators: list[int] = []
    rest = nodes
    while rest and not model.fits(device, rest):
        kept = _longest(model, device, rest)
        separators.append(rest[kept])
        rest = rest[kept + 1 :]
    return tuple(separators)


def _fewer(model: SegmentModel, placed: Placed) -> Iterator[tuple[str, ...]]:
    """The placement without the segments of which a device has too many, the least useful ones chosen one by one."""
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
    """Placements next to this one: whole segments on the other side, then single layers at borders."""
    for device, nodes in placed.segments:
        yield moved(model, placed.devices, nodes, _other(model, device))
    for node in _at_borders(model, placed):
        yield moved(model, placed.devices, (node,), _other(model, placed.devices[node]))


def _at_borders(model: SegmentModel, placed: Placed) -> Iterable[int]:
    """Layers that give to or take from another device, in order."""
    found: set[int] = set()
    for flow in model.choices.flows:
        ends = [flow.giver, *flow.takers]
        if len({model.place(node, placed.devices) for node in ends}) > 1:
            found.update(node for node in ends if node != CALLER)
    return sorted(found)


def moved(model: SegmentModel, devices: Sequence[str], nodes: Sequence[int], device: str) -> tuple[str, ...]:
    """A placement with those of the layers on a device that may be there, and all that go together with them."""
    owners = {model.choices.owners[node] for node in nodes if len(model.choices.options[node]) > 1}
    chosen = {node for group in model.choices.groups if model.choices.owners[group[0]] in owners for node in group}
    return tuple(device if node in chosen else one for node, one in enumerate(devices))


def _other(model: SegmentModel, device: str) -> str:
    return model.choices.other if device == model.choices.device else model.choices.device
