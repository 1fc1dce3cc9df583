"""`check` and `explain` say what plugins had to do with a placement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.onnx.models import model
from tests.core.passes.claiming_package import ACME, CLAIMING, ENTRIES

from dryfit.answers.placement_text import FIRST_ONLY, other_causes

VOTER = """
from dryfit import hookimpl
from dryfit.plugins.contributions import PlacementVote

@hookimpl
def vote_on_placement(layer):
    if layer.kind == "convolution":
        return PlacementVote("GPU", "it is quicker there", 3)
"""
ORIN = ("--device", "dla", "--fallback", "gpu", "--precision", "fp16", "--shape", "image=1x1x8x8")
VOTED = "the fallback device, elected with 3 to 0 votes: acme 1.0 (acme) for GPU with weight 3, it is quicker there"


@pytest.fixture
def quantized_model(tmp_path: Path) -> Path:
    """The sum of two quantized tensors."""
    parsed = model(
        "ar = DequantizeLinear(a, half, zero) br = DequantizeLinear(b, quarter, zero) "
        "s = Add(ar, br) y = QuantizeLinear(s, one, zero)",
        inputs="int8[1,4,3,3] a, int8[1,4,3,3] b",
        outputs="int8[1,4,3,3] y",
        weights={name: np.float32(x) for name, x in {"half": 0.5, "quarter": 0.25, "one": 1}.items()}
        | {"zero": np.int8(0)},
    )
    parsed.graph.node[2].name = "sum"
    path = tmp_path / "sum.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def test_votes_are_told_with_who_voted_and_why(install: Any, dryfit_command: Any, digits_model: Path) -> None:
    install("acme", VOTER)
    answer = dryfit_command("check", digits_model, *ORIN, "--json").json
    moved = [layer for layer in answer["layers"] if layer["kind"] == "convolution"]
    assert moved
    assert all((layer["device"], layer["cause"]) == ("GPU", VOTED) for layer in moved)
    assert all(layer["verdicts"]["DLA"]["supported"] for layer in moved)
    names = ", ".join(layer["name"] for layer in moved)
    for command in ("check", "explain"):
        assert f"{names}: {VOTED}" in dryfit_command(command, digits_model, *ORIN).out
    assert f"on GPU, {VOTED}" in dryfit_command("explain", digits_model, moved[0]["name"], *ORIN).out


def test_claims_are_told_with_who_claimed_what_and_why(
    install: Any, dryfit_command: Any, quantized_model: Path
) -> None:
    install("acme", ACME + CLAIMING, ENTRIES)
    said = "acme 1.0 (acme) claimed it: sums integers (in place of 'sum', "
    for command in ("check", "explain"):
        assert f"sum: the default device; {said}" in dryfit_command(command, quantized_model, "--device", "gpu").out
    (layer,) = dryfit_command("explain", quantized_model, "sum", "--device", "gpu", "--json").json["layers"]
    assert said in layer["cause"]
    assert "sum" in layer["onnx_nodes"]


def test_without_plugins_there_is_nothing_to_tell(dryfit_command: Any, digits_model: Path) -> None:
    assert "Why layers are placed" not in dryfit_command("check", digits_model, *ORIN).out


def test_causes_that_differ_in_names_and_numbers_only_are_one_entry() -> None:
    causes = {
        f"conv{index}": f"DLA segment of layer 'conv{index}': it is segment {index} of DLA, which loads at most 16"
        for index in range(17, 59)
    }
    ((names, text, _),) = other_causes(causes)
    assert names == "conv17, conv18, conv19, conv20 + 38 more"
    assert text.startswith("DLA segment of layer 'conv17'")
    assert text.endswith(FIRST_ONLY)
    assert len(other_causes(causes, is_full=True)) == len(causes)


def test_a_cause_of_one_layer_is_not_called_the_first() -> None:
    assert other_causes({"a": "a plugin wants 'a' on GPU"}) == [("a", "a plugin wants 'a' on GPU", "")]
