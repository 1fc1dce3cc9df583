"""The objectives of a placement search, and the parts of an estimate that they count.

Each objective counts amounts, which are summed over segments and copies; the value of a placement is the largest
amount, and lower is better.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence

import attrs

from dryfit.answers.network_cost import NetworkCost
from dryfit.answers.placement_search.chain import Amounts
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit.target.cost import CostEstimate

_DIGITS = 6
"""To which values are compared: sums of the same numbers in another order are the same."""

_ENERGY_ALLOWED = (
    "`energy` in each `CostEstimate` of its target, in joules or, where a ratio of images per second and watt is "
    "published for the two devices, in the unit of the other device's target"
)
_NO_BUDGET = (
    "The watts in a power mode's name cannot replace it: they are a budget for the whole board, so multiplied by any "
    "time they rank placements as --objective latency does, and they are not a bound where the time is itself an "
    "estimate"
)


class Objective(enum.StrEnum):
    """The objective of a placement."""

    LATENCY = "latency"
    """The least time of one run: segments and copies one after the other."""
    THROUGHPUT = "throughput"
    """Most runs a second with all devices at work at once on different runs: the busiest device decides. A copy keeps
    the device busy that makes it; the cores of a device share its runs."""
    ENERGY = "energy"
    """The least energy of one run."""
    DLA_COVERAGE = "dla-coverage"
    """Most multiply-accumulates on the default device, the DLA as a rule, and of these the fewest segments."""

    @property
    def needs(self) -> str:
        """Estimates that a target must provide, in words; "" for none."""
        return {Objective.ENERGY: "energy", Objective.DLA_COVERAGE: ""}.get(self, "time")

    def unit(self, costs: Sequence[NetworkCost]) -> str:
        """Unit of the values of placements.

        Raises:
            ConfigError: Energies are reported in several units.
        """
        if self is not Objective.ENERGY:
            return "multiply-accumulates elsewhere" if self is Objective.DLA_COVERAGE else "microseconds"
        units: dict[str, str] = {}
        for device, energy in (part for cost in costs for part in cost.energies):
            if energy is not None:
                units.setdefault(energy.unit, device)
        if len(units) > 1:
            raise ConfigError(
                "Energies of devices must have the same unit",
                where="--objective energy",
                found="; ".join(f"{unit} for {device}" for unit, device in sorted(units.items())),
                allowed="the same `unit` in the `Energy` of every device's target",
                remedy="Express all in joules, or all by the work of the same device (`Energy.of_work`)",
            )
        return next(iter(units), "joules")


@frozen
class Meter:
    """Counts the amounts of one objective.

    Attributes:
        objective: objective to count.
        devices: devices in use, in a fixed order; the first is the default device.
        cores: number of cores that work at once, by device.
        boards: title of the platform by device, for messages.
    """

    objective: Objective
    devices: Sequence[str]
    cores: Mapping[str, int]
    boards: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def zero(self) -> Amounts:
        """Zero amounts."""
        return (0.0,) * (len(self.devices) if self.objective is Objective.THROUGHPUT else 1)

    def of_segment(self, device: str, estimate: CostEstimate | None, macs: int) -> Amounts:
        """Return the amounts of a segment.

        Raises:
            ConfigError: The target does not provide the required estimate.
        """
        if self.objective is Objective.DLA_COVERAGE:
            return (0.0 if device == self.devices[0] else float(macs),)
        board = self.boards.get(device)
        where = f"device {device}" if board is None else f"device {device} ({board})"
        failure = registry.function_failure(device, "estimate_cost")
        remedy = (
            "" if registry.target(device).estimate_cost_at else f"Declare `estimate_cost_at` in the target {device}"
        )
        needed = self._needed(where, estimate, failure, remedy)
        if self.objective is Objective.THROUGHPUT:
            return self._at(device, needed / max(self.cores[device], 1))
        return (needed,)

    def of_copy(self, copier: str, estimate: CostEstimate | None) -> Amounts:
        """Return the amounts of a copy made by one of two devices; zero if no target estimates copies.

        Raises:
            ConfigError: The target that estimates the copy does not provide the required estimate.
        """
        if self.objective is Objective.DLA_COVERAGE or estimate is None:
            return self.zero
        needed = self._needed(f"copies made by {copier}", estimate)
        return self._at(copier, needed) if self.objective is Objective.THROUGHPUT else (needed,)

    def of_network(self, cost: NetworkCost, macs: Mapping[str, int]) -> Amounts:
        """Return the amounts of a placed network."""
        parts = [
            self.of_segment(one.device, one.estimate, sum(macs.get(layer, 0) for layer in one.layers))
            for one in cost.segments
        ]
        parts += [self.of_copy(one.copier, one.estimate) for one in cost.transfers]
        return total((self.zero, *parts))

    def _needed(self, where: str, estimate: CostEstimate | None, failure: str = "", remedy: str = "") -> float:
        """Return the value of an estimate that counts.

        Args:
            where: what the estimate is of.
            estimate: the estimate, if the target provides one.
            failure: reason for its absence if a function failed.
            remedy: how to get an estimate, if naming the board does not help.
        """
        needs = self.objective.needs
        found = None if estimate is None else estimate.microseconds
        if needs == "energy":
            found = None if estimate is None or estimate.energy is None else estimate.energy.amount
        if found is None:
            raise ConfigError(
                f"A placement for {self.objective} requires {needs} estimates for every device",
                where=where,
                found=f"its cost function failed: {failure}"
                if failure
                else f"the target does not estimate their {needs}",
                allowed=_ENERGY_ALLOWED if needs == "energy" else None,
                remedy="`dryfit plugins doctor` has the traceback" if failure else _remedy(self.objective, remedy),
            )
        return found

    def _at(self, device: str, amount: float) -> Amounts:
        return tuple(amount if one == device else 0.0 for one in self.devices)


def _remedy(objective: Objective, remedy: str) -> str:
    others = [one for one in Objective if not one.needs or (objective.needs == "energy" and one.needs == "time")]
    listed = ", ".join(f"--objective {one}" for one in others)
    if objective.needs == "energy":
        return f"{_NO_BUDGET}. Ask for another objective ({listed}), and measure on the board what each placement draws"
    return f"{remedy or 'Name the board, such as --platform agx-orin-64'}. Other objectives: {listed}"


def total(parts: Sequence[Amounts]) -> Amounts:
    """Return the sum of amounts."""
    return tuple(map(sum, zip(*parts, strict=True)))


def value_of(amounts: Amounts) -> float:
    """Return the value of a placement, rounded so that two sums of the same numbers compare equal."""
    return round(max(amounts), _DIGITS)


# Lower bounds ---------------------------------------------------------------------------------------------------------


_LARGEST_FACTOR = 1024.0
"""Up to which a margin is looked for. Our choice: no kernel misses a published peak by more."""
_HALVINGS = 40


@frozen
class LowerBounds:
    """Devices whose time is a lower bound, and how long the proposal holds if they are slower.

    Attributes:
        devices: names of the devices.
        factor: the proposal is better as long as these devices take less than this multiple of the estimate; None if it
            is always better, and if nothing is proposed.
    """

    devices: tuple[str, ...]
    factor: float | None


def lower_bounds(meter: Meter, before: NetworkCost, after: NetworkCost) -> LowerBounds | None:
    """Return the lower bounds in the times of two placements; None if there are none, or if time is not counted."""
    if meter.objective.needs != "time":
        return None
    devices = tuple(sorted({*_bounded_devices(before), *_bounded_devices(after)}))
    return LowerBounds(devices, None if after is before else _margin(meter, before, after)) if devices else None


def _bounded_devices(cost: NetworkCost) -> Iterable[str]:
    return (one.device for one in cost.segments if one.estimate is not None and one.estimate.is_lower_bound)


def _margin(meter: Meter, before: NetworkCost, after: NetworkCost) -> float | None:
    """Return the smallest factor at which the proposal stops being better, by bisection; None for none."""

    def is_better(factor: float) -> bool:
        return _value(meter, after, factor) < _value(meter, before, factor)

    low, high = 1.0, 2.0
    while is_better(high):
        low, high = high, 2 * high
        if low >= _LARGEST_FACTOR:
            return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_better(middle) else (low, middle)
    return high


def _value(meter: Meter, cost: NetworkCost, factor: float) -> float:
    """Return the value of a placement with the lower-bound times multiplied by a factor."""
    segments = [
        attrs.evolve(one, estimate=attrs.evolve(one.estimate, microseconds=one.estimate.microseconds * factor))
        if one.estimate is not None and one.estimate.is_lower_bound and one.estimate.microseconds is not None
        else one
        for one in cost.segments
    ]
    return value_of(meter.of_network(attrs.evolve(cost, segments=segments), {}))
