"""What a proposal is worth where a device's time is only a bound from below, as a roofline is.

Such a device takes longer than is reckoned with, so layers are sent there too readily. How much longer it may take
before the proposal is no better than what a build does by itself follows from the same estimates.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dryfit.answers.network_cost import NetworkCost
from dryfit.answers.placement_search.objective import Meter, value_of

_LARGEST_FACTOR = 1024.0
"""Up to which a margin is looked for. Our choice: no kernel misses a published peak by more."""
_HALVINGS = 40


@attrs.frozen
class LowerBounds:
    """Devices whose time is a bound from below, and how far a proposal can do without their reaching it.

    Attributes:
        devices: their names.
        factor: the proposal is better as long as these devices take less than so many times what is reckoned with;
            None for however long, and where nothing is proposed.
    """

    devices: tuple[str, ...]
    factor: float | None


def lower_bounds(meter: Meter, before: NetworkCost, after: NetworkCost) -> LowerBounds | None:
    """The bounds that the times of two placements rest on; None where there are none, or times do not count.

    Args:
        meter: what is compared.
        before: what a build does by itself.
        after: what is proposed; the same where nothing is.
    """
    if meter.objective.needs != "time":
        return None
    devices = tuple(sorted({*_bounded_devices(before), *_bounded_devices(after)}))
    return LowerBounds(devices, None if after is before else _margin(meter, before, after)) if devices else None


def _bounded_devices(cost: NetworkCost) -> Iterable[str]:
    return (one.device for one in cost.segments if one.estimate is not None and one.estimate.is_lower_bound)


def _margin(meter: Meter, before: NetworkCost, after: NetworkCost) -> float | None:
    """The first factor at which the proposal is no better any more, by halving; None where it stays so."""

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
    """The value of a placement where the times that are bounds are so many times as long."""
    segments = [
        attrs.evolve(one, estimate=attrs.evolve(one.estimate, microseconds=one.estimate.microseconds * factor))
        if one.estimate is not None and one.estimate.is_lower_bound and one.estimate.microseconds is not None
        else one
        for one in cost.segments
    ]
    return value_of(meter.of_network(attrs.evolve(cost, segments=segments), {}))
