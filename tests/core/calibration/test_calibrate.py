"""Calibration by name, after fusion, and in shards that other processes may gather."""

import pickle

import numpy as np
import pytest
from tests.core.calibration.test_executor import pictures, small_network

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.calibration.calibrate import calibrate, tensors_after_fusion
from dryfit.calibration.task import CalibrationTask
from dryfit.errors import CalibrationError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.quantization.calibration_data import ArrayFiles
from dryfit.quantization.calibration_state import CalibrationState, merge_states
from dryfit.quantization.histogram import Histogram


def test_ranges_are_found_by_the_calibrator_s_name():
    arrays = pictures(3)
    found = calibrate(small_network(), "minmax", [{"x": array} for array in arrays], num_threads=1)
    assert found["x"].dynamic_range.threshold == max(float(np.abs(array).max()) for array in arrays)
    with pytest.raises(UnknownNameError, match="Unknown calibrator: 'minmx'"):
        calibrate(small_network(), "minmx", [])


def test_what_is_fused_away_has_no_range_after_fusion():
    network = Network("fused")
    x = network.add_input("x", DataType.FLOAT, (1, 3, 8, 8))
    kernel = np.ones((4, 3, 3, 3), np.float32)
    convolved = network.add_convolution_nd(x, 4, (3, 3), kernel, np.zeros(4, np.float32)).get_output(0)
    relu = network.add_activation(convolved, ActivationType.RELU).get_output(0)
    network.mark_output(relu)
    config = BuilderConfig()
    config.default_device_type = "CPU"
    left = tensors_after_fusion(network, config)
    assert left == ["x", relu.name]
    found = calibrate(network, "minmax", [{"x": pictures(1)[0]}], tensors=left)
    assert list(found) == left


@pytest.fixture
def task(tmp_path):
    np.save(tmp_path / "samples.npy", np.concatenate(pictures(6)))
    return CalibrationTask(
        load=small_network,
        source=ArrayFiles(tmp_path / "samples.npy"),
        calibrator="minmax",
        fingerprint={"model": "small"},
        num_threads=1,
    )


def test_shards_merge_to_the_bytes_of_one_run_and_a_task_can_be_sent(task):
    names = task.source.names(small_network())
    sent = pickle.loads(pickle.dumps(task))  # noqa: S301  our own bytes
    shards = [sent.run(part).to_bytes() for part in (names[4:], names[:1], names[1:4])]
    states = [CalibrationState.from_bytes(shard, Histogram) for shard in shards]
    assert merge_states(states).to_bytes() == task.run(names).to_bytes()


def test_a_run_goes_on_with_what_is_left(task):
    names = task.source.names(small_network())
    shown = []

    def two(samples):
        for _, sample in zip(range(2), samples, strict=False):
            yield sample
            shown.append(sample[0])

    first = task.run(names, watch=two)
    assert sorted(first.samples) == shown == list(names[:2])
    whole = task.run(names, first)
    assert whole.to_bytes() == task.run(names).to_bytes()
    assert task.run(names, whole).to_bytes() == whole.to_bytes()


def test_a_state_of_something_else_is_not_gone_on_with(task):
    other = CalibrationState({"model": "large"}, (), {})
    with pytest.raises(CalibrationError, match=r"another calibration \(found model: large; allowed: model: small"):
        task.run(["samples.npy[0]"], other)


def test_no_sample_at_all_is_an_error(task):
    with pytest.raises(CalibrationError, match="requires at least one sample"):
        task.run([])
