"""`dryfit compare --methods`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.schemas import validate

from dryfit.answers.compare_methods import CompareMethodsAnswer

SCHEMA = CompareMethodsAnswer.schema()

SCALE, WEIGHT_SCALE, OUTPUT_SCALE = np.float32(0.5), np.float32(0.25), np.float32(0.25)


def _model(path: Path, *, extent: int = 1) -> Path:
    """x -> Q -> two 1 x 1 convolutions that multiply by one, whose scales make every odd sum a tie -> DQ -> y."""
    arrays = {
        "s": SCALE,
        "z": np.int8(0),
        "w": np.eye(4, dtype=np.int8).reshape(4, 4, 1, 1),
        "ws": WEIGHT_SCALE,
        "ys": OUTPUT_SCALE,
        "yz": np.int8(0),
    }
    quantized = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], name="xq"),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xr"], name="xr"),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["wr"], name="wr"),
    ]
    source = "xr"
    for name in ("first", "second"):
        quantized += [
            helper.make_node("Conv", [source, "wr"], [f"{name}_c"], name=name),
            helper.make_node("QuantizeLinear", [f"{name}_c", "ys", "yz"], [f"{name}_q"], name=f"{name}_q"),
            helper.make_node("DequantizeLinear", [f"{name}_q", "ys", "yz"], [f"{name}_r"], name=f"{name}_r"),
        ]
        source = f"{name}_r"
    output = helper.make_node("Identity", [source], ["y"], name="last")
    graph = helper.make_graph(
        [*quantized, output],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, extent, extent))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, extent, extent))],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return _model(tmp_path / "model.onnx")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Two samples of four codes."""
    path = tmp_path / "x.npy"
    np.save(path, np.array([[1, 3, 2, -4], [2, 8, 4, 6]], np.float32).reshape(2, 4, 1, 1) * SCALE)
    return path


def _compared(command: Any, model: Path, samples: Path, methods: str, *more: object) -> Any:
    ended = command("compare", model, "--methods", methods, "--data", samples, *more, "--json")
    validate(ended.json, SCHEMA)
    return ended


def test_a_comparison_keeps_its_schema_and_counts_codes_as_the_methods_round_ties(
    dryfit_command: Any, model: Path, samples: Path
) -> None:
    found = _compared(dryfit_command, model, samples, "tflite,onnx,dla-8").json
    assert [one["name"] for one in found["methods"]] == ["tflite", "onnx", "dla-8"]
    assert found["samples"] == ["x.npy[0]", "x.npy[1]"]
    layers = {one["layer"]: one for one in found["layers"]}
    assert list(layers) == ["xq", "first", "second"]
    # The first convolution multiplies codes 1, 3, 2, -4, 2, 8, 4, 6 by 1/2: 0.5 becomes 1 upwards and 0 to even.
    first = layers["first"]["differences"]["onnx"]
    assert first == {"elements": 8, "differing": 1, "largest": 1, "own_differing": 1, "own_largest": 1}
    assert layers["first"]["differences"]["dla-8"]["differing"] == 0
    # The second multiplies 1, 2, 1, -2, 1, 4, 2, 3 by 1/4. In two steps that is 1, 1, 1, -1, 1, 1, 1, 1; in one step
    # to even 0, 0, 0, 0, 0, 1, 0, 1; in one step away from zero 0, 1, 0, -1, 0, 1, 1, 1.
    second = layers["second"]["differences"]
    assert second["onnx"] == {"elements": 8, "differing": 6, "largest": 1, "own_differing": 6, "own_largest": 1}
    assert second["dla-8"]["own_differing"] == 3
    onnx_method, dla = found["methods"][1:]
    assert onnx_method["first_parting"] == layers["first"]["tensor"]
    assert (onnx_method["compared"], onnx_method["differing"]) == (3, 2)
    assert dla["first_parting"] == layers["second"]["tensor"]
    assert layers["first"]["formulas"]["tflite"] != layers["first"]["formulas"]["onnx"]


def test_the_effect_on_the_class_with_the_highest_score_is_counted(
    dryfit_command: Any, model: Path, samples: Path
) -> None:
    found = _compared(dryfit_command, model, samples, "tflite,onnx").json
    (output,) = found["outputs"]
    # The codes of the second sample are 1, 1, 1, 1 by tflite, and 0, 1, 0, 1 by onnx: the first highest score counts.
    assert output["top_1"] == {"onnx": {"decisions": 2, "changed": 1}}
    assert output["differences"]["onnx"]["differing"] == 6
    table = " ".join(dryfit_command("compare", model, "--methods", "tflite,onnx", "--data", samples).out.split())
    assert "onnx: 2 of 3 layers give different codes" in table
    assert "First mismatching layer: first (convolution)" in table
    assert "1 of 2" in table


def test_an_output_that_is_no_row_of_scores_has_no_top_1(dryfit_command: Any, tmp_path: Path) -> None:
    model, samples = _model(tmp_path / "image.onnx", extent=2), tmp_path / "images.npy"
    np.save(samples, np.ones((1, 4, 2, 2), np.float32))
    found = _compared(dryfit_command, model, samples, "tflite,onnx").json
    assert found["outputs"][0]["top_1"] is None
    assert "top-1" in dryfit_command("compare", model, "--methods", "tflite,onnx", "--data", samples).out


def test_layers_that_a_method_does_not_have_are_told_and_stay_in_real_numbers(
    dryfit_command: Any, model: Path, samples: Path
) -> None:
    found = _compared(dryfit_command, model, samples, "tflite,calibrated-weights").json
    method = found["methods"][1]
    assert method["operators"] == 1
    left = {one["layer"]: one["reason"] for one in method["left"]}
    assert {"first", "second"} <= set(left)
    assert "does not have this operator" in left["first"]
    layers = {one["layer"]: one for one in found["layers"]}
    assert set(layers["first"]["formulas"]) == {"tflite"}
    assert layers["first"]["differences"]["calibrated-weights"] is not None
    table = dryfit_command("compare", model, "--methods", "tflite,calibrated-weights", "--data", samples).out
    assert "first: by calibrated-weights: " in " ".join(table.split())


def test_a_layer_with_a_method_of_its_own_keeps_it_in_every_run(
    dryfit_command: Any, model: Path, samples: Path
) -> None:
    found = _compared(dryfit_command, model, samples, "tflite,onnx", "--quantize-method", "first=tflite").json
    layers = {one["layer"]: one["differences"]["onnx"] for one in found["layers"]}
    assert layers["first"]["differing"] == 0
    assert layers["second"]["differing"] == 6


def test_codes_within_the_tolerance_count_as_equal(dryfit_command: Any, model: Path, samples: Path) -> None:
    found = _compared(dryfit_command, model, samples, "tflite,onnx", "--tolerance", 1).json
    assert all(one["differences"]["onnx"]["differing"] == 0 for one in found["layers"])


def test_an_output_with_too_little_signal_to_noise_ends_with_1(dryfit_command: Any, model: Path, samples: Path) -> None:
    failed = _compared(dryfit_command, model, samples, "tflite,onnx", "--fail-below", 20)
    assert failed.code == 1
    assert [one["failed"] for one in failed.json["conditions"]] == [True]
    assert _compared(dryfit_command, model, samples, "tflite,onnx", "--fail-below", -20).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--methods", "tflite"), "At least two different quantize methods are required"),
        (("--methods", "tflite,onx"), "onnx"),
        (("--methods", "tflite,onnx", "--against", "gpu"), "Pass only one of --against, --methods"),
        (("--methods", "tflite,onnx", "--device", "GPU"), "Quantize methods are computed on the CPU"),
        (("--methods", "tflite,onnx", "--quantize-method", "gpu"), "names the methods of single layers"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    dryfit_command: Any, model: Path, samples: Path, options: tuple[str, ...], message: str
) -> None:
    ended = dryfit_command("compare", model, *options, "--data", samples)
    assert ended.code == 2
    assert message in " ".join(ended.err.replace("│", " ").split())


def test_an_engine_is_refused_since_its_methods_were_chosen(
    dryfit_command: Any, model: Path, samples: Path, tmp_path: Path
) -> None:
    engine = tmp_path / "model.engine"
    assert dryfit_command("build", model, "-o", engine, "--quantize-method", "tflite").code == 0
    ended = dryfit_command("compare", engine, "--methods", "tflite,onnx", "--data", samples)
    assert ended.code == 2
    assert "The quantize methods of a built engine cannot be changed" in " ".join(ended.err.split())
