"""`--input-io-formats`, `--output-io-formats`, `--direct-io`, and what `dryfit explain` says of reformats."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers
from tests.schemas import validate

from dryfit.answers.explain import ExplainAnswer
from dryfit.builder.formats.forms import REFORMAT_RULES
from dryfit.engine.engine import Engine

ORIN = ("--device", "dla", "--platform", "orin", "--software", "10.3")
FP16 = (*ORIN, "--precision", "fp16")
FALLBACK = (*FP16, "--fallback", "gpu")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A convolution for the DLA, a function that only the GPU has, and another convolution."""
    parsed = model(
        "a = Conv <pads = [1, 1, 1, 1]> (x, v) b = Elu(a) y = Conv(b, w)",
        inputs="float[1,8,6,6] x",
        outputs="float[1,4,6,6] y",
        weights={"v": numbers(8, 8, 3, 3), "w": numbers(4, 8, 1, 1, seed=1)},
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    parsed = model(
        "y = Conv(x, w)", inputs="float[1,3,8,40] x", outputs="float[1,4,8,40] y", weights={"w": numbers(4, 3, 1, 1)}
    )
    path = tmp_path / "convolution.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def test_each_reformat_has_its_rule_and_what_removes_it(dryfit_command: Any, network: Path) -> None:
    answer = dryfit_command("explain", network, *ORIN, "--json").json
    validate(answer, ExplainAnswer.schema())
    told = {one["tensor"]: (one["rule"], (one["removed_by"] or {}).get("io_format")) for one in answer["reformats"]}
    assert told == {
        "x": ("reformat.network_input", "fp16:chw16"),
        "a": ("reformat.between_segments", None),
        "b": ("reformat.between_segments", None),
        "y": ("reformat.network_output", "fp16:chw16"),
    }
    assert all(one["remedy"] == REFORMAT_RULES[one["rule"]].remedy for one in answer["reformats"])


def test_the_options_that_explain_names_do_what_it_says(dryfit_command: Any, network: Path) -> None:
    told = dryfit_command("explain", network, *ORIN, "--json").json["io_formats"]
    assert told["before"]["reformats"] == 4
    summary = dryfit_command("check", network, *FALLBACK, *shlex.split(told["apply"]), "--json").json["summary"]
    assert {key: summary[key] for key in told["after"]} == told["after"]
    assert summary["reformats"] == 2


def test_for_people_it_is_said_beside_each_reformat(dryfit_command: Any, network: Path) -> None:
    words = " ".join(dryfit_command("explain", network, *ORIN).out.split())
    assert "[reformat.network_input] Avoidable: with fp16:chw16 (verified) 3 reformats" in words
    assert words.count("Keep the layers in between on the default device") == 1
    assert "4 -> 2 reformats" in words
    assert "--input-io-formats fp16:chw16 --output-io-formats fp16:chw16" in words


def test_one_layer_is_told_of_its_own_reformats(dryfit_command: Any, network: Path) -> None:
    layers = dryfit_command("check", network, *FALLBACK, "--json").json["layers"]
    elu = next(layer["name"] for layer in layers if layer["kind"] == "activation")
    answer = dryfit_command("explain", network, elu, *ORIN, "--json").json
    assert [one["tensor"] for one in answer["reformats"]] == ["a", "b"]


def test_with_no_edits_no_format_is_tried(dryfit_command: Any, network: Path) -> None:
    answer = dryfit_command("explain", network, *ORIN, "--no-edits", "--json").json
    validate(answer, ExplainAnswer.schema())
    assert answer["io_formats"] is None
    assert [one["removed_by"] for one in answer["reformats"]] == [None] * 4


@pytest.mark.parametrize(
    "spelling", [("--input-io-formats", "--output-io-formats"), ("--inputIOFormats", "--outputIOFormats")]
)
def test_a_network_in_formats_of_the_dla_needs_no_other_device(
    dryfit_command: Any, convolution: Path, tmp_path: Path, spelling: tuple[str, str]
) -> None:
    output = tmp_path / "model.engine"
    refused = dryfit_command("build", convolution, *FP16, "--fallback", "none", "-o", output)
    assert refused.code
    assert "no device can make the copy" in " ".join(refused.err.split())
    options = (spelling[0], "fp16:dla_hwc4", spelling[1], "fp16:chw16", "--directIO")
    assert dryfit_command("build", convolution, *FP16, *options, "--fallback", "none", "-o", output).code == 0
    context = Engine.load(output).create_execution_context(1)
    # A line of 40 pixels of 4 halves is 320 bytes, which is a multiple of 64.
    assert context.get_strides("x") == (8 * 160, 1, 160, 4)
    assert context.get_strides("y") == (8 * 40, 8 * 40, 40, 1)
    assert context.run({"x": np.ones((1, 3, 8, 40), np.float16)})["y"].dtype == np.float16


def test_direct_io_refuses_a_copy_where_formats_are_set(dryfit_command: Any, convolution: Path, tmp_path: Path) -> None:
    command = ("build", convolution, *FALLBACK, "--input-io-formats", "fp16:chw", "-o", tmp_path / "model.engine")
    assert dryfit_command(*command).code == 0
    refused = dryfit_command(*command, "--direct-io")
    assert refused.code
    assert "DIRECT_IO" in refused.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("fp16", "'fp16'"),
        ("fp17:chw", "the types are fp32, fp16"),
        ("fp16:", "TYPE:FORMAT+FORMAT"),
        ("fp16:chw,fp16:chw", "2 entries: fp16:chw"),
        ("fp16:chw17", "Did you mean 'CHW16'?"),
    ],
)
def test_what_is_no_list_of_formats_is_refused(dryfit_command: Any, convolution: Path, given: str, said: str) -> None:
    ended = dryfit_command("check", convolution, *FALLBACK, "--input-io-formats", given)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())


@pytest.mark.parametrize("rule_id", REFORMAT_RULES)
def test_every_reason_for_a_reformat_is_told(dryfit_command: Any, rule_id: str) -> None:
    facts = dryfit_command("explain-rule", rule_id.upper(), "--json").json
    assert facts["rule"] == rule_id
    assert all(text for key, text in facts.items() if key != "number")
    assert facts["remedy"] in " ".join(dryfit_command("explain-rule", rule_id).out.split())
    assert rule_id in {one["rule"] for one in dryfit_command("explain-rule", "reformat", "--json").json["rules"]}


def test_an_unknown_reason_is_an_error_that_names_the_closest(dryfit_command: Any) -> None:
    ended = dryfit_command("explain-rule", "reformat.network_inputs")
    assert ended.code == 2
    assert "Did you mean 'reformat.network_input'?" in ended.err


@pytest.mark.parametrize("device", [(), FALLBACK], ids=["GPU", "DLA"])
@pytest.mark.parametrize(
    ("stated", "types"),
    [
        (["--inputIOFormats=fp16:chw"], ["HALF", "FLOAT"]),
        (["--outputIOFormats=fp16:chw"], ["FLOAT", "HALF"]),
        (["--inputIOFormats=fp16:chw", "--outputIOFormats=fp32:chw"], ["HALF", "FLOAT"]),
    ],
)
def test_a_type_stated_for_one_side_is_not_that_of_the_other(
    dryfit_command: Any, convolution: Path, tmp_path: Path, device: tuple[str, ...], stated: list[str], types: list[str]
) -> None:
    path = tmp_path / "model.engine"
    assert dryfit_command("build", convolution, *device, *stated, "-o", path).code == 0
    engine = Engine.load(path)
    assert [engine.get_tensor_dtype(name).name for name in ("x", "y")] == types
