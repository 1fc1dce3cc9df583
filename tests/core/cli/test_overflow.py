"""FP16 results that overflow while FP32's do not: compare and a build with samples say which layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.schemas import validate

from dryfit.answers.build import BuildAnswer
from dryfit.answers.comparison.answer import CompareAnswer

SCHEMA = CompareAnswer.schema()


def saved(folder: Path, factor: float) -> Path:
    """Convolutions small, sums (whose results are near 1e5 times the factor), elu, and last, which is small again."""

    def kernel(name: str, outputs: int, inputs: int, value: float) -> Any:
        return numpy_helper.from_array(np.full((outputs, inputs, 1, 1), value, np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "k1"], ["a"], name="small"),
        helper.make_node("Conv", ["a", "k2"], ["b"], name="sums"),
        helper.make_node("Elu", ["b"], ["e"], name="elu"),
        helper.make_node("Conv", ["e", "k3"], ["y"], name="last"),
    ]
    graph = helper.make_graph(
        nodes,
        "overflowing",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 4, 4])],
        [kernel("k1", 16, 16, 10.0), kernel("k2", 8, 16, 50.0 * factor), kernel("k3", 4, 8, 0.001)],
    )
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    path = tmp_path / "samples.npy"
    np.save(path, np.random.default_rng(0).uniform(0.8, 2, (2, 16, 4, 4)).astype(np.float32))
    return path


FP16 = ("--precision", "fp16")
DLA = (*FP16, "--device", "DLA", "--fallback", "GPU")


@pytest.mark.parametrize(("options", "tensors"), [(FP16, ["e"]), (DLA, ["b", "e"])], ids=["GPU", "DLA"])
def test_the_layers_that_overflow_are_named_in_order_and_those_behind_them_are_not(
    dryfit_command: Any, tmp_path: Path, samples: Path, options: tuple[str, ...], tensors: list[str]
) -> None:
    model = saved(tmp_path, 1.0)
    report = dryfit_command("compare", model, *options, "--data", samples, "--json").json
    validate(report, SCHEMA)
    (side,) = report["sides"]
    assert [one["tensor"] for one in side["overflows"]] == tensors
    first = side["overflows"][0]
    assert "sums" in first["layers"]
    assert (first["overflowed"], first["elements"]) == (256, 256)
    assert 1e5 < first["overflowed_to"] < 2e5
    assert not np.isfinite(
        float(next(one for one in report["tensors"] if one["is_output"])["differences"]["fp32"]["first"]["value"])
    )

    told = dryfit_command("compare", model, *options, "--data", samples)
    assert told.out.count("overflow (FP16 holds 65504, fp32 has up to ") == len(tensors)
    assert "RuntimeWarning" not in told.err
    engine = tmp_path / "m.engine"
    built = dryfit_command("build", model, "-o", engine, *options, "--data", samples, "--json")
    validate(built.json, BuildAnswer.schema())
    assert built.json["overflows"] == side["overflows"]
    warned = dryfit_command("build", model, "-o", engine, *options, "--data", samples)
    assert f"Warning: FP16 overflows in {len(tensors)} layer" in warned.err
    assert warned.err.count("overflow (FP16 holds 65504, FP32 has up to ") == len(tensors)


def test_nothing_is_said_where_nothing_overflows_or_nothing_was_run(
    dryfit_command: Any, tmp_path: Path, samples: Path
) -> None:
    engine = tmp_path / "m.engine"
    fine = saved(tmp_path, 0.1)
    assert dryfit_command("compare", fine, *FP16, "--data", samples, "--json").json["sides"][0]["overflows"] == []
    assert dryfit_command("build", fine, "-o", engine, *FP16, "--data", samples, "--json").json["overflows"] == []
    assert "overflow" not in dryfit_command("build", fine, "-o", engine, *FP16, "--data", samples).err
    large = saved(tmp_path, 1.0)
    assert dryfit_command("build", large, "-o", engine, *FP16, "--json").json["overflows"] is None
    assert dryfit_command("build", large, "-o", engine, "--data", samples, "--json").json["overflows"] == []


def test_samples_are_refused_where_there_is_no_engine_to_run(
    dryfit_command: Any, tmp_path: Path, samples: Path
) -> None:
    ended = dryfit_command("build", saved(tmp_path, 1.0), "-o", tmp_path / "e", "--stripped", "--data", samples)
    assert ended.code == 2
    assert "--data" in ended.err


@pytest.mark.parametrize(("largest", "is_told"), [(180000, True), (60000, False)])
def test_a_build_warns_of_calibrated_ranges_that_fp16_does_not_hold(
    dryfit_command: Any, tmp_path: Path, largest: int, is_told: bool
) -> None:
    ranges = tmp_path / "ranges.txt"
    ranges.write_text(f"x: 2\na: 320\nb: {largest}\ne: {largest}\ny: 2000\n")
    options = ("--precision", "int8,fp16", "--ranges", ranges, "--layer-precisions", "elu:fp16")
    ended = dryfit_command("build", saved(tmp_path, 1.0), "-o", tmp_path / "m.engine", *options)
    assert ended.code == 0
    assert (f"tensors stored in FP16 have ranges larger than 65504: 'b' ({largest})" in ended.err) is is_told
