"""Rounds of probes that narrow a moved limit, on boards that are drawn at random (`stand_in_boards`)."""

from __future__ import annotations

import attrs
import pytest
from tests.core.board import stand_in_boards as boards

from dryfit.answers.board.narrowing import MOST_VALUES, narrowing_probes
from dryfit.board.kit.probes import FAMILIES, candidate_of, network_of
from dryfit.board.learned_rules import OpenLimit, Shape, learn_rules, shape_of
from dryfit.plugins import registry
from dryfit.target.overlays import Overlay, RuleChange

ROUNDS = 4


def moved(rule: str, **limits: int) -> Overlay:
    """A board that has one limit elsewhere."""
    return Overlay("moved", boards.PLATFORM, boards.SOFTWARE, rules={rule: RuleChange(limits=limits)})


@attrs.frozen
class Narrowed:
    """What rounds of probes found of a board.

    Attributes:
        limits: rule to the limits that were learnt.
        left: limits that are still between two tried values.
        builds: builds of each round.
    """

    limits: dict[str, RuleChange]
    left: list[OpenLimit]
    builds: list[int]


def narrowed(board: Overlay) -> Narrowed:
    """Go to a board with all probes, and then with those that narrow what it has elsewhere."""
    table = registry.target("DLA").limits
    assert table is not None
    seen = list(boards.verdicts(board, ["fp16"]))
    builds: list[int] = []
    while True:
        learned = learn_rules(table, seen)
        overlay = Overlay("learnt", boards.PLATFORM, boards.SOFTWARE, rules=learned.changes)
        asked = narrowing_probes(overlay, learned.open_limits, boards.PLATFORM, boards.SOFTWARE)
        if len(builds) == ROUNDS or not asked.networks:
            return Narrowed(dict(learned.changes), list(learned.open_limits), builds)
        builds.append(len(asked.networks))
        probes = boards.probes_of([asked.candidates], "fp16")
        seen += boards.verdicts_on(board, probes)


@pytest.mark.parametrize(
    ("rule", "high", "rounds"),
    [
        ("dla.convolution.stride", 6, 1),
        pytest.param("dla.convolution.dilation", 19, 1, marks=pytest.mark.nightly),
        pytest.param("dla.batch", 2900, 2, marks=pytest.mark.nightly),
    ],
)
def test_a_moved_limit_is_found(rule: str, high: int, rounds: int) -> None:
    found = narrowed(moved(rule, high=high))
    assert (found.limits[rule].limits, found.left, len(found.builds)) == ({"high": high}, [], rounds)
    assert list(found.limits) == [rule]


@pytest.mark.nightly
def test_a_limit_beyond_all_tried_values_is_found() -> None:
    found = narrowed(moved("dla.pooling.stride", high=27))
    assert (found.limits["dla.pooling.stride"].limits, found.left, found.builds) == ({"high": 27}, [], [1, 1])


@pytest.mark.nightly
def test_a_limit_that_a_function_compares_is_found() -> None:
    found = narrowed(moved("dla.convolution.cbuf", banks=12))
    assert (found.limits["dla.convolution.cbuf"].limits, found.left) == ({"banks": 12}, [])


@pytest.mark.nightly
def test_the_values_of_a_round_are_spread_and_what_is_left_is_said() -> None:
    board = moved("dla.batch", high=2100)
    asked = narrowing_probes(board, [OpenLimit("dla.batch", "high", 2048, 4096)], boards.PLATFORM, boards.SOFTWARE)
    [limit] = asked.limits
    assert (limit.values, limit.left, limit.note) == (MOST_VALUES, 32, "")
    assert len(asked.networks) == 5
    none = OpenLimit("dla.lrn.window", "high", 9, None)
    [limit] = narrowing_probes(board, [none], boards.PLATFORM, boards.SOFTWARE).limits
    assert (limit.values, limit.left) == (0, None)
    assert limit.note == "no probe has a value between them that no other rule refuses"


def test_each_family_has_candidates_that_import() -> None:
    model = network_of([candidate_of(family, 2) for family in FAMILIES])
    assert len(boards.designed(model, "fp16")[2].network.layers) >= len(FAMILIES)


@pytest.mark.nightly
def test_the_moved_limits_of_fifty_boards_are_found() -> None:
    table = registry.target("DLA").limits
    assert table is not None
    ranges, exact, wrong, builds, rounds = 0, 0, list[str](), 0, 0
    for seed in range(50):
        board = boards.drawn_board(seed, ["fp16"])
        found = narrowed(board)
        builds, rounds = builds + sum(found.builds), max(rounds, len(found.builds))
        for rule, change in board.rules.items():
            # A lower rank than that of all probes is as good as no limit.
            is_range = shape_of(table.rule(rule)) in (Shape.RANGE, Shape.BOUND)
            if not change.enabled or not is_range or "low" in change.limits:
                continue
            ranges += 1
            learnt = found.limits.get(rule)
            exact += learnt is not None and learnt.limits == change.limits
            if learnt is not None and learnt.limits != change.limits and rule not in {one.rule for one in found.left}:
                wrong.append(f"{board.name}: {rule}: {learnt.text} for {change.text}")
    assert (wrong, ranges >= 15) == ([], True)
    assert exact >= 0.8 * ranges, f"{exact} of {ranges} moved limits, {builds} builds in up to {rounds} rounds"
