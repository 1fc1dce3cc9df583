"""Which clipping is reported, and which calibrator is named instead."""

from __future__ import annotations

import numpy as np
import pytest

import dryfit
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.plugins.calibrators import calibrator, solvers
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.network_ranges import clipping_of, severe_clipping
from dryfit.quantization.scale_table import scale_table


def histogram(values):
    seen = Histogram("x")
    seen.update(np.asarray(values, np.float32), "sample")
    return seen


def sparse(count=200_000, largest=20.0):
    """What a ReLU leaves that is zero for 97 of 100 values and has a long tail."""
    random = np.random.default_rng(0)
    values = np.zeros(count, np.float32)
    chosen = random.random(count) < 0.03
    values[chosen] = random.exponential(0.3, int(chosen.sum()))
    values[:40] = np.linspace(largest / 2, largest, 40)
    return values


def at(threshold):
    return Solution.of_threshold(threshold)


def test_a_range_far_below_the_largest_magnitude_is_reported_with_its_sqnr():
    seen = histogram(sparse())
    found = severe_clipping(seen, at(1.5), tuple)
    assert found.share == pytest.approx(0.075)
    values = sparse()
    step = 1.5 / 127
    noise = values - step * np.clip(np.round(values / step), -127, 127)
    expected = 10 * np.log10((values.astype(float) ** 2).sum() / (noise.astype(float) ** 2).sum())
    assert found.sqnr_db == pytest.approx(expected, abs=0.1)
    nonzero = values[values > 0]
    assert found.loss == pytest.approx((nonzero > 1.5).mean(), abs=0.002)


def test_zeros_do_not_count_among_the_values_that_saturate():
    values = np.zeros(10_000, np.float32)
    values[:100] = np.linspace(0.5, 1.0, 100)
    found = severe_clipping(histogram(values), at(0.9), tuple)
    assert found.loss == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("threshold", [20.0, 12.0])
def test_a_range_that_keeps_nearly_all_is_not_reported(threshold):
    assert severe_clipping(histogram(sparse()), at(threshold), tuple) is None


def test_the_calibrator_with_the_highest_sqnr_on_the_data_is_named():
    seen = histogram(sparse())
    found = severe_clipping(seen, at(1.5), solvers)
    ranges = {one.name: one.solution(seen).dynamic_range.threshold for one in solvers() if one.collector is Histogram}
    assert found.better in ranges
    best = severe_clipping(seen, at(ranges[found.better]), tuple)
    assert found.better_sqnr_db > found.sqnr_db + 1
    assert best is None or best.sqnr_db == pytest.approx(found.better_sqnr_db)


def test_a_calibrator_that_fails_gives_no_advice():
    def broken(_):
        raise ValueError

    rival = Calibrator(name="broken", title="", solve=broken)
    assert severe_clipping(histogram(sparse()), at(1.5), lambda: [rival]).better == ""


def test_the_rivals_are_asked_only_where_clipping_is_severe():
    def never():
        pytest.fail("asked")

    assert severe_clipping(histogram(sparse()), at(20.0), never) is None


def clipped_network():
    made = Network("sparse")
    x = made.add_input("x", DataType.FLOAT, (1, 200_000))
    relu = made.add_activation(x, ActivationType.RELU)
    made.rename_tensor(relu.get_output(0), "relu")
    made.mark_output(made.add_activation(relu.get_output(0), ActivationType.RELU).get_output(0))
    return made


NARROW = Calibrator(name="narrow", title="", solve=lambda one: Solution.of_threshold(one.magnitude / 20))


def test_a_build_warns_of_the_tensor_by_name_and_names_the_better_calibrator(caplog):
    config = dryfit.BuilderConfig()
    config.set_flag(dryfit.BuilderFlag.INT8)
    config.calibrate_with(NARROW, [{"x": sparse()[None]}])
    dryfit.Builder().build_engine(clipped_network(), config)
    (warning,) = [one.getMessage() for one in caplog.records if "'relu'" in one.getMessage()]
    assert "5 %" in warning
    assert any(name in warning for name in ("mean-squared-error", "minmax", "percentile"))


def test_the_table_of_scales_knows_clipped_tensors_and_a_range_by_hand_is_the_users_own():
    network = clipped_network()
    config = dryfit.BuilderConfig()
    config.set_flag(dryfit.BuilderFlag.INT8)
    found = dryfit.calibrate_ranges(network, NARROW, [{"x": sparse()[None]}], rivals=solvers)
    assert clipping_of(found["relu"].details).share == pytest.approx(0.05)
    assert "relu" in scale_table(network, found).clipped
    network.tensor("relu").set_dynamic_range(-1.0, 1.0)
    assert "relu" not in scale_table(network, found).clipped


def test_entropy2_is_among_the_solvers_that_are_asked():
    assert calibrator("entropy2").solve in {one.solve for one in solvers()}
