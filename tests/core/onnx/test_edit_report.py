"""Edits are proposed when they pay, with what they save, and tried together."""

from __future__ import annotations

import onnx
import pytest
from tests.core.onnx.models import model, numbers

from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError, DryfitError, ExecutionError
from dryfit.onnx.edit_report import Cost, EditReport, propose_edits
from dryfit.onnx.external_data import ExternalData

RULES = ["acme.reduce.operation", "acme.softmax.rank", "acme.shuffle.reshaped_rank", "acme.precision"]


def classifier() -> onnx.ModelProto:
    parsed = model(
        "a = GlobalAveragePool(x) f = Flatten(a) g = Gemm(f, w) y = Softmax(g)",
        inputs="float[1,3,14,14] x",
        outputs="float[1,4] y",
        weights={"w": numbers(3, 4)},
    )
    for node in parsed.graph.node:
        node.name = node.op_type.lower()
    return parsed


def prices(parsed: onnx.ModelProto, **of_kind: int) -> Cost:
    """A device that refuses these operators, each of them so many times as it is told."""
    kinds = [node.op_type for node in parsed.graph.node]
    return Cost(sum(of_kind.get(kind, 0) for kind in kinds), 1, 10 * len(kinds))


def proposed(rules: list[str] = RULES, only_nodes: set[str] | None = None, **of_kind: int) -> EditReport:
    return propose_edits(
        classifier(), ExternalData(None), lambda one: prices(one, **of_kind), rules, only_nodes=only_nodes
    )


def test_an_edit_that_saves_layers_is_proposed_with_what_it_saves() -> None:
    report = proposed(GlobalAveragePool=1)
    (proposal,) = report.proposals
    assert proposal.text == "average-pool-cascade"
    assert proposal.places == ["globalaveragepool"]
    assert (report.cost.refused_layers, proposal.cost.refused_layers, proposal.saved.refused_layers) == (1, 0, 1)
    # Two poolings for one: a node more.
    assert proposal.saved.border_bytes == -10
    assert report.together is None


def test_the_largest_saving_comes_first_and_edits_are_tried_together() -> None:
    report = proposed(GlobalAveragePool=1, Gemm=3)
    assert [proposal.text for proposal in report.proposals] == ["gemm-convolution", "average-pool-cascade"]
    assert report.together is not None
    assert report.together.text == "gemm-convolution,average-pool-cascade"
    assert report.together.saved.refused_layers == 4


def test_an_edit_that_saves_nothing_is_not_proposed() -> None:
    assert not proposed(Relu=1).proposals
    # What it takes away costs as much as what it brings.
    assert not proposed(GlobalAveragePool=1, AveragePool=1).proposals


def test_edits_for_other_rules_are_not_tried() -> None:
    assert not proposed(["acme.precision"], GlobalAveragePool=1).proposals


def test_only_edits_of_the_nodes_that_were_asked_about_are_kept() -> None:
    report = proposed(only_nodes={"gemm"}, GlobalAveragePool=1, Gemm=1)
    assert [proposal.text for proposal in report.proposals] == ["gemm-convolution"]


def test_an_edit_that_pays_at_one_place_only_is_proposed_for_that_place() -> None:
    parsed = model(
        "a = GlobalAveragePool(x) b = GlobalAveragePool(z) y = Add(a, b)",
        inputs="float[1,3,7,7] x, float[1,3,13,13] z",
        outputs="float[1,3,1,1] y",
    )
    parsed.graph.node[0].name, parsed.graph.node[1].name = "small", "large"
    report = propose_edits(
        parsed, ExternalData(None), lambda one: prices(one, GlobalAveragePool=1, Conv=2), ["acme.reduce.operation"]
    )
    assert [proposal.text for proposal in report.proposals] == ["average-pool-cascade@small"]


def test_an_edit_whose_result_cannot_be_placed_is_told_with_the_reason() -> None:
    def measure(one: onnx.ModelProto) -> Cost:
        if any(node.op_type == "AveragePool" for node in one.graph.node):
            raise ConfigError("The placement names a layer that is gone")
        return prices(one, GlobalAveragePool=1, Gemm=1)

    report = propose_edits(classifier(), ExternalData(None), measure, RULES)
    assert report.unmeasured == {"average-pool-cascade": "The placement names a layer that is gone"}
    assert [proposal.text for proposal in report.proposals] == ["gemm-convolution"]


def test_every_edited_model_is_measured_once_and_the_known_cost_not_at_all() -> None:
    measured: list[bytes] = []

    def measure(one: onnx.ModelProto) -> Cost:
        measured.append(one.SerializeToString(deterministic=True))
        return prices(one, GlobalAveragePool=1, Gemm=3)

    report = propose_edits(
        classifier(), ExternalData(None), measure, RULES, cost=prices(classifier(), GlobalAveragePool=1, Gemm=3)
    )
    assert report.together is not None
    assert len(measured) == len(set(measured)) >= 3
    assert classifier().SerializeToString(deterministic=True) not in measured


def test_each_edit_that_is_tried_is_a_step_that_can_be_cancelled() -> None:
    class Monitor(ProgressMonitor):
        def __init__(self) -> None:
            self.phases: list[tuple[str, int]] = []
            self.goes_on = True

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            assert parent_phase is None
            self.phases.append((phase_name, num_steps))

        def step_complete(self, phase_name: str, step: int) -> bool:
            del phase_name, step
            return self.goes_on

        def phase_finish(self, phase_name: str) -> None:
            assert phase_name == self.phases[-1][0]

    monitor = Monitor()
    found = propose_edits(classifier(), ExternalData(None), lambda one: prices(one, Gemm=1), RULES, progress=monitor)
    assert found.proposals
    assert [steps > 0 for _, steps in monitor.phases] == [True, True]
    monitor.goes_on = False
    with pytest.raises(ExecutionError, match="canceled"):
        propose_edits(classifier(), ExternalData(None), lambda one: prices(one, Gemm=1), RULES, progress=monitor)


def test_a_model_that_cannot_be_placed_itself_is_an_error() -> None:
    def measure(_: onnx.ModelProto) -> Cost:
        raise DryfitError("no")

    with pytest.raises(DryfitError, match="no"):
        propose_edits(classifier(), ExternalData(None), measure, RULES)


def test_bytes_that_are_not_known_save_nothing() -> None:
    def measure(one: onnx.ModelProto) -> Cost:
        refused = sum(node.op_type == "GlobalAveragePool" for node in one.graph.node)
        return Cost(refused, 1, None if refused else 100)

    (proposal,) = propose_edits(classifier(), ExternalData(None), measure, ["acme.reduce.operation"]).proposals
    assert proposal.saved.border_bytes is None
