"""Placement by cost: which layers to move from the default device to the fallback device, by target estimates.

Three models are used, each more accurate and slower than the one before. A minimum cut uses costs of single layers.
Repair, small steps and, on a chain, dynamic programming use whole segments (`model`). The resulting placements, the
default placement of a build and the one without the default device are then passed through the stages of a build, and
the best of them is proposed: by that model it is never worse than the default.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from dryfit.answers.network_cost import NetworkCost, network_cost
from dryfit.answers.placement_search.candidates import Candidate, chain_candidate, cut_candidates, is_chain
from dryfit.answers.placement_search.changes import Change, changes_between, improved, repaired
from dryfit.answers.placement_search.choices import choices_of
from dryfit.answers.placement_search.model import SegmentModel
from dryfit.answers.placement_search.objective import LowerBounds, Meter, Objective, lower_bounds, value_of
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import Assessment, assessment_of
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.builder.placement.assign import NOWHERE
from dryfit.builder.refusals import require_places
from dryfit.building import design_for_assessment
from dryfit.errors import ConfigError
from dryfit.network.network import Network

BUILT = 3
"""How many of the placements that were found are taken through the stages of a build, beside the two plain ones. Our
choice: the models agree on all but small differences."""


@frozen(eq=False)
class PlacementOption:
    """A placement as a build would realize it.

    Attributes:
        title: description of the placement.
        own_devices: device by layer of the user's network, for layers that require one of their own.
        assessment: assessment of the placement.
        cost: estimated cost.
        macs: multiply-accumulates by device.
        value: value of the objective; lower is better.
        is_exact: whether the search method finds the optimum of its own model.
    """

    title: str
    own_devices: Mapping[str, str]
    assessment: Assessment
    cost: NetworkCost
    macs: Mapping[str, int]
    value: float
    is_exact: bool = False

    def segments_on(self, device: str) -> int:
        """Return the number of segments of a device."""
        return sum(segment.device == device for segment in self.assessment.segments)


@frozen(eq=False)
class PlacementProposal:
    """The best of several placements.

    Attributes:
        objective: objective of the search.
        unit: unit of the compared values.
        device, fallback: two devices that the layers were divided between.
        before: default placement of a build with the config.
        after: proposed placement; the default placement if none is better.
        options: all compared placements, `before` first.
        changes: layers that change their device, with the reasons.
        lower_bounds: devices whose time is a roofline lower bound, and how far the proposal holds; None for none.
    """

    objective: Objective
    unit: str
    device: str
    fallback: str
    before: PlacementOption
    after: PlacementOption
    options: Sequence[PlacementOption]
    changes: Sequence[Change]
    lower_bounds: LowerBounds | None = None

    @property
    def own_devices(self) -> Mapping[str, str]:
        """Device by layer of the user's network, for all layers with a device of their own in the proposal."""
        return self.after.own_devices


def propose_placement(network: Network, config: BuilderConfig, objective: Objective) -> PlacementProposal:
    """Return the best placement found between the default device and the fallback device.

    The same network, config and targets give the same proposal. Layers with a device of their own keep it.

    Args:
        network: network to place; it is not modified.
        config: default and fallback device, platforms, precision, pools. It is not modified.
        objective: objective of the placement.

    Raises:
        ConfigError: There are no two devices to choose between, or one does not provide the required estimate.
        PlacementError: A layer can run on neither device.
        NetworkError: The network is invalid.

    Example:
        >>> proposal = propose_placement(network, config, Objective.LATENCY)
        >>> for name, device in proposal.own_devices.items():
        ...     config.set_device_type(network.layer(name), device)
    """
    fallback = _second_device(config)
    design = design_for_assessment(network, config)
    require_places(design, config)
    choices = choices_of(network, config, design, fallback)
    cores = {device: variant.platform.cores for device, variant in design.variants.items() if device != NOWHERE}
    devices = list(dict.fromkeys([config.default_device_type, fallback, *cores]))
    boards = {device: variant.platform.title for device, variant in design.variants.items() if device != NOWHERE}
    model = SegmentModel(choices, design, config, Meter(objective, devices, cores, boards))
    judge = _Judge(network, config, model.meter)
    default, other = choices.placed_on(choices.device), choices.placed_on(fallback)
    options = [judge.option("default placement of a build", {}, design)]
    plain = [Candidate(options[0].title, default), Candidate(f"all supported layers on {fallback}", other)]
    before, *found = _united([*plain, *_found(model, default, other)])
    options[0] = attrs.evolve(options[0], title=before.method, is_exact=before.is_exact)
    for candidate in found:
        own = choices.own_devices(candidate.devices)
        options += judge.options(candidate.method, own, is_exact=candidate.is_exact)
    best = min(range(len(options)), key=lambda number: (*judge.key(options[number], choices.device), number))
    after = options[best]
    unit = objective.unit([one.cost for one in options])
    return PlacementProposal(
        objective=objective,
        unit=unit,
        device=choices.device,
        fallback=fallback,
        before=options[0],
        after=after,
        options=options,
        changes=changes_between(model, options[0].assessment, after.assessment, unit),
        lower_bounds=lower_bounds(model.meter, options[0].cost, after.cost),
    )


def _second_device(config: BuilderConfig) -> str:
    fallback, device = config.fallback_device, config.default_device_type
    if fallback is None or fallback == device:
        raise ConfigError(
            "A placement by cost requires two devices",
            where="default and fallback device",
            found=f"{device} and {fallback or 'no fallback'}",
            allowed="two different ones",
            remedy="Name both: --device DLA --fallback GPU",
        )
    return fallback


def _found(model: SegmentModel, default: tuple[str, ...], other: tuple[str, ...]) -> list[Candidate]:
    """Return the best placements by the model of segments, best first."""
    starts = [Candidate("local search within the limits", default)]
    known = [placed for placed in map(model.placed, (default, other)) if placed.can_be_loaded]
    bound = min((value_of(placed.amounts) for placed in known), default=math.inf)
    chained = chain_candidate(model, bound) if is_chain(model) else None
    if chained is not None:
        starts.append(chained)
    else:
        starts += cut_candidates(model)
    ends = []
    for start in _united(starts):
        placed = improved(model, repaired(model, start.devices))
        # Steps find nothing better than the best of a chain, only placements of the same value that need less said.
        is_exact = start.is_exact and (chained is not None or placed.devices == start.devices)
        ends.append((placed.key, attrs.evolve(start, devices=placed.devices, is_exact=is_exact)))
    return [candidate for _, candidate in sorted(ends, key=lambda end: end[0])[:BUILT]]


def _united(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return placements without duplicates, each with all methods that found it."""
    found: dict[tuple[str, ...], Candidate] = {}
    for candidate in candidates:
        same = found.get(candidate.devices)
        found[candidate.devices] = candidate if same is None else same.and_by(candidate)
    return list(found.values())


class _Judge:
    """Passes placements through the stages of a build."""

    def __init__(self, network: Network, config: BuilderConfig, meter: Meter) -> None:
        self._network = network
        self._config = config
        self._meter = meter

    def options(self, title: str, own: Mapping[str, str], *, is_exact: bool) -> list[PlacementOption]:
        """Return the placement; empty if it cannot be built."""
        with _given(self._network, self._config, own):
            design = design_for_assessment(self._network, self._config)
            can_be_built = not design.refusals and not design.formats.problems
            return [self.option(title, own, design, is_exact=is_exact)] if can_be_built else []

    def option(self, title: str, own: Mapping[str, str], design: Design, *, is_exact: bool = False) -> PlacementOption:
        """Return a placement that was designed."""
        cost = network_cost(design)
        macs = {layer.name: layer.multiply_accumulates(design.specs) for layer in design.network.layers}
        by_device: dict[str, int] = {}
        for segment in cost.segments:
            taken = sum(macs[layer] for layer in segment.layers)
            by_device[segment.device] = by_device.get(segment.device, 0) + taken
        return PlacementOption(
            title=title,
            own_devices={**self._config.explicit_device_types(self._network), **own},
            assessment=assessment_of(design, self._config),
            cost=cost,
            macs=by_device,
            value=value_of(self._meter.of_network(cost, macs)),
            is_exact=is_exact,
        )

    def key(self, option: PlacementOption, device: str) -> tuple[float, ...]:
        """Return the comparison key: the value, for the coverage objective segments, and the number of assignments."""
        counts = self._meter.objective is Objective.DLA_COVERAGE
        return option.value, option.segments_on(device) if counts else 0, len(option.own_devices)


@contextmanager
def _given(network: Network, config: BuilderConfig, own: Mapping[str, str]) -> Iterator[None]:
    """Temporarily assign layer devices in a config that has none."""
    layers = {name: network.layer(name) for name in own}
    try:
        for name, device in own.items():
            config.set_device_type(layers[name], device)
        yield
    finally:
        for layer in layers.values():
            config.reset_device_type(layer)
