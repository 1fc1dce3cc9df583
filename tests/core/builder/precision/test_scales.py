"""Where a build finds scales: by hand, in a cache, by a calibrator."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import chain, image_network, named

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.enumerations import QuantizationFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.precision.scales import network_scales
from dryfit.building import Builder
from dryfit.calibration.before_build import found_ranges
from dryfit.errors import CalibrationError, ConfigError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.quantization.calibration_cache import CalibrationCache
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.calibrator import Calibrator, Solution

MAGNITUDE = Calibrator(
    name="magnitude", title="the largest magnitude", solve=lambda histogram: Solution.of_threshold(histogram.magnitude)
)


def scales_of(network, config):
    """The scales of a build, which is given what the calibrator found."""
    return network_scales(network, config, found_ranges(network, config))


def samples(count=2, shape=(1, 8, 6, 6)):
    numbers = np.random.default_rng(0)
    return [{"x": numbers.standard_normal(shape).astype(np.float32)} for _ in range(count)]


def int8_config():
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    return config


def origins(network, config):
    return {name: entry.origin.value for name, entry in scales_of(network, config).entries.items()}


def warnings_of(network, config):
    return list(Builder().build_plan(network, config).warnings)


class Stream:
    """A calibrator as TensorRT's users write it."""

    def __init__(self, cache=None):
        self.batches, self.cache, self.written = samples(), cache, None
        self.asked = 0

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        self.asked += 1
        return [self.batches.pop()[name] for name in names] if self.batches else None

    def read_calibration_cache(self):
        return self.cache

    def write_calibration_cache(self, cache):
        self.written = bytes(cache)

    def get_algorithm(self):
        return int(CalibrationAlgoType.MINMAX_CALIBRATION)


def test_a_calibrator_finds_what_was_not_set_by_hand():
    network, config = chain("c", "r"), int8_config()
    network.tensor("c0").dynamic_range = (-7, 7)
    config.calibrate_with(MAGNITUDE, samples())
    assert origins(network, config) == {"x": "calibrated", "c0": "by hand", "r1": "calibrated"}
    found = scales_of(network, config).entries["x"].dynamic_range.threshold
    assert found == max(float(np.abs(one["x"]).max()) for one in samples())


def test_a_network_is_calibrated_once_as_long_as_it_stays_as_it_is():
    network, config = chain("c", "r"), int8_config()
    config.calibrate_with(MAGNITUDE, iter(samples()))
    first = scales_of(network, config)
    assert scales_of(network, config) == first
    network.inputs[0].shape = (2, 8, 6, 6)
    with pytest.raises(CalibrationError, match="at least one sample"):
        scales_of(network, config)


def test_a_tensorrt_calibrator_is_asked_for_batches_and_given_its_cache():
    network, config, stream = chain("c", "r"), int8_config(), Stream()
    config.int8_calibrator = stream
    assert config.int8_calibrator is stream
    plan = Builder().build_plan(network, config)
    assert stream.written.startswith(b"TRT-")
    assert b"\nc0: " in stream.written
    assert not plan.warnings
    again = Stream(cache=stream.written)
    config.int8_calibrator = again
    assert origins(network, config) == {"x": "calibrated", "c0": "calibrated", "r1": "calibrated"}
    assert again.asked == 0


def test_where_every_range_was_set_by_hand_no_batch_is_asked_for():
    network, config, stream = chain("c", "r"), int8_config(), Stream()
    for tensor in network.tensors:
        tensor.dynamic_range = (-1, 1)
    config.int8_calibrator = stream
    Builder().build_plan(network, config)
    assert stream.asked == 0


def test_an_object_that_is_no_calibrator_is_refused_with_what_it_lacks():
    with pytest.raises(ConfigError, match="get_batch_size"):
        int8_config().int8_calibrator = object()


def test_an_unknown_calibrator_is_refused_by_name():
    with pytest.raises(UnknownNameError, match="entropy3"):
        int8_config().calibrate_with("entropy3", samples())


def test_a_cache_is_taken_from_a_file_or_its_bytes_and_a_range_by_hand_wins(tmp_path):
    scales = {"x": 0.5, "c0": 0.25, "r1": 1.0, "stranger": 1.0}
    data = CalibrationCache("TRT-8600-EntropyCalibration2", scales).to_bytes()
    path = tmp_path / "calib.cache"
    path.write_bytes(data)
    network, config = chain("c", "r"), int8_config()
    network.tensor("r1").dynamic_range = (-1, 1)
    for cache in (path, str(path), data):
        config.calibration_cache = cache
        table = scales_of(network, config)
        assert {name: entry.origin.value for name, entry in table.entries.items()} == {
            "x": "calibrated",
            "c0": "calibrated",
            "r1": "by hand",
        }
        assert table.entries["x"].dynamic_range.scale == 0.5
    assert "Scales are given for tensors that are not in the network: 'stranger'" in warnings_of(network, config)


def test_a_cache_that_is_missing_or_damaged_is_refused_with_file_and_line(tmp_path):
    config = int8_config()
    with pytest.raises(CalibrationError, match=r"nowhere\.cache"):
        config.calibration_cache = tmp_path / "nowhere.cache"
    (tmp_path / "torn.cache").write_bytes(b"TRT-8600-EntropyCalibration2\nx: 3f8000zz\n")
    with pytest.raises(CalibrationError, match=r"torn\.cache, line 2"):
        config.calibration_cache = tmp_path / "torn.cache"


def test_a_cache_that_lacks_tensors_is_completed_by_the_calibrator():
    network, config = chain("c", "r"), int8_config()
    config.calibration_cache = CalibrationCache("1", {"x": 0.5})
    config.calibrate_with(MAGNITUDE, samples())
    table = scales_of(network, config)
    assert table.entries["x"].dynamic_range.scale == 0.5
    assert not table.missing


def test_without_the_flag_nothing_is_calibrated_and_that_is_told():
    config = BuilderConfig()
    config.calibrate_with(MAGNITUDE, [])
    config.calibration_cache = CalibrationCache("1", {"x": 0.5})
    assert warnings_of(chain("c", "r"), config) == [
        "The calibrator has no effect without the flag INT8",
        "The calibration cache has no effect without the flag INT8",
    ]


def test_a_dynamic_network_is_calibrated_in_the_shape_of_its_calibration_profile():
    network, x = image_network((-1, 8, 6, 6))
    network.mark_output(named(network.add_softmax(x), "out"))
    config = int8_config()
    profile = OptimizationProfile()
    profile.set_shape("x", (1, 8, 6, 6), (4, 8, 6, 6), (8, 8, 6, 6))
    assert config.set_calibration_profile(profile)
    assert config.get_calibration_profile() is profile
    config.calibrate_with(MAGNITUDE, samples(shape=(4, 8, 6, 6)))
    assert origins(network, config)["x"] == "calibrated"


def test_a_layer_may_be_int8_as_soon_as_a_calibrator_is_there():
    network, config = chain("c", "r"), int8_config()
    config.default_device_type = "DLA"
    assert not config.can_run_on_DLA(network.layer("c0"))
    config.calibrate_with(MAGNITUDE, samples())
    assert config.can_run_on_DLA(network.layer("c0"))


def test_scales_of_a_cache_that_differ_are_made_one_where_the_dla_joins_and_pools():
    network, x = image_network()
    kernel = np.eye(8, dtype=np.float32).reshape(8, 8, 1, 1)
    a, b = (named(network.add_convolution_nd(x, 8, (1, 1), kernel), name) for name in "ab")
    layer = network.add_concatenation([a, b])
    layer.axis = 1
    pooled = network.add_pooling_nd(named(layer, "both"), PoolingType.MAX, (2, 2))
    network.mark_output(
        named(network.add_convolution_nd(named(pooled, "pooled"), 4, (1, 1), np.ones((4, 16, 1, 1), "f")), "out")
    )
    config = int8_config()
    config.default_device_type = "DLA"
    config.set_flag(BuilderFlag.GPU_FALLBACK)
    config.calibration_cache = CalibrationCache(
        "1", {"x": 0.5, "a": 0.25, "b": 0.125, "both": 0.25, "pooled": 0.375, "out": 1.0}
    )
    plan = Builder().build_plan(network, config)
    assert {layer.layer: layer.device for layer in plan.layers} == dict.fromkeys(
        ("a", "b", "both", "pooled", "out"), "DLA"
    )
    entries = scales_of(network, config).entries
    assert {entries[name].dynamic_range.scale for name in ("a", "b", "both", "pooled")} == {0.375}
    network.tensor("a").dynamic_range = (-1, 1)
    refused = Builder().build_plan(network, config)
    assert {layer.layer: layer.device for layer in refused.layers}["both"] == "GPU"
    assert any("Two ranges contradict each other: tensor 'a'" in warning for warning in refused.warnings)


def test_quantization_flags_are_set_cleared_and_a_mask():
    config = BuilderConfig()
    assert config.quantization_flags == 0
    config.set_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    assert config.get_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    assert config.quantization_flags == 1
    config.clear_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    config.quantization_flags = 1
    assert config.settings()["quantization_flags"] == ["CALIBRATE_BEFORE_FUSION"]
    with pytest.raises(ConfigError, match="0b10"):
        config.quantization_flags = 2


@pytest.mark.parametrize(("flags", "expected"), [((), "missing"), (("CALIBRATE_BEFORE_FUSION",), "calibrated")])
def test_after_fusion_there_is_nothing_inside_a_step_to_look_at(flags, expected):
    network, config = chain("c", "r", "c", "c"), int8_config()
    for flag in flags:
        config.set_quantization_flag(QuantizationFlag[flag])
    config.calibrate_with(attrs.evolve(MAGNITUDE, before_fusion=False), samples())
    assert origins(network, config)["c0"] == expected
    plan = Builder().build_plan(network, config)
    assert {layer.layer: layer.precision for layer in plan.layers}["c0"] is DataType.INT8


def test_the_inputs_type_is_no_part_of_what_is_calibrated():
    network, config = chain("c", "r"), int8_config()
    network.inputs[0].dtype = DataType.INT8
    config.calibrate_with(MAGNITUDE, [{"x": np.full((1, 8, 6, 6), 127, np.float32)}])
    assert scales_of(network, config).entries["x"].dynamic_range.scale == 1.0


def test_a_build_that_is_not_given_what_the_calibrator_finds_says_so():
    network, config = chain("c", "r"), BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.calibrate_with("minmax", [{"x": np.ones((1, 3, 8, 8), np.float32)}])
    with pytest.raises(
        CalibrationError, match=r"The config has a calibrator that was not run before the build.*dryfit\.Builder"
    ):
        network_scales(network, config)
