from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest
from tests.schemas import validate

from dryfit.answers.check import CheckAnswer

DLA = ("--device", "dla", "--precision", "fp16", "--shape", "image=4x1x8x8")


def test_the_answer_is_what_the_schema_promises(dryfit_command: Any, digits_model: Path) -> None:
    for options in (DLA, (*DLA, "--fallback", "GPU"), (), ("--shape", "image=1x1x8x8:2x1x8x8:4x1x8x8")):
        answer = dryfit_command("check", digits_model, *options, "--json").json
        validate(answer, CheckAnswer.schema())


def test_the_schema_refuses_an_answer_without_its_parts(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("check", digits_model, *DLA, "--json").json
    for part in ("layers", "segments", "summary"):
        with pytest.raises(jsonschema.ValidationError):
            validate({key: value for key, value in answer.items() if key != part}, CheckAnswer.schema())


def test_layers_that_are_refused_have_every_reason_and_no_device(dryfit_command: Any, digits_model: Path) -> None:
    ended = dryfit_command("check", digits_model, *DLA, "--fallback", "none", "--json")
    assert ended.code == 0
    layers = {layer["name"]: layer for layer in ended.json["layers"]}
    assert layers["conv1"]["device"] == "DLA"
    assert layers["conv1"]["onnx_nodes"] == ["conv1"]
    assert layers["elu2"]["device"] is None
    (violation,) = layers["elu2"]["verdicts"]["DLA"]["violations"]
    assert violation["rule"] == "dla.activation.type"
    assert violation["actual"] == "ELU"
    assert "RELU" in violation["allowed"]
    assert violation["source"]


def test_fallback_gives_refused_layers_another_device(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("check", digits_model, *DLA, "--fallback", "gpu", "--json").json
    assert {layer["device"] for layer in answer["layers"]} == {"DLA", "GPU"}
    assert answer["fallback"] == "GPU"
    summary = answer["summary"]
    assert summary["unplaced_layers"] == 0
    assert summary["fallback_layers"] == summary["layers_by_device"]["GPU"]
    assert summary["layers"] == sum(summary["layers_by_device"].values()) == len(answer["layers"])
    assert summary["segments"] == len(answer["segments"])
    assert summary["reformat_bytes"] == sum(one["bytes"] for one in answer["reformats"]) > 0


def test_types_are_told_for_each_device(dryfit_command: Any, digits_model: Path) -> None:
    options = ("--device", "DLA", "--precision", "fp16,int8", "--assume-scales", "--fallback", "GPU")
    answer = dryfit_command("check", digits_model, *options, "--shape", "image=4x1x8x8", "--json").json
    counted = {device: {} for device in ("DLA", "GPU")}
    for layer in answer["layers"]:
        counts = counted[layer["device"]]
        counts[layer["precision"]] = counts.get(layer["precision"], 0) + 1
    assert answer["summary"]["precisions_by_device"] == counted
    assert set(counted["DLA"]) <= {"INT8", "HALF"}
    told = dryfit_command("check", digits_model, *DLA, "--fallback", "GPU").out.splitlines()
    on_dla = answer["summary"]["layers_by_device"]["DLA"]
    assert f"DLA: {on_dla} layers FP16" in told


def test_every_layer_is_in_the_segment_that_names_it(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", "--json").json
    for layer in answer["layers"]:
        segment = answer["segments"][layer["segment"]]
        assert layer["name"] in segment["layers"]
        assert layer["device"] == segment["device"]


def test_platform_and_software_choose_the_rules(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("check", digits_model, *DLA, "--platform", "Xavier", "--software", "8.4", "--json").json
    assert (answer["platform"], answer["software"]) == ("agx-xavier", "8.4")
    nano = dryfit_command("check", digits_model, *DLA, "--platform", "orin-nano", "--fallback", "none", "--json").json
    assert all(layer["device"] is None for layer in nano["layers"])


def test_scales_can_be_assumed_before_calibration(dryfit_command: Any, digits_model: Path) -> None:
    options = ("--device", "DLA", "--precision", "int8", "--shape", "image=4x1x8x8", "--json")
    rules = [
        {one["rule"] for layer in answer["layers"] for one in layer["verdicts"]["DLA"]["violations"]}
        for answer in (
            dryfit_command("check", digits_model, *options).json,
            dryfit_command("check", digits_model, *options, "--assume-scales").json,
        )
    ]
    assert "dla.int8.scales" in rules[0]
    assert "dla.int8.scales" not in rules[1]


def test_a_file_can_set_the_devices_of_single_layers(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    placement = tmp_path / "placement.json"
    placement.write_text('{"conv1": "gpu"}')
    answer = dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", "--placement", placement, "--json").json
    layers = {layer["name"]: layer["device"] for layer in answer["layers"]}
    assert layers["conv1"] == "GPU"
    assert layers["conv2"] == "DLA"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["conv1"]', "one JSON object"),
        ("{", "cannot be read"),
        ('{"conv9": "GPU"}', "Unknown layer 'conv9'"),
        ('{"conv1": "TPU"}', "Unknown device: 'TPU'"),
    ],
)
def test_a_placement_file_that_does_not_fit_is_refused(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, text: str, message: str
) -> None:
    placement = tmp_path / "placement.json"
    placement.write_text(text)
    ended = dryfit_command("check", digits_model, *DLA, "--placement", placement)
    assert ended.code == 2
    assert message in ended.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shape", "image=4by1"), "must be like x=1x3x224x224"),
        (("--shape", "picture=4x1x8x8"), "found picture; allowed: image"),
        (("--shape", "image=4x3x8x8"), "allowed: Nx1x8x8"),
        (("--shape", "image=4x1x8x8:2x1x8x8:1x1x8x8"), "minimum <= optimum <= maximum"),
        (("--precision", "fp12"), "'fp12' is not one of fp32, fp16"),
        (("--device", "DLAA"), "Did you mean 'DLA'?"),
        (("--device", "DLA", "--platform", "orion"), "Unknown DLA platform: 'orion'"),
        (("--device", "DLA", "--platform", "xavier", "--software", "10.3"), "found 10.3"),
        (("--fallback", "no"), "Unknown device: 'no'"),
        (("--fail-on", "rain"), "unknown condition or rule 'rain'"),
    ],
)
def test_an_option_that_does_not_fit_is_an_error_that_says_what_would(
    dryfit_command: Any, digits_model: Path, options: tuple[str, ...], message: str
) -> None:
    ended = dryfit_command("check", digits_model, *options)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert not ended.out


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (("--fallback", "GPU"), ("fallback",), 1),
        (("--fallback", "GPU"), ("unplaced",), 0),
        (("--fallback", "GPU"), ("unplaced", "reformat"), 1),
        (("--fallback", "none"), ("unplaced",), 1),
        (("--fallback", "none"), ("fallback",), 1),
        (("--fallback", "none"), (), 0),
        ((), ("unplaced",), 0),
    ],
)
def test_what_fail_on_names_decides_the_exit_code(
    dryfit_command: Any, digits_model: Path, options: tuple[str, ...], words: tuple[str, ...], code: int
) -> None:
    fail_on = [part for word in words for part in ("--fail-on", word)]
    assert dryfit_command("check", digits_model, *DLA, *options, *fail_on).code == code


def test_text_has_the_reasons_the_segments_and_a_summary(dryfit_command: Any, digits_model: Path) -> None:
    text = dryfit_command("check", digits_model, *DLA, "--fallback", "GPU").out
    assert "on DLA (agx-orin-64 " in text
    assert "Simulated: " in text
    assert re.search(r"  elu2: activation_type must be one of RELU, .*\(found ELU\)", text)
    assert "[dla.activation.type]" in text
    assert "Segments\n" in text
    assert "Reformats" not in text
    verbose = dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", "--verbose").out
    assert all(title in verbose for title in ("Layers\n", "Why new segments begin\n", "Reformats\n"))
    quiet = dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", "--quiet").out
    assert quiet == text.splitlines(keepends=True)[0]


def test_layers_with_the_same_reason_are_told_together(dryfit_command: Any, digits_model: Path) -> None:
    text = dryfit_command("check", digits_model, *DLA, "--precision", "fp32", "--fallback", "none").out
    reasons, _, refusal = text.partition("Build errors:")
    assert reasons.count("[dla.precision]") == 1
    assert "[dla.precision]" not in refusal
    assert "conv1, norm1, relu1, conv2 + " in text


def test_a_damaged_model_is_an_error(dryfit_command: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\x08\x07garbage")
    ended = dryfit_command("check", broken)
    assert ended.code == 2
    assert "broken.onnx" in ended.err
    assert "Traceback" not in ended.err


def test_a_check_loads_no_compiler() -> None:
    """ResNet-50 answers at once only because nothing is compiled: neither Numba nor a kernel may be imported."""
    model = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
    code = f"""
import sys
from dryfit.cli.main import main
try:
    main(["check", {str(model)!r}, "--device", "DLA", "--precision", "fp16", "--fallback", "GPU", "--quiet"])
except SystemExit as end:
    assert not end.code
assert not {{"numba", "llvmlite", "rich"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "on DLA" in done.stdout
