from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from dryfit.answers.check import placement_outcomes
from dryfit.answers.conditions import PLACEMENT_SUBJECTS as SUBJECTS
from dryfit.answers.placement import LayerAnswer, Placement, PlacementSummary
from dryfit.target.verdict import Verdict, Violation

DLA = ("--device", "dla", "--precision", "fp16", "--shape", "image=1x1x8x8", "--fallback", "GPU")


def violation(rule: str) -> Violation:
    return Violation(rule, "parameter", "actual", "allowed", "message", "", "")


def layer(
    name: str, device: str | None, violations: tuple[str, ...] = (), warnings: tuple[str, ...] = ()
) -> LayerAnswer:
    verdict = Verdict(name, "DLA", violations=map(violation, violations), warnings=map(violation, warnings))
    segment = None if device in (None, "CPU") else 0
    return LayerAnswer(name, "convolution", [], device, segment, "HALF", "", {"DLA": verdict})


REPORT = Placement(
    model="model",
    device="DLA",
    platform="",
    software="",
    precisions=[],
    fallback="GPU",
    assumed=[],
    simulated="",
    plugins=[],
    overlays=[],
    layers=[
        layer("conv", "DLA", warnings=("dla.convolution.cbuf_estimate",)),
        layer("wide", "GPU", ("dla.convolution.kernel", "dla.extents"), ("dla.convolution.cbuf_estimate",)),
        layer("elu", "GPU", ("dla.activation.type",)),
        layer("pool", "DLA"),
        layer("shape", "CPU"),
    ],
    segments=[],
    offloading=[],
    reformats=[],
    quantized_operators=[],
    warnings=[],
    refusals=[],
    summary=PlacementSummary(
        layers=5,
        layers_by_device={},
        precisions_by_device={},
        fallback_layers=2,
        unplaced_layers=0,
        segments=4,
        segments_by_device={"DLA": 3, "GPU": 1},
        reformats=3,
        reformat_bytes=3072,
        warnings=1,
    ),
)


@pytest.mark.parametrize(
    ("condition", "failed", "actual"),
    [
        ("fallback", True, "2 of 4 layers (50.0 %)"),
        ("fallback>2", False, "2 of 4 layers (50.0 %)"),
        ("fallback>=2", True, "2 of 4 layers (50.0 %)"),
        ("fallback>49.9%", True, "2 of 4 layers (50.0 %)"),
        ("fallback > 50 %", False, "2 of 4 layers (50.0 %)"),
        ("unplaced", False, "0 of 4 layers (0.0 %)"),
        ("loadables>2", True, "3 on DLA"),
        ("loadables>3", False, "3 on DLA"),
        ("segments=4", True, "4"),
        ("segments != 4", False, "4"),
        ("reformats<=3", True, "3 of 3.0 KiB"),
        ("reformats<3", False, "3 of 3.0 KiB"),
        ("reformats>2.9KiB", True, "3 of 3.0 KiB"),
        ("reformats>3KiB", False, "3 of 3.0 KiB"),
        ("reformats>3kb", True, "3 of 3.0 KiB"),
        ("warnings==1", True, "1"),
        ("warning", True, "1"),
        ("reformat", True, "3 of 3.0 KiB"),
        ("dla.activation.type", True, "1 layer (elu)"),
        ("DLA.Activation", True, "1 layer (elu)"),
        ("dla.activation>1", False, "1 layer (elu)"),
        ("dla.convolution", True, "2 layers (conv, wide)"),
        ("dla.convolution.cbuf", False, "0 layers (none)"),
        ("dla.convolution.cbuf_estimate", True, "1 layer (conv)"),
        ("dla", True, "3 layers (conv, wide, elu)"),
        ("dla.pooling.window", False, "0 layers (none)"),
    ],
)
def test_a_condition_compares_what_the_report_says(condition: str, failed: bool, actual: str) -> None:
    (outcome,) = placement_outcomes([SUBJECTS.condition(condition)], REPORT)
    assert (outcome.condition, outcome.failed, outcome.actual) == (condition, failed, actual)


def test_nothing_is_no_share_of_nothing() -> None:
    report = attrs.evolve(REPORT, layers=[], summary=attrs.evolve(REPORT.summary, fallback_layers=0))
    (outcome,) = placement_outcomes([SUBJECTS.condition("fallback>0%")], report)
    assert not outcome.failed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fallback>", "'fallback>' is not a condition; conditions are"),
        ("fallback>>3", "'fallback>>3' is not a condition; conditions are"),
        (">3", "'>3' is not a condition; conditions are"),
        ("fallback>-1", "'fallback>-1' is not a condition; conditions are"),
        ("loadables>3%", "loadables does not support the unit '%', allowed: none"),
        ("fallback>3KiB", "fallback does not support the unit 'KiB', allowed: %"),
        ("fallbck", "did you mean 'fallback'?"),
        ("dla.convolution.cbuff", "did you mean 'dla.convolution.cbuf'?"),
        ("dla.conv", "unknown condition or rule 'dla.conv'"),
    ],
)
def test_what_is_no_condition_says_what_would_be_one(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        SUBJECTS.condition(text)


def test_conditions_can_stand_in_one_list_and_in_several(dryfit_command: Any, digits_model: Path) -> None:
    fail_on = ("--fail-on", "fallback>3%,loadables>8", "--fail-on", "dla.activation.type , reformats>1GiB")
    ended = dryfit_command("check", digits_model, *DLA, *fail_on, "--json")
    assert ended.code == 1
    assert [(one["condition"], one["failed"]) for one in ended.json["conditions"]] == [
        ("fallback>3%", True),
        ("loadables>8", False),
        ("dla.activation.type", True),
        ("reformats>1GiB", False),
    ]
    assert "--fail-on fallback>3%: " in ended.err
    assert "--fail-on dla.activation.type: 1 layer (elu2)" in ended.err
    assert "loadables" not in ended.err


def test_conditions_that_do_not_hold_leave_the_exit_code_at_0(dryfit_command: Any, digits_model: Path) -> None:
    ended = dryfit_command("check", digits_model, *DLA, "--fail-on", "fallback>99%,loadables>8,dla.pooling")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("text", ["", " , ", "fallback,loadable"])
def test_a_list_without_a_right_condition_is_an_error_and_no_pass(
    dryfit_command: Any, digits_model: Path, text: str
) -> None:
    ended = dryfit_command("check", digits_model, *DLA, "--fail-on", text)
    assert ended.code == 2
    assert "fallback, unplaced, loadables" in ended.err
    assert not ended.out


def test_two_formats_at_once_are_refused(dryfit_command: Any, digits_model: Path) -> None:
    ended = dryfit_command("check", digits_model, *DLA, "--json", "--format", "sarif")
    assert ended.code == 2
    assert "--json and --format sarif cannot be combined" in ended.err


def test_json_can_be_asked_for_in_two_ways(dryfit_command: Any, digits_model: Path) -> None:
    short = dryfit_command("check", digits_model, *DLA, "--json").out
    assert short == dryfit_command("check", digits_model, *DLA, "--format", "json").out
