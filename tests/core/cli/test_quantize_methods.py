"""`--quantize-method`: for all layers or some, in a build, a run and an explanation; what does not fit is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """x -> Q, DQ -> conv -> Q, DQ -> sqrt -> y, with zero points."""
    arrays = {
        "s": np.float32(0.5),
        "z": np.uint8(3),
        "w": np.arange(-9, 9, dtype=np.int8).reshape(1, 2, 3, 3),
        "ws": np.float32(0.25),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], name="xq"),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xr"], name="xr"),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["wr"], name="wr"),
        helper.make_node("Conv", ["xr", "wr"], ["c"], name="conv"),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["cq"], name="cq"),
        helper.make_node("DequantizeLinear", ["cq", "s", "z"], ["cr"], name="cr"),
        helper.make_node("Neg", ["cr"], ["y"], name="neg"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, 4, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 1, 2, 2))],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_a_model_is_run_by_a_method_on_this_machine_and_the_rules_are_told(
    dryfit_command: Any, model: Path, tmp_path: Path
) -> None:
    options = ("run", model, "--quantize-method", "onnx", "--random", "0", "--output-dir", tmp_path / "out")
    ended = dryfit_command(*options, "--json")
    assert ended.code == 0
    operators = {one["layer"]: one for one in ended.json["quantized_operators"]}
    assert {name: (one["method"], one["operator"]) for name, one in operators.items()} == {
        "xq": ("onnx", "quantize"),
        "conv": ("onnx", "convolution"),
    }
    assert operators["conv"]["fidelity"] == "confirmed"
    assert operators["conv"]["formula"]
    assert operators["conv"]["source"]
    assert "'neg' stays in floating point, without the quantize method 'onnx'" in ended.err
    assert "Quantize methods" in dryfit_command(*options).out
    found = np.load(tmp_path / "out" / "y.npy")
    assert found.shape == (1, 1, 2, 2)
    np.testing.assert_array_equal(found % 0.5, 0)


def test_an_engine_keeps_its_methods_and_tells_them(dryfit_command: Any, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.engine"
    built = dryfit_command("build", model, "-o", path, "--quantize-method", "tflite", "--json")
    assert built.code == 0
    assert built.json["device"] == "CPU"
    assert {one["method"] for one in built.json["quantized_operators"]} == {"tflite"}
    inspected = dryfit_command("inspect", path, "--json").json
    assert inspected["quantized_operators"] == built.json["quantized_operators"]
    assert "Quantize methods" in dryfit_command("inspect", path).out
    ran = dryfit_command("run", path, "--random", "0", "--json").json
    assert ran["quantized_operators"] == built.json["quantized_operators"]
    again = dryfit_command("run", path, "--random", "0", "--quantize-method", "onnx")
    assert again.code == 2
    assert "The quantize methods of a built engine cannot be changed" in " ".join(again.err.split())


def test_single_layers_have_methods_of_their_own_by_patterns(dryfit_command: Any, model: Path) -> None:
    options = ("explain", model, "--no-edits", "--json")
    told = dryfit_command(*options, "--quantize-method", "tflite", "--quantize-method", "onnx:con*=onnx").json
    methods = {one["layer"]: one["method"] for one in told["quantized_operators"]}
    assert methods == {"xq": "tflite", "conv": "onnx"}
    assert [one["layer"] for one in told["left"]] == ["neg"]
    told = dryfit_command(*options, "--quantize-method", "conv=onnx").json
    assert [one["layer"] for one in told["quantized_operators"]] == ["conv"]
    assert told["left"] == []
    assert told["device"] == "CPU"
    text = dryfit_command("explain", model, "--no-edits", "--quantize-method", "tflite").out
    assert "Layers that stay in floating point" in text
    assert "not by tflite: its output 'y' is an output of the network" in " ".join(text.split())


def test_each_q_and_dq_is_followed_to_its_operator(dryfit_command: Any, model: Path) -> None:
    told = dryfit_command("explain", model, "--quantization", "--quantize-method", "onnx", "--json").json
    outcomes = {one["name"]: (one["outcome"], one["steps"]) for one in told["quantizations"]}
    assert outcomes["xr"] == outcomes["wr"] == outcomes["cq"] == ("quantized operator", ["conv"])
    assert outcomes["xq"] == ("quantized operator", ["xq"])
    assert outcomes["cr"][0] != "quantized operator"


def test_a_device_says_why_it_does_not_compute_by_a_method(dryfit_command: Any, model: Path) -> None:
    for device, words in (("GPU", "convolution by the quantize method 'onnx'"), ("DLA", "runs on the host")):
        told = dryfit_command("check", model, "--device", device, "--quantize-method", "onnx", "--json").json
        (layer,) = [one for one in told["layers"] if one["name"] == "conv"]
        (violation, *_) = layer["verdicts"][device]["violations"]
        assert words in violation["message"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("tflit", "Unknown quantize method: 'tflit'"),
        ("conv=onx", "Did you mean 'onnx'?"),
        ("cnv=onnx", "Unknown layer 'cnv'. Did you mean 'conv'?"),
        ("neg=onnx", "asks for the quantize method 'onnx': its output 'y' is an output of the network"),
        ("conv=", "must be like tflite or conv1=onnx"),
    ],
)
def test_a_method_that_cannot_be_is_refused(
    dryfit_command: Any, model: Path, tmp_path: Path, value: str, words: str
) -> None:
    ended = dryfit_command("build", model, "-o", tmp_path / "x.engine", "--quantize-method", value)
    assert ended.code == 2
    assert words in " ".join(ended.err.split())
    assert not (tmp_path / "x.engine").exists()


def test_a_model_without_a_method_is_no_engine(dryfit_command: Any, model: Path) -> None:
    ended = dryfit_command("run", model, "--random", "0")
    assert ended.code == 2
    assert "--quantize-method" in " ".join(ended.err.split())


def test_a_board_does_not_compute_by_methods(dryfit_command: Any, model: Path, tmp_path: Path) -> None:
    ended = dryfit_command("export", "trtexec", model, "-o", tmp_path / "build.sh", "--quantize-method", "onnx")
    assert ended.code == 2
    assert "quantize methods run on the CPU" in " ".join(ended.err.split())


def test_a_translation_is_not_computed_by_methods(dryfit_command: Any, model: Path, tmp_path: Path) -> None:
    place = tmp_path / "files"
    ended = dryfit_command("translate", model, "--to", "implicit", "-o", place, "--quantize-method", "onnx")
    assert ended.code == 2
    assert "Both forms are compared with the arithmetic of the device" in " ".join(ended.err.split())
    assert not place.exists()
