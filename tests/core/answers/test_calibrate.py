"""`dryfit.calibrate` and `dryfit.compare_calibrators`: records, caches and kept states."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.calibration.jobs import SampleCount


@pytest.fixture
def small():
    """A convolution and a ReLU."""
    return model(
        "c = Conv(x, w) y = Relu(c)",
        inputs="float[1,4,6,6] x",
        outputs="float[1,4,6,6] y",
        weights={"w": numbers(4, 4, 1, 1)},
    )


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.npy"
    np.save(path, numbers(4, 4, 6, 6))
    return path


def test_a_model_in_memory_is_calibrated_and_its_cache_written(small, samples, tmp_path):
    answer = dryfit.calibrate(small, samples, calibrator="minmax", output=tmp_path / "a.cache", threads=1)
    scales = {one.name: one.scale for one in answer.tensors}
    assert scales["x"] == pytest.approx(np.abs(np.load(samples)).max() / 127)
    assert (answer.samples, answer.run.images, answer.cache) == (4, 4, tmp_path / "a.cache")
    assert (tmp_path / "a.cache").read_text().startswith("TRT-")
    again = dryfit.calibrate(small, None, calibrator="minmax", output=tmp_path / "a.cache", reuse=True)
    assert (again.is_covered, {one.name: one.scale for one in again.tensors}) == (True, scales)


def test_a_run_that_is_stopped_keeps_what_it_has(small, samples, tmp_path):
    class Stopping(SampleCount):
        @property
        def is_stopped(self):
            return self.images == 2

    state = tmp_path / "kept.state"
    with pytest.raises(KeyboardInterrupt) as stopped:
        dryfit.calibrate(small, samples, state=state, threads=1, progress=Stopping)
    assert "2 of 4 samples were seen" in stopped.value.__notes__[0]
    answer = dryfit.calibrate(small, samples, state=state, resume=True, threads=1)
    assert (answer.samples, answer.run.samples_before) == (4, 2)
    found = dryfit.compare_calibrators(state).calibrators
    assert "entropy2" in found
    assert found["entropy2"].keys() == {one.name for one in answer.tensors}


def test_networks_and_missing_samples_are_refused(small):
    with pytest.raises(dryfit.ConfigError, match="Networks are calibrated with"):
        dryfit.calibrate(dryfit.network_from_onnx(small))
    with pytest.raises(dryfit.CalibrationError, match="Pass samples with --data"):
        dryfit.calibrate(small)


def test_tensors_without_a_scale_are_listed_once_per_reason(small, tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros((2, 4, 6, 6), np.float32))
    text = str(dryfit.calibrate(small, tmp_path / "zeros.npy", threads=1))
    assert text.count("every value is zero") == 1
    assert "x, c, y: every value is zero" in text
