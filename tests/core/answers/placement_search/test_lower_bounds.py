"""Where a device's time is a bound from below, a proposal tells how much longer the device may take."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.answers.placement_search import acme_costs
from tests.core.builder.networks import chain

from dryfit.answers.placement_search.objective import Objective
from dryfit.answers.placement_search.proposal import PlacementOption, propose_placement
from dryfit.builder.config.builder_config import BuilderConfig

FAST, PLAIN = "ACME_FAST", "ACME_PLAIN"
BRIEF = chain("r", "e", "r", "e", "c")
"""Short ReLUs on both sides of ELUs, which only the plain device has: their copies take longer than they do."""


@pytest.fixture
def proposed(install: Any) -> Any:
    """`proposed(objective, **settings)` is the proposal for the network between the two devices."""

    def proposal(objective: Objective, **settings: Any) -> Any:
        install("acme_costs", acme_costs.module(**settings), {"dryfit.targets": acme_costs.ENTRY_POINTS})
        config = BuilderConfig()
        config.default_device_type = FAST
        config.allow_fallback(PLAIN)
        return propose_placement(BRIEF, config, objective)

    return proposal


def times(option: PlacementOption) -> tuple[float, float]:
    """Microseconds on the plain device, and of all else, one after the other."""
    plain = option.cost.busy_microseconds(PLAIN) or 0.0
    return plain, (option.cost.latency_microseconds or 0.0) - plain


def test_the_factor_is_where_both_placements_take_the_same_time(proposed: Any) -> None:
    proposal = proposed(Objective.LATENCY, bound=True)
    (plain_before, rest_before), (plain_after, rest_after) = times(proposal.before), times(proposal.after)
    assert plain_after > plain_before
    assert proposal.lower_bounds.devices == (PLAIN,)
    assert proposal.lower_bounds.factor == pytest.approx((rest_before - rest_after) / (plain_after - plain_before))
    assert proposal.lower_bounds.factor > 1


def test_throughput_is_compared_by_the_busiest_device(proposed: Any) -> None:
    proposal = proposed(Objective.THROUGHPUT, bound=True)
    before, after = ({**one.cost.pipeline_microseconds} for one in (proposal.before, proposal.after))
    factor = proposal.lower_bounds.factor
    assert factor is not None

    def busiest(times: dict[str, float], option: PlacementOption, stretched: float) -> float:
        added = (stretched - 1) * (option.cost.busy_microseconds(PLAIN) or 0.0)
        return max(times.get(FAST, 0.0), times.get(PLAIN, 0.0) + added)

    for stretched, is_better in ((0.999 * factor, True), (1.001 * factor, False)):
        value_after = busiest(after, proposal.after, stretched)
        assert (value_after < busiest(before, proposal.before, stretched)) is is_better


def test_what_takes_less_of_the_bounded_device_holds_however_long_it_takes(proposed: Any, install: Any) -> None:
    proposal = proposed(Objective.LATENCY, bound=True)
    config = BuilderConfig()
    config.default_device_type = PLAIN
    config.allow_fallback(FAST)
    network = chain("c", "c", "c")
    away = propose_placement(network, config, Objective.LATENCY)
    assert set(away.own_devices.values()) == {FAST}
    assert away.lower_bounds is not None
    assert away.lower_bounds.factor is None
    assert proposal.lower_bounds.factor is not None


@pytest.mark.parametrize("objective", [Objective.ENERGY, Objective.DLA_COVERAGE])
def test_bounds_of_time_say_nothing_where_time_does_not_count(proposed: Any, objective: Objective) -> None:
    assert proposed(objective, bound=True).lower_bounds is None


def test_without_a_bound_there_is_nothing_to_say(proposed: Any) -> None:
    assert proposed(Objective.LATENCY).lower_bounds is None
