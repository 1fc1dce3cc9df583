"""Ranges of a whole network: what is observed, what is refused, and parts that make the whole."""

import numpy as np
import pytest
from tests.core.quantization.small_networks import LARGEST, SAMPLES, doubling_network

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import CalibrationError, ExecutionError
from dryfit.quantization.calibration import calibrate_ranges, collect, solve
from dryfit.quantization.calibration_state import CalibrationState, merge_states
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.int8_steps import DynamicRange


def largest(histogram):
    return Solution.of_threshold(histogram.magnitude)


class Unmergeable(Histogram):
    is_mergeable = False


CALIBRATOR = Calibrator(name="largest", title="the largest magnitude", solve=largest)
ALONE = Calibrator(name="alone", title="in one process", solve=largest, collector=Unmergeable)


def thresholds(solutions):
    return {name: one.dynamic_range and one.dynamic_range.threshold for name, one in solutions.items()}


def test_every_floating_point_tensor_gets_its_range_in_the_order_of_execution():
    solutions = calibrate_ranges(doubling_network(), CALIBRATOR, SAMPLES)
    assert thresholds(solutions) == LARGEST
    assert list(solutions) == ["x", "relu", "y"]


def test_a_tensor_of_zeros_has_no_scale_and_a_reason():
    solutions = calibrate_ranges(doubling_network(), CALIBRATOR, SAMPLES[2:])
    assert thresholds(solutions) == {"x": 8.0, "relu": None, "y": None}
    assert solutions["relu"].reason == "every value is zero"


def test_parts_in_any_order_make_the_whole_bit_for_bit():
    whole = collect(doubling_network(), CALIBRATOR, SAMPLES)
    merged, *others = [collect(doubling_network(), CALIBRATOR, [sample]) for sample in reversed(SAMPLES)]
    before = [one.to_bytes() for part in others for one in part.values()]
    for part in others:
        for name, one in part.items():
            merged[name].merge(one)
    assert {name: one.to_bytes() for name, one in merged.items()} == {n: one.to_bytes() for n, one in whole.items()}
    assert [one.to_bytes() for part in others for one in part.values()] == before


def test_one_pass_serves_several_solvers():
    half = Calibrator(name="half", title="half", solve=lambda one: Solution.of_threshold(one.magnitude / 2))
    seen = collect(doubling_network(), CALIBRATOR, SAMPLES)
    assert solve(seen, half)["y"].dynamic_range == DynamicRange(-2.0, 2.0)
    assert solve(seen, CALIBRATOR)["y"].dynamic_range == DynamicRange(-4.0, 4.0)


def test_a_calibrator_that_cannot_be_merged_refuses_parts():
    first, second = (collect(doubling_network(), ALONE, SAMPLES)["x"] for _ in range(2))
    with pytest.raises(CalibrationError, match=r"tensor 'x'.*Unmergeable, which declares is_mergeable = False"):
        first.merge(second)
    assert thresholds(calibrate_ranges(doubling_network(), ALONE, SAMPLES)) == LARGEST


def test_parts_of_different_networks_are_refused():
    part = collect(doubling_network(), CALIBRATOR, SAMPLES)
    other = collect(doubling_network(), CALIBRATOR, SAMPLES[:1])
    states = [CalibrationState({}, ["a"], part), CalibrationState({}, ["b"], {"x": other["x"]})]
    with pytest.raises(CalibrationError, match=r"state 1: .*same tensors .*only one of the states has: 'relu', 'y'"):
        merge_states(states)
    before = part["x"].to_bytes()
    with pytest.raises(CalibrationError, match=r"tensor 'x': Only states of the same tensor .*found tensor 'relu'"):
        part["x"].merge(other["relu"])
    assert part["x"].to_bytes() == before


def test_a_value_that_is_not_finite_names_tensor_and_sample():
    bad = {"x": np.array([[1.0, np.inf]], np.float32)}
    with pytest.raises(CalibrationError, match=r"tensor 'x', sample '1'.*1 infinite of 2 values"):
        calibrate_ranges(doubling_network(), CALIBRATOR, [SAMPLES[0], bad])
    with pytest.raises(CalibrationError, match=r"tensor 'x', sample 'cat.png'"):
        calibrate_ranges(doubling_network(), CALIBRATOR, [("cat.png", bad)])
    seen = collect(doubling_network(), CALIBRATOR, [*SAMPLES, bad], skips_nonfinite=True)
    assert {name: one.skipped for name, one in seen.items()} == {"x": 1, "relu": 1, "y": 1}
    assert thresholds(solve(seen, CALIBRATOR)) == LARGEST


def test_no_sample_is_an_error():
    with pytest.raises(CalibrationError, match=r"network 'doubling'.*requires at least one sample"):
        calibrate_ranges(doubling_network(), CALIBRATOR, [])


@pytest.mark.parametrize("value", [SAMPLES, "minmax", None])
def test_what_is_no_calibrator_is_refused_by_its_type(value):
    words = rf"must be a Calibrator \(found {type(value).__name__}"
    with pytest.raises(CalibrationError, match=words):
        calibrate_ranges(doubling_network(), value, SAMPLES)
    if not isinstance(value, str):
        with pytest.raises(CalibrationError, match=words):
            BuilderConfig().calibrate_with(value, SAMPLES)


def test_a_sample_that_does_not_fit_is_named():
    with pytest.raises(
        ExecutionError, match=r"sample 'dog.png', network 'doubling': Every input must have an array .*none for 'x'"
    ):
        calibrate_ranges(doubling_network(), CALIBRATOR, [SAMPLES[0], ("dog.png", {"z": 1})])
