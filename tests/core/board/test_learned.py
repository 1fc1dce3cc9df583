"""What is learnt of a board: rules from verdicts, parameters from latencies.

The boards are drawn at random (`stand_in_boards`); `make thorough` draws 50, and `make test` a few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from tests.core.board import stand_in_boards as boards

import dryfit
from dryfit.board.learned_cost import Measurement, learn_cost
from dryfit.board.learned_rules import LearnedRules, SeenLayer, learn_rules
from dryfit.plugins import registry
from dryfit.target.overlays import numbers, with_numbers

LEAST_FOUND, LARGEST_ERROR = 0.95, 0.10


def found_and_wrong(seeds: Sequence[int], precisions: Sequence[str]) -> tuple[int, int, list[str]]:
    """(changed rules, those of them that are named, unchanged rules that are named) over boards."""
    changed, found, wrong = 0, 0, list[str]()
    for seed in seeds:
        board = boards.drawn_board(seed, precisions)
        named = boards.learned_rules(board, precisions).changes
        changed += len(board.rules)
        found += len(named.keys() & board.rules.keys())
        wrong += [f"board {seed}: {rule}" for rule in named.keys() - board.rules.keys()]
    return changed, found, wrong


def test_the_rules_of_a_few_boards_are_learnt() -> None:
    changed, found, wrong = found_and_wrong(range(4), ["fp16"])
    assert (wrong, changed >= 12) == ([], True)
    assert found >= LEAST_FOUND * changed - 1


@pytest.mark.nightly
def test_the_rules_of_fifty_boards_are_learnt() -> None:
    changed, found, wrong = found_and_wrong(range(50), boards.PRECISIONS)
    assert (wrong, changed >= 150) == ([], True)
    assert found >= LEAST_FOUND * changed


def held_out_errors(seeds: Sequence[int], device: str) -> list[float]:
    """Median error of latencies that were left out of the fit, by board."""
    found = [boards.learned_cost(boards.drawn_board(seed), seed, device) for seed in seeds]
    assert None not in found
    return [one.error_held_out for one in found if one is not None]


def test_the_costs_of_a_board_are_learnt_with_their_errors() -> None:
    board = boards.drawn_board(1)
    learned = boards.learned_cost(board, 1)
    assert learned is not None
    assert learned.error_held_out <= LARGEST_ERROR
    drawn = board.cost["dla"]
    for name in ("rates.INT8.macs_per_cycle", "rates.FP16.macs_per_cycle", "bytes_per_second"):
        one = learned.parameters[name]
        assert one.error is not None
        assert abs(np.log(one.value / drawn[name].value)) <= max(4 * one.error, 0.1)
    assert learned.parameters["error_factors.INT8"].value == pytest.approx(1 + learned.largest_held_out, abs=0.1)
    assert "copy_seconds" not in learned.parameters  # no latency depends on it


def test_the_costs_of_a_gpu_are_learnt_and_its_estimate_is_no_longer_a_bound() -> None:
    board = boards.drawn_board(2)
    learned = boards.learned_cost(board, 2, "GPU")
    assert learned is not None
    assert learned.error_held_out <= LARGEST_ERROR < learned.error_before
    drawn = board.cost["gpu"]
    for name in ("macs_per_cycle.INT8", "macs_per_cycle.FP16", "memory_bytes", "launch_seconds"):
        assert learned.parameters[name].value == pytest.approx(drawn[name].value, rel=0.1)
    overlay = dryfit.Overlay("my-board", boards.PLATFORM, cost={"gpu": learned.parameters})
    model = boards.chain_model(64, 28, 2, 3)
    found = dryfit.estimate(model, device="GPU", precision="fp16", overlays=overlay)
    [segment] = found.segments
    assert (segment.is_lower_bound, segment.error_factor) == (False, learned.parameters["error_factors.FP16"].value)
    assert segment.source.startswith("macs_per_cycle.INT8, ")
    plain = dryfit.estimate(model, device="GPU", precision="fp16", platform=boards.PLATFORM)
    assert (plain.segments[0].is_lower_bound, plain.segments[0].error_factor) == (True, None)
    assert segment.microseconds > plain.segments[0].microseconds
    assert segment.energy == plain.segments[0].energy


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["DLA", "GPU"])
def test_the_costs_of_fifty_boards_are_learnt(device: str) -> None:
    assert max(held_out_errors(range(50), device)) <= LARGEST_ERROR


def test_too_few_latencies_fit_nothing() -> None:
    parameters = registry.target("DLA").cost_parameters["orin-nx-16"]
    assert learn_cost(parameters, [Measurement("a", "a", 1.0, lambda _: 1.0)] * 3) is None
    assert learn_cost(parameters, [Measurement("a", "a", 1.0, lambda _: 1.0)] * 9) is None


def test_a_fit_of_exact_latencies_finds_the_parameters() -> None:
    parameters = registry.target("DLA").cost_parameters["orin-nx-16"]
    true = with_numbers(parameters, {"bytes_per_second": 2e10, "step_cycles": 9000.0})

    def latency(size: float, steps: int) -> Any:
        return lambda record: size / record.bytes_per_second * 1e6 + steps * record.step_cycles / 1000

    estimates = [latency(size, steps) for size, steps in ((1e6, 1), (5e6, 3), (1e7, 2), (3e7, 9), (2e6, 12), (1e8, 1))]
    found = learn_cost(parameters, [Measurement(str(i), str(i), one(true), one) for i, one in enumerate(estimates)])
    assert found is not None
    assert found.parameters.keys() == {"bytes_per_second", "step_cycles"}
    assert numbers(true)["bytes_per_second"] == pytest.approx(found.parameters["bytes_per_second"].value, rel=0.01)
    assert numbers(true)["step_cycles"] == pytest.approx(found.parameters["step_cycles"].value, rel=0.01)
    assert found.error_held_out < 0.01 < found.error_before


# Single conclusions ---------------------------------------------------------------------------------------------------


def pooled(window: int, stride: int = 1) -> Any:
    """A pooling layer as the rules of the DLA see it."""
    network = dryfit.Network("pool")
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, 8, 128, 128))
    layer = network.add_pooling_nd(x, dryfit.PoolingType.MAX, (window, window))
    layer.stride_nd = (stride, stride)
    network.mark_output(layer.get_output(0))
    config = dryfit.BuilderConfig()
    config.set_flag(dryfit.BuilderFlag.FP16)
    config.set_platform("DLA", boards.PLATFORM)
    return config.question(layer, registry.target("DLA")), network


def learnt(*seen: tuple[Any, bool]) -> LearnedRules:
    table = registry.target("DLA").limits
    assert table is not None
    layers = [SeenLayer(f"b/{index}", [one[0]], is_taken) for index, (one, is_taken) in enumerate(seen)]
    return learn_rules(table, layers)


def test_a_layer_that_runs_against_a_rule_widens_the_limit_up_to_what_was_refused() -> None:
    found = learnt((pooled(8), True), (pooled(10), True), (pooled(11), False))
    [(rule, change)] = found.changes.items()
    assert (rule, change.text, change.layers) == ("dla.pooling.window", "high = 10", 2)
    assert change.reason == "10 ran on the device, 11 was refused"


def test_a_limit_that_far_values_pass_is_off() -> None:
    found = learnt((pooled(9), True), (pooled(17), True))
    assert found.changes["dla.pooling.window"].text == "off"
    assert found.changes["dla.pooling.window"].reason == "2 layers against it ran on the device: 17, 9"


def test_a_refused_layer_narrows_the_only_limit_that_can_be_the_reason() -> None:
    others = [(pooled(4, 16), True), (pooled(1), True)]
    found = learnt((pooled(6), False), *others)
    assert {rule: one.text for rule, one in found.changes.items()} == {"dla.pooling.window": "high = 4"}
    assert found.changes["dla.pooling.window"].reason == "4 ran on the device, 6 was refused"


def test_nothing_is_named_where_two_limits_can_be_the_reason() -> None:
    found = learnt((pooled(6, 9), False), (pooled(4, 2), True), (pooled(1), True))
    assert found.changes == {}
    [undecided] = found.undecided
    assert undecided.candidates == ["dla.pooling.stride", "dla.pooling.window"]


def test_the_boards_own_message_decides_between_two() -> None:
    table = registry.target("DLA").limits
    assert table is not None
    refused = SeenLayer("b/0", [pooled(6, 9)[0]], False, ["dla.pooling.stride"])
    found = learn_rules(table, [refused, SeenLayer("b/1", [pooled(4, 2)[0]], True)])
    assert list(found.changes) == ["dla.pooling.stride"]


def test_a_rule_is_confirmed_by_layers_that_were_refused_for_it_alone() -> None:
    found = learnt((pooled(9), False), (pooled(8), True), (pooled(9, 17), False))
    assert (found.changes, {rule: one.layers for rule, one in found.confirmed.items()}) == (
        {},
        {"dla.pooling.window": 1},
    )


def test_a_kind_that_the_device_lacks_explains_a_refusal() -> None:
    table = registry.target("DLA").limits
    assert table is not None
    network = dryfit.Network("shape")
    layer = network.add_shape(network.add_input("x", dryfit.DataType.FLOAT, (1, 8, 4, 4)))
    config = dryfit.BuilderConfig()
    config.set_flag(dryfit.BuilderFlag.FP16)
    question = config.question(layer, registry.target("DLA"))
    refused = SeenLayer("b/0", [question], is_taken=False)
    assert learn_rules(table, [refused]).confirmed["dla.layer.kind"].layers == 1
    [surprise] = learn_rules(table, [attrs.evolve(refused, is_taken=True)]).undecided
    assert (surprise.candidates, surprise.is_taken) == (["dla.layer.kind"], True)
