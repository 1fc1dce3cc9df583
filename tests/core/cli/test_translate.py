"""`dryfit translate`: files, proof, exit codes, refusals, and a build from what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers
from tests.core.onnx.translation.quantized_models import constant, named, pair, scalars
from tests.schemas import validate

from dryfit.answers.conditions import TRANSLATE_SUBJECTS
from dryfit.answers.translation import TranslateAnswer
from dryfit.quantization.calibration_cache import CalibrationCache, parse

SCHEMA = TranslateAnswer.schema()


@pytest.fixture
def explicit(tmp_path: Path) -> Path:
    """Convolution, a pair, ReLU, a pair, and a convolution whose output stays real; one channel lacks 127."""
    codes = np.random.default_rng(0).integers(-100, 100, (4, 4, 1, 1)).astype(np.int8)
    codes[:3, 0] = 127
    parsed = named(
        model(
            f"{pair('x', 'xq', 's')} w = DequantizeLinear<axis = 0>(c, ws, wz) a = Conv(xq, w) {pair('a', 'aq', 't')} "
            f"b = Relu(aq) {pair('b', 'bq', 'u')} y = Conv(bq, w)",
            inputs="float[1,4,6,6] x",
            outputs="float[1,4,6,6] y",
            weights={
                **scalars(s=0.05, t=0.5, u=0.25),
                "c": codes,
                "ws": np.full(4, 0.01, np.float32),
                "wz": np.zeros(4, np.int8),
            },
        )
    )
    path = tmp_path / "net.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


@pytest.fixture
def plain(tmp_path: Path) -> tuple[Path, Path]:
    """A model in FP32, and a cache of its scales."""
    parsed = named(
        model(
            "a = Conv(x, v) b = Relu(a) c = Conv(b, v) y = Conv(c, v)",
            inputs="float[1,4,6,6] x",
            outputs="float[1,4,6,6] y",
            weights={"v": numbers(4, 4, 1, 1)},
        )
    )
    path, cache = tmp_path / "plain.onnx", tmp_path / "plain.cache"
    path.write_bytes(parsed.SerializeToString())
    scales = {"x": 0.02, "a": 0.05, "b": 0.05, "c": 0.1, "y": 0.5}
    cache.write_bytes(CalibrationCache("TRT-8600-EntropyCalibration2", scales).to_bytes())
    return path, cache


def test_implicit_files_have_the_names_and_contents_that_scripts_expect(
    dryfit_command: Any, explicit: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    ended = dryfit_command("translate", explicit, "--to", "implicit", "-o", folder, "--json")
    validate(ended.json, SCHEMA)
    assert {path.name for path in folder.iterdir()} == {
        "net_noqdq.onnx",
        "net_precision_config.json",
        "net_precision_config_calib.cache",
        "net_precision_config_layer_arg.txt",
        "net_ranges.txt",
        "net_scales.json",
        "net_layer_precisions.txt",
        "net_layer_output_types.txt",
    }
    config = json.loads((folder / "net_precision_config.json").read_text())
    expected = {"x": 0.05, "a": 0.5, "b": 0.25}
    assert config == {
        "int8_tensor_scales": {name: float(np.float32(scale)) for name, scale in expected.items()},
        "fp16_nodes": ["Conv_y"],
    }
    cache = parse((folder / "net_precision_config_calib.cache").read_bytes())
    assert (cache.header, dict(cache.scales)) == ("TRT-8600-EntropyCalibration2", config["int8_tensor_scales"])
    assert (folder / "net_precision_config_layer_arg.txt").read_text() == "Conv_y:fp32"
    assert (folder / "net_layer_precisions.txt").read_text() == "Conv_a:int8,Relu_b:int8,Conv_y:fp32"
    assert (folder / "net_layer_output_types.txt").read_text() == "Relu_b:int8"
    operators = {node.op_type for node in onnx.load(folder / "net_noqdq.onnx").graph.node}
    assert operators == {"Conv", "Relu"}


def test_the_first_line_of_the_cache_can_be_chosen(dryfit_command: Any, explicit: Path, tmp_path: Path) -> None:
    options = ("--tensorrt-version", "10.3.0", "--algorithm", "minmax", "--samples", "0")
    dryfit_command("translate", explicit, "--to", "implicit", "-o", tmp_path / "out", *options)
    cache = parse((tmp_path / "out" / "net_precision_config_calib.cache").read_bytes())
    assert cache.header == "TRT-100300-MinMaxCalibration"


def test_people_are_told_what_is_lost_and_how_well_both_agree(
    dryfit_command: Any, explicit: Path, tmp_path: Path
) -> None:
    ended = dryfit_command("translate", explicit, "--to", "implicit", "-o", tmp_path / "out")
    assert ended.code == 0
    for text in (
        "net.onnx as implicit scales: 2 of 3 layers INT8, 3 of 4 tensors with scales",
        "Conv_y: no scale for 'y'",
        "Conv_a: ",
        "codes in 1 of 4 channels",
        "Both in integer arithmetic, 2 samples",
    ):
        assert text in ended.out
    assert "Not compared, because it exists only inside fused layers: a" in ended.out


def test_every_rounding_makes_both_equal_and_conditions_fail_the_command(
    dryfit_command: Any, explicit: Path, tmp_path: Path
) -> None:
    options = ("translate", explicit, "--to", "implicit", "-o", tmp_path / "out", "--fail-on", "codes>1,lost,weights")
    ended = dryfit_command(*options)
    assert ended.code == 1
    assert {line.split(":")[0].removeprefix("--fail-on ") for line in ended.err.splitlines()} >= {"lost", "weights"}
    answer = dryfit_command(
        "translate", explicit, "--to", "implicit", "-o", tmp_path / "out", "--every-rounding", "--json"
    )
    assert (tmp_path / "out" / "net_layer_output_types.txt").read_text() == "Conv_a:int8,Relu_b:int8"
    assert {one["name"] for one in answer.json["proof"]["tensors"]} == {"b", "y"}
    assert set(TRANSLATE_SUBJECTS.texts) <= answer.json["summary"].keys()


def test_a_build_takes_what_was_written_and_computes_the_same(
    dryfit_command: Any, explicit: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dryfit_command("translate", explicit, "--to", "implicit", "-o", out, "--every-rounding", "--samples", "0")
    answer = dryfit_command(
        *("build", out / "net_noqdq.onnx", "-o", tmp_path / "net.engine", "--int8", "--json"),
        *("--ranges", out / "net_ranges.txt", "--layer-precisions", f"@{out / 'net_layer_precisions.txt'}"),
        *("--layer-output-types", f"@{out / 'net_layer_output_types.txt'}"),
    ).json
    assert [(one["name"], one["precision"]) for one in answer["layers"]] == [
        ("Conv_a", "INT8"),
        ("Relu_b", "INT8"),
        ("Conv_y", "FLOAT"),
    ]


@pytest.mark.parametrize("form", ["int8", "fp32"])
def test_a_cache_becomes_a_q_dq_model_of_which_every_code_is_the_same(
    dryfit_command: Any, plain: tuple[Path, Path], tmp_path: Path, form: str
) -> None:
    path, cache = plain
    output = tmp_path / "qdq.onnx"
    options = ("--calibration-cache", cache, "--weights", form, "--fail-on", "different")
    answer = dryfit_command("translate", path, "--to", "qdq", "-o", output, *options, "--json")
    assert answer.code == 0
    validate(answer.json, SCHEMA)
    assert answer.json["proof"]["codes"] > 0
    written = onnx.load(output)
    onnx.checker.check_model(written, full_check=True)
    assert constant(written, "b_scale") == np.float32(0.05)
    assert ("v_quantized" in {one.name for one in written.graph.initializer}) is (form == "int8")


def test_samples_may_be_given(dryfit_command: Any, plain: tuple[Path, Path], tmp_path: Path) -> None:
    path, cache = plain
    np.save(tmp_path / "x.npy", numbers(5, 4, 6, 6))
    options = ("--calibration-cache", cache, "--data", tmp_path / "x.npy", "--samples", "3", "--json")
    answer = dryfit_command("translate", path, "--to", "qdq", "-o", tmp_path / "qdq.onnx", *options).json
    assert answer["proof"]["samples"] == 3


def test_scales_are_demanded_one_way_and_refused_the_other(
    dryfit_command: Any, plain: tuple[Path, Path], explicit: Path, tmp_path: Path
) -> None:
    ended = dryfit_command("translate", plain[0], "--to", "qdq", "-o", tmp_path / "qdq.onnx")
    assert (ended.code, "--calibration-cache or --ranges" in ended.err) == (2, True)
    ended = dryfit_command(
        "translate", explicit, "--to", "implicit", "-o", tmp_path / "out", "--calibration-cache", plain[1]
    )
    assert (ended.code, "A translation to implicit must take its scales from the model" in ended.err) == (2, True)
    ended = dryfit_command("translate", explicit, "--to", "implicit", "-o", tmp_path / "out", "--strict")
    assert (ended.code, "layer 'Conv_y': 'y'" in ended.err) == (2, True)
    assert not (tmp_path / "out").exists()


def test_the_dla_gets_half_precision_where_it_is_not_int8(dryfit_command: Any, explicit: Path, tmp_path: Path) -> None:
    options = ("--device", "DLA", "--software", "10.3", "--fallback", "GPU", "--precision", "fp16", "--samples", "0")
    ended = dryfit_command("translate", explicit, "--to", "implicit", "-o", tmp_path / "out", *options)
    assert ended.code == 0
    assert (tmp_path / "out" / "net_precision_config_layer_arg.txt").read_text() == "Conv_y:fp16"
