"""Strongly typed networks and explicit quantization on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType


def written(text: str, path: Path) -> Path:
    path.write_bytes(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}').SerializeToString())
    return path


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    text = """g (float16[2,3] x) => (float[2,3] y) { r = Relu(x) wide = Cast <to = 1> (r) y = Tanh(wide) }"""
    return written(text, tmp_path / "mixed.onnx")


@pytest.fixture
def quantized(tmp_path: Path) -> Path:
    text = """g (float[2,3] x) => (float[2,3] y) <float s = {0.5}, int8 z = {0}> {
        q = QuantizeLinear(x, s, z) dq = DequantizeLinear(q, s, z) y = Relu(dq) }"""
    return written(text, tmp_path / "quantized.onnx")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("option", ["--strongly-typed", "--stronglyTyped"])
def test_a_strongly_typed_engine_has_the_types_of_the_model(
    dryfit_command: Any, mixed: Path, tmp_path: Path, option: str
) -> None:
    path = tmp_path / "mixed.engine"
    assert dryfit_command("build", mixed, "-o", path, option).code == 0
    found = {tensor.name: tensor.dtype for tensor in Engine.load(path).plan.network.tensors}
    assert found == {"x": DataType.HALF, "r": DataType.HALF, "wide": DataType.FLOAT, "y": DataType.FLOAT}


@pytest.mark.parametrize("command", ["check", "explain", "build"])
@pytest.mark.parametrize("option", [("--precision", "fp16"), ("--int8",)])
def test_precision_options_are_refused_for_a_strongly_typed_network(
    dryfit_command: Any, mixed: Path, tmp_path: Path, command: str, option: tuple[str, ...]
) -> None:
    output = ("-o", tmp_path / "mixed.engine") if command == "build" else ()
    ended = dryfit_command(command, mixed, *output, "--strongly-typed", *option)
    assert ended.code == 2
    assert "strongly_typed.flags" in ended.err
    assert "leave out --precision and --int8" in words(ended.err)


@pytest.mark.parametrize("view", [(), ("--quantization",)])
def test_an_explanation_of_a_strongly_typed_network_assumes_no_precision(
    dryfit_command: Any, mixed: Path, view: tuple[str, ...]
) -> None:
    ended = dryfit_command("explain", mixed, "--strongly-typed", *view)
    assert ended.code == 0, ended.err


def test_the_reason_of_a_precision_is_that_the_network_is_strongly_typed(dryfit_command: Any, mixed: Path) -> None:
    found = dryfit_command("explain", mixed, "--strongly-typed", "--quantization", "--json").json
    reasons = {layer["name"]: (layer["precision"], layer["cause"]) for layer in found["layers"]}
    assert set(reasons.values()) == {
        ("HALF", "strongly_typed"),
        ("FLOAT", "strongly_typed"),
        ("FLOAT", "no_arithmetic"),
    }


@pytest.mark.parametrize("command", ["check", "build"])
def test_a_quantized_model_takes_no_calibration_cache(
    dryfit_command: Any, quantized: Path, tmp_path: Path, command: str
) -> None:
    cache = tmp_path / "calib.cache"
    cache.write_bytes(b"TRT-8600-EntropyCalibration2\nx: 3f800000\n")
    output = ("-o", tmp_path / "quantized.engine") if command == "build" else ()
    ended = dryfit_command(command, quantized, *output, "--int8", "--calibration-cache", cache)
    assert ended.code == 2
    assert "explicit.calibration" in ended.err


def test_a_quantized_model_is_not_calibrated(dryfit_command: Any, quantized: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    ended = dryfit_command("calibrate", quantized, "--data", tmp_path / "x.npy", "-o", tmp_path / "calib.cache")
    assert ended.code == 2
    assert "found layer 'node_of_q' and 1 more" in words(ended.err)
    assert "dryfit translate MODEL --to implicit" in words(ended.err)
    assert not (tmp_path / "calib.cache").exists()


def test_a_quantized_model_on_the_dla_is_pointed_to_its_translation(
    dryfit_command: Any, quantized: Path, tmp_path: Path
) -> None:
    ended = dryfit_command(
        "build", quantized, "-o", tmp_path / "x.engine", "--device", "DLA", "--int8", "--fallback", "none"
    )
    assert ended.code == 2
    assert "The network is quantized explicitly, which DLA does not support: `dryfit translate" in words(ended.err)


def test_each_rule_on_modes_is_explained(dryfit_command: Any) -> None:
    listed = dryfit_command("explain-rule", "explicit", "--json").json["rules"]
    assert [rule["rule"] for rule in listed][:2] == ["explicit.calibration", "explicit.dynamic_range"]
    told = words(dryfit_command("explain-rule", "strongly_typed.flags").out)
    assert "A strongly typed network must be built without flags that permit or constrain precisions" in told
    assert "neither required nor allowed" in told
    assert dryfit_command("explain-rule", "Explicit.Precision", "--json").json["rule"] == "explicit.precision"
    assert "explicit.calibration" in dryfit_command("explain-rule", "explicit.calibratio").err
