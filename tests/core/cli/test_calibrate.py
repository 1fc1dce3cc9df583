"""`dryfit calibrate`: from samples to a cache, stopped and gone on with, solved again and compared."""

import os
import signal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.schemas import validate

from dryfit.answers.calibration import CalibrationAnswer, CalibratorsAnswer
from dryfit.answers.json_data import json_schema
from dryfit.cli.calibration_progress import Interruption, SampleProgress
from dryfit.quantization.calibration_cache import parse

SCHEMA = json_schema(CalibrationAnswer | CalibratorsAnswer, "dryfit calibrate --json")
TENSORS = ["image", "conv", "relu", "y"]


@pytest.fixture
def model(tmp_path):
    """A convolution, a ReLU and a sigmoid."""
    kernel = np.random.default_rng(0).integers(-3, 4, (4, 2, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("Sigmoid", ["relu"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 2, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
        [numpy_helper.from_array(kernel, "w")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "samples.npy"
    np.save(path, np.random.default_rng(1).integers(-9, 10, (8, 2, 6, 6)).astype(np.float32))
    return path


def test_samples_become_a_cache(model, data, tmp_path, dryfit_command):
    cache = tmp_path / "calib.cache"
    ended = dryfit_command("calibrate", model, "--data", data, "-o", cache, "--threads", 1)
    assert ended.code == 0
    assert ended.err.startswith("8 images in ")
    assert "4 scales from 8 samples by entropy2" in ended.out
    assert "2 tensors with the largest magnitude as the range: image, y" in ended.out
    found = parse(cache.read_bytes())
    assert (found.header, list(found.scales)) == ("TRT-100300-EntropyCalibration2", TENSORS)
    assert found.scales["image"] == np.float32(9 / 127)


def test_the_answer_in_json_is_the_schema_s_and_tells_each_tensor(model, data, dryfit_command):
    answer = dryfit_command("calibrate", model, "--data", data, "--calibrator", "minmax", "--json").json
    validate(answer, SCHEMA)
    assert [one["name"] for one in answer["tensors"]] == TENSORS
    relu = answer["tensors"][2]
    assert relu["threshold"] == relu["largest"] > 0
    assert answer["run"]["images"] == answer["samples"] == 8


def test_going_on_gives_the_bytes_of_one_run(model, data, tmp_path, dryfit_command):
    first, whole = tmp_path / "first.state", tmp_path / "whole.state"
    assert dryfit_command("calibrate", model, "--data", data, "--limit", 3, "--state", first).code == 0
    assert dryfit_command("calibrate", model, "--data", data, "--state", first, "--resume").code == 0
    assert dryfit_command("calibrate", model, "--data", data, "--state", whole).code == 0
    assert first.read_bytes() == whole.read_bytes()


def test_a_state_of_other_samples_is_refused(model, data, tmp_path, dryfit_command):
    state = tmp_path / "one.state"
    dryfit_command("calibrate", model, "--data", data, "--limit", 2, "--state", state)
    ended = dryfit_command(
        "calibrate", model, "--data", data, "--state", state, "--resume", "--skip-nonfinite", "--limit", 3
    )
    assert ended.code == 2
    assert "The state belongs to another calibration (found values that are not finite: refused" in ended.err


def test_a_state_is_solved_again_and_compared_without_samples(model, data, tmp_path, dryfit_command):
    state = tmp_path / "one.state"
    dryfit_command("calibrate", model, "--data", data, "--state", state)
    data.unlink()
    answer = dryfit_command("calibrate", model, "--state", state, "--calibrator", "minmax", "--json").json
    assert answer["run"] is None
    compared = dryfit_command("calibrate", "--state", state, "--compare", "--json").json
    validate(compared, SCHEMA)
    thresholds = {one["name"]: one["threshold"] for one in answer["tensors"]}
    assert compared["calibrators"]["minmax"] == thresholds
    assert "entropy2" in dryfit_command("calibrate", "--state", state, "--compare").out


def test_ctrl_c_ends_after_a_sample_and_keeps_what_was_gathered(model, data, tmp_path, dryfit_command, monkeypatch):
    seen = []

    def pressed(self, samples):
        for sample in samples:
            yield sample
            seen.append(sample[0])
            if len(seen) == 2:
                os.kill(os.getpid(), signal.SIGINT)
                if self._interruption.is_asked:
                    return

    monkeypatch.setattr(SampleProgress, "__call__", pressed)
    cache = tmp_path / "calib.cache"
    ended = dryfit_command("calibrate", model, "--data", data, "-o", cache)
    assert ended.code == 2
    assert f"2 of 8 samples were seen. They are kept in {cache}.state; add --resume to go on" in ended.err
    assert not cache.exists()
    monkeypatch.undo()
    assert dryfit_command("calibrate", model, "--data", data, "-o", cache, "--resume").code == 0
    other = tmp_path / "other.cache"
    dryfit_command("calibrate", model, "--data", data, "-o", other)
    assert cache.read_bytes() == other.read_bytes()
    assert not (tmp_path / "calib.cache.state").exists()


def test_a_cache_that_covers_the_model_runs_nothing(model, data, tmp_path, dryfit_command):
    cache = tmp_path / "calib.cache"
    dryfit_command("calibrate", model, "--data", data, "-o", cache)
    written = cache.read_bytes()
    data.unlink()
    ended = dryfit_command("calibrate", model, "--data", data, "-o", cache, "--reuse")
    assert (ended.code, cache.read_bytes()) == (0, written)
    assert f"{cache} already covers the model: nothing to do" in ended.err
    other = dryfit_command("calibrate", model, "--data", data, "-o", cache, "--reuse", "--calibrator", "minmax")
    assert f"{data}: No samples found" in other.err  # the cache is of another algorithm
    cache.write_bytes(written.replace(b"conv: ", b"conv "))
    damaged = dryfit_command("calibrate", model, "--data", data, "-o", cache, "--reuse")
    assert (damaged.code, "calib.cache, line 3" in damaged.err) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_ctrl_c_takes_effect_at_once(number):
    before = signal.getsignal(number)
    with Interruption() as interruption:
        assert not interruption.is_asked
        os.kill(os.getpid(), number)
        assert interruption.is_asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--calibrator", "entropy3"], "Unknown calibrator: 'entropy3'"),
        (["--set", "share", "1"], "Unknown option: 'share'"),
        (["--shape", "x=1x2"], "The model has no such input"),
        (["--mean", "a"], "'a' must be like 127.5 or 123.7,116.3,103.5"),
    ],
)
def test_what_does_not_exist_is_refused(model, data, arguments, message, dryfit_command):
    ended = dryfit_command("calibrate", model, "--data", data, *arguments)
    assert ended.code == 2
    assert message in ended.err


def test_missing_samples_and_models_are_told(model, dryfit_command):
    assert "Pass samples with --data" in dryfit_command("calibrate", model).err
    assert "Missing argument 'MODEL'" in dryfit_command("calibrate", "--data", "x").err
    assert (
        "--compare requires --state: the file that an earlier run wrote" in dryfit_command("calibrate", "--compare").err
    )
    assert dryfit_command("calibrate", model, "--data", "nowhere").code == 2


def test_tensors_whose_range_is_narrow_are_listed_with_the_calibrator_that_does_better(model, tmp_path, dryfit_command):
    values = np.random.default_rng(1).normal(0, 0.01, (8, 2, 6, 6)).astype(np.float32)
    values[0, :, 2:5, 2:5] = 9.0
    data = tmp_path / "spiky.npy"
    np.save(data, values)
    command = ("calibrate", model, "--data", data, "--calibrator", "percentile", "--set", "percentile", 90)
    ended = dryfit_command(*command)
    assert "Narrow ranges: percentile" in ended.out
    (told,) = [line for line in ended.out.splitlines() if line.startswith("  conv: ")]
    assert "SQNR" in told
    assert "gives" in told
    tensors = {one["name"]: one["details"] for one in dryfit_command(*command, "--json").json["tensors"]}
    assert tensors["conv"]["share of largest magnitude"] < 0.1
    assert tensors["conv"]["better calibrator"]
    assert "better calibrator" not in tensors["image"]


@pytest.mark.parametrize("name", ["entropy", "legacy"])
def test_for_the_dla_ranges_are_found_before_fusion(model, data, tmp_path, dryfit_command, name):
    command = ("calibrate", model, "--data", data, "--calibrator", name, "--device", "DLA", "-o", tmp_path / "c.cache")
    ended = dryfit_command(*command)
    assert ended.code == 2
    words = " ".join(ended.err.split())
    assert "implicit.dla_calibrator" in words
    assert "--before-fusion" in words
    assert dryfit_command(*command, "--before-fusion").code == 0
