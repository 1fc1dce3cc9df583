"""`dryfit explain --quantization`, and the options that bring scales."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers
from tests.schemas import validate

from dryfit.answers.explain_quantization import QuantizationAnswer
from dryfit.quantization.calibration_cache import CalibrationCache


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """Two convolutions, each with a ReLU, and a third."""
    parsed = model(
        "a = Conv(x, v) b = Relu(a) c = Conv(b, w) d = Relu(c) y = Conv(d, w)",
        inputs="float[1,4,8,8] x",
        outputs="float[1,4,8,8] y",
        weights={"v": numbers(4, 4, 1, 1), "w": numbers(4, 4, 1, 1, seed=1)},
    )
    for node, name in zip(parsed.graph.node, ("first", "relu", "second", "clip", "third"), strict=True):
        node.name = name
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Scales of all tensors but the last two."""
    path = tmp_path / "calib.cache"
    path.write_bytes(CalibrationCache("TRT-8600-EntropyCalibration2", {"x": 0.5, "a": 0.25, "b": 0.25}).to_bytes())
    return path


@pytest.fixture
def ranges(tmp_path: Path) -> Path:
    """Ranges of two tensors."""
    path = tmp_path / "ranges.txt"
    path.write_text("c: 127\nd: 63.5\n")
    return path


def test_the_answer_is_what_the_schema_promises_and_every_layer_has_its_reason(
    dryfit_command: Any, classifier: Path, cache: Path, ranges: Path
) -> None:
    options = ("--int8", "--calibration-cache", cache, "--ranges", ranges)
    answer = dryfit_command("explain", classifier, "--quantization", *options, "--json").json
    validate(answer, QuantizationAnswer.schema())
    assert {one["name"]: (one["precision"], one["cause"]) for one in answer["layers"]} == {
        "first": ("INT8", "int8"),
        "relu": ("INT8", "int8"),
        "second": ("INT8", "int8"),
        "clip": ("INT8", "int8"),
        "third": ("FLOAT", "no_scales"),
    }
    tensors = {one["name"]: one for one in answer["tensors"]}
    assert {name: (one["scale"], one["origin"]) for name, one in tensors.items()} == {
        "x": (0.5, "calibrated"),
        "a": (0.25, "calibrated"),
        "b": (0.25, "calibrated"),
        "c": (1.0, "by hand"),
        "d": (0.5, "by hand"),
        "y": (None, "missing"),
    }
    assert tensors["y"]["needed_by"] == ["third"]
    assert tensors["d"]["range"] == [-63.5, 63.5]
    assert answer["summary"] == {
        "layers": 5,
        "fallback_layers": 0,
        "layers_by_precision": {"FLOAT": 1, "INT8": 4},
        "tensors": 6,
        "tensors_by_origin": {"by hand": 2, "calibrated": 3, "missing": 1},
        "quantizations": 0,
        "quantizations_by_outcome": {},
        "macs": 3 * 4 * 4 * 8 * 8,
        "macs_by_type": {"INT8": 2 * 4 * 4 * 8 * 8, "FLOAT": 4 * 4 * 8 * 8},
        "macs_integer_share": pytest.approx(2 / 3),
    }


@pytest.fixture
def explicit(tmp_path: Path) -> Path:
    """A convolution with Q/DQ on its data and its weights, and on what it gives."""
    parsed = model(
        "dq = QuantizeLinear(x, s, z) d = DequantizeLinear(dq, s, z) "
        "kq = QuantizeLinear(w, t, z) k = DequantizeLinear(kq, t, z) "
        "c = Conv(d, k) eq = QuantizeLinear(c, s, z) y = DequantizeLinear(eq, s, z)",
        inputs="float[1,4,8,8] x",
        outputs="float[1,4,8,8] y",
        weights={"w": numbers(4, 4, 1, 1), "s": np.float32(0.5), "t": np.float32(0.02), "z": np.int8(0)},
    )
    for node in parsed.graph.node:
        node.name = f"the {node.output[0]}"
    path = tmp_path / "explicit.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def test_each_quantization_of_a_model_is_told_with_where_it_went(dryfit_command: Any, explicit: Path) -> None:
    answer = dryfit_command("explain", explicit, "--quantization", "--json").json
    validate(answer, QuantizationAnswer.schema())
    assert answer["assumed"] == ["--device GPU", "--precision fp32", "--fallback none"]
    assert answer["tensors"] == []
    assert [(one["name"], one["precision"]) for one in answer["layers"]] == [("the c", "INT8")]
    found = {one["name"]: (one["tensor"], one["scale"], one["outcome"], one["part"]) for one in answer["quantizations"]}
    assert found == {
        "the dq": ("x", 0.5, "alone", ""),
        "the d": ("d", 0.5, "fused", "input"),
        "the kq": ("w", pytest.approx(0.02), "folded", ""),
        "the k": ("k", pytest.approx(0.02), "fused", "input"),
        "the eq": ("c", 0.5, "fused", "output"),
        "the y": ("y", 0.5, "alone", ""),
    }
    (folding,) = [one["rewrites"] for one in answer["quantizations"] if one["name"] == "the kq"]
    assert [(step["action"], step["over"]) for step in folding] == [("folded", ["w"])]
    assert answer["summary"]["quantizations_by_outcome"] == {"alone": 2, "folded": 1, "fused": 3}
    assert answer["summary"]["macs_integer_share"] == 1


def test_people_read_what_keeps_a_quantization_alone(dryfit_command: Any, explicit: Path) -> None:
    told = dryfit_command("explain", explicit, "the dq", "--quantization").out.splitlines()
    assert told[-2].endswith("alone  the caller gives 'x' in floating point")
    assert told[-1] == "1 Q/DQ: 1 alone. Multiply-accumulates: 100.0% INT8."


def test_layers_that_a_device_refuses_are_counted_with_where_to_ask(dryfit_command: Any, explicit: Path) -> None:
    told = dryfit_command("explain", explicit, "--quantization", "--device", "DLA").out
    assert told.splitlines()[-1].startswith("Not on DLA, including Q/DQ: ")


def test_a_layer_is_told_with_the_quantizations_of_its_step(dryfit_command: Any, explicit: Path) -> None:
    answer = dryfit_command("explain", explicit, "the c", "--quantization", "--json").json
    assert [one["name"] for one in answer["quantizations"]] == ["the d", "the k", "the eq"]


def test_one_layer_is_told_with_its_own_tensors(dryfit_command: Any, classifier: Path, cache: Path) -> None:
    options = ("--quantization", "--calibration-cache", cache)
    answer = dryfit_command("explain", classifier, "relu", *options, "--json").json
    assert [one["name"] for one in answer["layers"]] == ["relu"]
    assert [one["name"] for one in answer["tensors"]] == ["a", "b"]


def test_people_read_what_is_missing_and_who_waits_for_it(dryfit_command: Any, classifier: Path, cache: Path) -> None:
    told = dryfit_command("explain", classifier, "--quantization", "--calibration-cache", cache).out
    assert "Defaults: --device GPU --precision int8" in told
    assert "y: missing: no range was set or calibrated\n    required by third\n" in told
    assert "No scale for 'd'" in told
    assert told.endswith(
        "5 layers: 3 FP32, 2 INT8. Scales of 6 tensors: 3 calibrated, 3 missing. "
        "Multiply-accumulates: 66.7% FP32, 33.3% INT8.\n"
    )


def test_without_scales_every_tensor_is_missing_and_nothing_is_int8(dryfit_command: Any, classifier: Path) -> None:
    answer = dryfit_command("explain", classifier, "--quantization", "--json").json
    assert answer["summary"]["layers_by_precision"] == {"FLOAT": 5}
    assert answer["summary"]["tensors_by_origin"] == {"missing": 6}


def test_edits_are_not_asked_for_beside_it(dryfit_command: Any, classifier: Path) -> None:
    ended = dryfit_command("explain", classifier, "--quantization", "--no-edits")
    assert ended.code == 2
    assert "--quantization" in ended.err


def test_a_range_for_a_tensor_that_the_model_does_not_have_is_an_error(
    dryfit_command: Any, classifier: Path, tmp_path: Path
) -> None:
    (tmp_path / "strange.txt").write_text("stranger: 1\n")
    ended = dryfit_command("explain", classifier, "--quantization", "--ranges", tmp_path / "strange.txt")
    assert ended.code == 2
    assert "strange.txt" in ended.err
    assert "'stranger'" in ended.err


def test_build_takes_the_same_files(
    dryfit_command: Any, classifier: Path, cache: Path, ranges: Path, tmp_path: Path
) -> None:
    options = ("--int8", "--calibration-cache", cache, "--ranges", ranges)
    answer = dryfit_command("build", classifier, "-o", tmp_path / "int8.engine", *options, "--json").json
    assert [one["precision"] for one in answer["layers"]] == ["INT8"] * 4 + ["FLOAT"]
    assert answer["precisions"] == ["int8"]


def test_a_cache_without_int8_is_told_to_change_nothing(
    dryfit_command: Any, classifier: Path, cache: Path, tmp_path: Path
) -> None:
    ended = dryfit_command("build", classifier, "-o", tmp_path / "fp32.engine", "--calibration-cache", cache)
    assert ended.code == 0
    assert "The calibration cache has no effect without the flag INT8" in ended.err
