"""The calibrator `auto` of `dryfit.calibrate`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.answers.mixed_calibration import best_mixture, divided_samples
from dryfit.answers.sample_gains import Verdict
from dryfit.calibration.output_mix import MixedTensor
from dryfit.errors import CalibrationError
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.metric import worst_sqnr_db


@pytest.fixture
def small():
    """Two convolutions, of which the second reads rare large values that decide about its result."""
    return model(
        "c = Conv(x, w) r = Relu(c) d = Conv(r, v) y = Relu(d)",
        inputs="float[1,4,8,8] x",
        outputs="float[1,4,8,8] y",
        weights={"w": numbers(8, 4, 1, 1), "v": numbers(4, 8, 1, 1)},
    )


@pytest.fixture
def samples(tmp_path):
    rng = np.random.default_rng(3)
    values = rng.standard_normal((20, 4, 8, 8)).astype(np.float32)
    values[:, :, 3, 3] *= 30  # one pixel in 64
    path = tmp_path / "samples.npy"
    np.save(path, values)
    return path


def test_the_mixture_is_never_worse_than_a_calibrator_on_what_is_held_back(small, samples, tmp_path):
    answer = dryfit.calibrate(small, samples, calibrator="auto", output=tmp_path / "a.cache", threads=1)
    mixed = answer.mixed
    assert len(mixed.held_back) == 4
    assert answer.samples == 20, "what was held back counts for the ranges"
    best = max(value for name, value in mixed.sets.items() if name != "mix")
    assert mixed.sets["mix"] > best
    assert [one.tensors for one in mixed.left]
    assert mixed.sets[mixed.start] == best
    ends = {one.name: one.threshold for one in answer.tensors}
    assert ends.keys() >= {"x", "r", "y"}
    assert all(ends[name] == one.threshold for one in mixed.left for name in one.tensors)


def test_any_number_of_processes_gives_the_same_cache(small, samples, tmp_path):
    path = tmp_path / "small.onnx"
    path.write_bytes(small.SerializeToString())
    written = []
    for jobs in (1, 2):
        cache = tmp_path / f"{jobs}.cache"
        dryfit.calibrate(path, samples, calibrator="auto", output=cache, threads=1, jobs=jobs)
        written.append(cache.read_bytes())
    assert written[0] == written[1]


def test_samples_are_held_back_evenly():
    kept, held = divided_samples([str(index) for index in range(200)])
    assert len(held) == 16
    assert not set(kept) & set(held)
    assert max(np.diff([int(name) for name in held])) <= 13
    with pytest.raises(CalibrationError, match="at least two samples"):
        divided_samples(["one"])


def test_changes_are_taken_only_if_they_gain_more_than_chance():
    start = {name: Solution.of_threshold(1.0) for name in "abc"}
    changes = [MixedTensor((name,), "minmax", 1.0, 2.0, 0.0, 0.0) for name in "abc"]

    def verdict(*by_sample):
        return Verdict(0.0, 0.0, np.array(by_sample, np.float64))

    def mixture(before, by_count):
        def verdict_of(solutions):
            return by_count[sum(one.dynamic_range.threshold == 2.0 for one in solutions.values())]

        return best_mixture(start, before, changes, verdict_of)

    before = verdict(10, 20, 30, 15, 25, 12)
    steady = verdict(12, 22.1, 31.9, 17.2, 26.8, 14)
    kept, best = mixture(before, {1: verdict(11, 21, 31, 16, 26, 13), 2: steady, 3: verdict(*[5] * 6)})
    assert ([one.tensors for one in kept], best) == ([("a",), ("b",)], steady)
    by_one = verdict(40, 19, 31, 14, 26, 11)
    assert mixture(before, dict.fromkeys((1, 2, 3), by_one)) == ([], before), "one sample says so"


def test_the_output_that_suffers_most_decides():
    exact = [{"a": np.array([3.0]), "b": np.array([1.0])}]
    assert worst_sqnr_db(exact, [{"a": np.array([3.0]), "b": np.array([1.1])}]) == pytest.approx(20.0)
    assert worst_sqnr_db(exact, exact) == np.inf


def test_a_state_alone_cannot_be_judged(small, samples, tmp_path):
    dryfit.calibrate(small, samples, state=tmp_path / "a.state", threads=1)
    with pytest.raises(CalibrationError, match="must run the network on samples"):
        dryfit.calibrate(small, None, calibrator="auto", state=tmp_path / "a.state")
