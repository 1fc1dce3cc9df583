"""The minimum cut against all divisions of small random graphs."""

from __future__ import annotations

import itertools
import random

import pytest

from dryfit.answers.placement_search.cut import CutFlow, Following, SideCosts, cheapest_sides


def random_costs(seed: int) -> SideCosts:
    source = random.Random(seed)  # noqa: S311  drawn, not secret
    count = source.randint(1, 8)

    def cost(may_be_missing: bool) -> int | None:
        return None if may_be_missing and source.random() < 0.2 else source.randint(0, 20)

    first = [cost(True) for _ in range(count)]
    second = [cost(one is not None) for one in first]
    flows = [
        CutFlow(
            giver,
            sorted(source.sample(range(count), source.randint(1, min(3, count)))),
            source.randint(0, 15),
            source.randint(0, 15),
        )
        for giver in range(count)
        if source.random() < 0.8
    ]
    followings = [
        Following(layer, source.randrange(layer), source.randint(0, 9), source.randint(0, 9))
        for layer in range(1, count)
        if source.random() < 0.4
    ]
    free = [one for one in range(count) if first[one] is not None and second[one] is not None]
    tied = [(free[0], free[-1])] if len(free) > 2 and source.random() < 0.3 else []
    return SideCosts(first, second, followings, flows, tied)


@pytest.mark.parametrize("seed", range(120))
def test_no_division_of_a_small_graph_costs_less(seed):
    costs = random_costs(seed)
    divisions = [list(sides) for sides in itertools.product([True, False], repeat=len(costs.on_first))]
    totals = {tuple(sides): costs.total(sides) for sides in divisions}
    least = min(total for total in totals.values() if total is not None)
    found = cheapest_sides(costs)
    assert costs.total(found) == least
    best = [sides for sides, total in totals.items() if total == least]
    assert sum(found) == max(map(sum, best)), "of several the one with most layers on the first device"


def test_a_tensor_costs_once_for_all_its_readers():
    flow = CutFlow(0, [1, 2, 3], to_first=5, to_second=5)
    costs = SideCosts([0, None, None, None], [9, 0, 0, 0], flows=[flow])
    assert cheapest_sides(costs) == [True, False, False, False]
    assert costs.total([True, False, False, False]) == 5


def test_a_layer_stays_with_the_step_that_it_costs_nothing_in():
    following = Following(1, 0, alone_on_first=7, alone_on_second=7)
    costs = SideCosts([10, 0], [30, 0], [following])
    assert cheapest_sides(costs) == [True, True]
    assert costs.total([True, False]) == 17


def test_layers_that_have_no_side_together_are_refused():
    with pytest.raises(ValueError, match="no partition"):
        cheapest_sides(SideCosts([None, 0], [0, None], tied=[(0, 1)]))
