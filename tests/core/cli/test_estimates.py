"""What a target estimates of costs, and that nothing of it looks measured."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.schemas import validate

from dryfit.answers.build import BuildAnswer
from dryfit.answers.check import CheckAnswer
from dryfit.answers.explain import ExplainAnswer
from dryfit.answers.inspect_engine import InspectAnswer

DEVICE = """
import numpy as np

from dryfit.target.cost import CostEstimate
from dryfit.target.fusions import Fusion
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

LIMITS = LimitTable("ACME_COST", [], supported_kinds={"convolution", "activation", "pooling", "fully_connected"})
FUSIONS = [Fusion("convolution-activation", ["convolution", "activation"], source="Acme manual, 4")]
PER_SECOND = {"slow": 1e6, "fast": 1e9}


def estimate_cost(question):
    macs = sum(layer.multiply_accumulates(question.specs) for layer in question.layers)
    shapes = [question.specs[tensor.name].shape for layer in question.layers for tensor in layer.outputs]
    moved = sum(int(np.prod(shape)) * 4 for shape in shapes)
    time = macs / PER_SECOND[question.platform.family] * 1e6
    return CostEstimate(time, moved, macs, "multiply-accumulates by their rate", "Acme manual, 2")


def stumble(question):
    return 1 / 0


def number(question):
    return 12


def target(device, place):
    platforms = [Platform("fast", "fast", "Fast"), Platform("slow", "slow", "Slow")]
    return Target(
        device, "Acme", platforms, limits_at="acme_cost:LIMITS", fusions_at="acme_cost:FUSIONS", estimate_cost_at=place
    )


COST = target("ACME_COST", "acme_cost:estimate_cost")
STUMBLES = target("ACME_STUMBLES", "acme_cost:stumble")
NUMBER = target("ACME_NUMBER", "acme_cost:number")
"""
ENTRY_POINTS = {"acme-cost": "acme_cost:COST", "acme-stumbles": "acme_cost:STUMBLES", "acme-number": "acme_cost:NUMBER"}
SHAPE = ("--shape", "image=1x1x8x8")
OPTIONS = ("--device", "acme_cost", "--fallback", "gpu", *SHAPE)


@pytest.fixture(autouse=True)
def _acme(install: Any) -> None:
    """A device that estimates, installed."""
    install("acme_cost", DEVICE, {"dryfit.targets": ENTRY_POINTS})


def test_check_tells_the_estimate_of_each_segment_of_a_device_that_estimates(
    dryfit_command: Any, digits_model: Any
) -> None:
    answer = dryfit_command("check", digits_model, *OPTIONS, "--json").json
    validate(answer, CheckAnswer.schema())
    estimated = {one["device"]: one["estimate"] for one in answer["segments"] if "estimate" in one}
    assert list(estimated) == ["ACME_COST"]
    found = estimated["ACME_COST"]
    assert found["microseconds"] == pytest.approx(found["macs"] / 1e9 * 1e6)
    assert found["macs"] > 0
    assert (found["fidelity"], found["source"]) == ("inferred", "Acme manual, 2")


def test_an_estimate_follows_the_platform(dryfit_command: Any, digits_model: Any) -> None:
    times = []
    for platform in ("fast", "slow"):
        answer = dryfit_command("check", digits_model, *OPTIONS, "--platform", platform, "--json").json
        times += [one["estimate"]["microseconds"] for one in answer["segments"] if "estimate" in one][:1]
    assert times[1] == pytest.approx(times[0] * 1000)


@pytest.mark.parametrize("command", [("check", "--verbose"), ("explain", "--no-edits")], ids=lambda one: one[0])
def test_the_word_estimate_stands_beside_every_time(dryfit_command: Any, digits_model: Any, command: Any) -> None:
    printed = dryfit_command(command[0], digits_model, *OPTIONS, *command[1:]).out
    lines = [line for line in printed.splitlines() if "multiply-accumulates by their rate" in line]
    assert lines
    assert all(re.search(r"segment \d+.*: ~[\d.]+ us \(error not stated\)", line) for line in lines)
    below = printed.split("Estimated cost per inference (not measured)\n")[1]
    assert below.count("multiply-accumulates by their rate") == len(lines)


def test_explain_tells_the_estimates(dryfit_command: Any, digits_model: Any) -> None:
    answer = dryfit_command("explain", digits_model, *OPTIONS, "--no-edits", "--json").json
    validate(answer, ExplainAnswer.schema())
    assert answer["estimates"][0]["device"] == "ACME_COST"


def test_the_engine_keeps_the_estimates(dryfit_command: Any, digits_model: Any, tmp_path: Any) -> None:
    engine = tmp_path / "digits.engine"
    built = dryfit_command("build", digits_model, "-o", engine, *OPTIONS, "--json").json
    told = dryfit_command("inspect", engine, "--json").json
    validate(built, BuildAnswer.schema())
    validate(told, InspectAnswer.schema())
    assert told["segments"] == built["segments"]
    assert "estimate" in built["segments"][0]


def test_a_device_of_a_board_that_was_not_named_tells_no_estimate(dryfit_command: Any, digits_model: Any) -> None:
    options = ("--device", "gpu", "--precision", "fp16", *SHAPE)
    answer = dryfit_command("check", digits_model, *options, "--json").json
    assert not any("estimate" in one for one in answer["segments"])
    assert "stimate" not in dryfit_command("check", digits_model, *options, "--verbose").out


@pytest.mark.parametrize(
    ("device", "message"),
    [("acme_stumbles", "ZeroDivisionError: division by zero"), ("acme_number", "not int")],
)
def test_a_cost_function_that_fails_is_named(dryfit_command: Any, digits_model: Any, device: str, message: str) -> None:
    ended = dryfit_command("check", digits_model, "--device", device, "--fallback", "gpu", *SHAPE)
    assert ended.code == 0
    assert message in ended.err
    assert "estimate_cost: " in ended.err
    assert "stimated" not in ended.out


def test_targets_show_lists_the_fusions(dryfit_command: Any) -> None:
    shown = dryfit_command("targets", "show", "acme-cost", "--json").json
    assert shown["fusions"] == [
        {"name": "convolution-activation", "kinds": "convolution + activation", "source": "Acme manual, 4"}
    ]
    assert "convolution-activation" in dryfit_command("targets", "show", "acme_cost").out
