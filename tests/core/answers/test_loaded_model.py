"""A model that is loaded once: every question answers as for its path, and equal options share one design."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import dryfit
from dryfit.answers import asked
from dryfit.answers.memory_use import memory_use
from dryfit.answers.model_edits import placed_as_asked
from dryfit.builder.design import Design
from dryfit.building import design_for_assessment, design_of_trial

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"
OPTIONS: dict[str, Any] = {"platform": "orin-nx-16", "shape": {"image": (1, 1, 8, 8)}}


@pytest.fixture
def designs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configs that networks were designed with."""
    made = []

    def counted(network: Any, config: Any) -> Any:
        made.append(config)
        return design_for_assessment(network, config)

    monkeypatch.setattr(asked, "design_for_assessment", counted)
    return made


def test_questions_with_equal_options_share_one_design_and_answer_as_for_the_path(designs: list[Any]) -> None:
    model = dryfit.LoadedModel(str(DIGITS))
    for question in (dryfit.check, dryfit.estimate, dryfit.explain):
        assert question(model, **OPTIONS).to_dict() == question(str(DIGITS), **OPTIONS).to_dict()
    memory_use(model, **OPTIONS)
    assert len(designs) == 4  # one for each question about the path, and one for all about the model


def test_other_options_are_designed_anew(designs: list[Any]) -> None:
    model = dryfit.LoadedModel(DIGITS)
    found = [dryfit.check(model, **{**OPTIONS, "precision": one}) for one in ("fp16", "fp16,int8", "fp16")]
    assert [one.precisions for one in found] == [["fp16"], ["fp16", "int8"], ["fp16"]]
    assert len(designs) == 2


def test_settings_of_one_question_do_not_reach_the_next() -> None:
    model = dryfit.LoadedModel(DIGITS)
    typed = dryfit.check(model, **OPTIONS, layer_precisions="conv1:fp32")
    assert typed.layer("conv1").precision != dryfit.check(model, **OPTIONS).layer("conv1").precision


def test_a_network_is_a_snapshot() -> None:
    network = dryfit.network_from_onnx(DIGITS)
    model = dryfit.LoadedModel(network)
    network.unmark_output(network.outputs[0])
    assert dryfit.check(model, **OPTIONS).summary.layers == dryfit.check(DIGITS, **OPTIONS).summary.layers


def _segments(design: Design) -> list[tuple[str, list[str]]]:
    return [(run.device, [layer.name for layer in run.layers]) for run in design.partition.runs]


@pytest.mark.parametrize("limits", [None, {"dla_managed_sram": 0.0078125}, {"dla_local_dram": 8.0}])
def test_the_design_of_a_trial_places_and_copies_as_the_one_of_a_build(limits: Any) -> None:
    options = {**OPTIONS, "precision": "fp16,int8", "assume_scales": True}
    subject = asked.asked(DIGITS, None, options | ({"mem_pool_size": limits} if limits else {}))
    tried = design_of_trial(subject.network, subject.config)
    assert tried.formats == subject.design.formats
    assert _segments(tried) == _segments(subject.design)
    assert tried.assignment.devices == subject.design.assignment.devices
    assert placed_as_asked(subject).cost.border_bytes == sum(one.size for one in tried.formats.reformats)


SQUEEZED_IF_ONE = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N, C] x) => (float[M] y) {
        one = Constant <value_int = 1> ()
        shape = Shape <start = 1> (x)
        is_one = Equal (shape, one)
        squeezed = If (is_one) <
            then_branch = a () => (float[n] p) { axes = Constant <value_ints = [1]> ()  p = Squeeze (x, axes) },
            else_branch = b () => (float[n, c] q) { q = Identity (x) }>
        y = Relu (squeezed)
    }"""
"""As PyTorch exports `squeeze` where an extent is dynamic."""


def test_a_model_that_must_know_its_shapes_is_imported_with_those_of_the_options() -> None:
    source = onnx.parser.parse_model(SQUEEZED_IF_ONE)
    with pytest.raises(dryfit.OnnxImportError, match="static, such as with --shape"):
        dryfit.check(source)
    for model in (source, dryfit.LoadedModel(source)):
        ranks = []
        for shape in ((4, 1), (4, 3)):
            assessment = dryfit.check(model, shape={"x": shape}, device="GPU")
            ranks.append([len(edge.shape) for edge in assessment.edges if edge.destination is None])
        assert ranks == [[1], [2]]
    with pytest.raises(dryfit.OnnxImportError, match=r"input 'x'.*found \(4, 1, 1\); allowed: \(-1, -1\)"):
        dryfit.check(source, shape={"x": (4, 1, 1)})
    with pytest.raises(dryfit.UnknownNameError, match="Unknown input: 'y'"):
        dryfit.check(source, shape={"y": (4, 1)})
