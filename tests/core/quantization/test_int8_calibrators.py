"""TensorRT's calibrator classes, derived from as its users derive from them."""

import numpy as np
import pytest
from tests.core.builder.networks import chain, dla_config

import dryfit
from dryfit import BuilderFlag, CalibrationAlgoType, QuantizationFlag
from dryfit.builder.explicit_quantization.mode_rules import broken_rules
from dryfit.errors import CalibrationError, ConfigError
from dryfit.quantization.calibration_stream import is_stream

ALGORITHMS = {
    dryfit.IInt8LegacyCalibrator: (0, b"0 3ff0000000000000 3feff"),
    dryfit.IInt8EntropyCalibrator: (1, b"-EntropyCalibration\n"),
    dryfit.IInt8EntropyCalibrator2: (2, b"-EntropyCalibration2\n"),
    dryfit.IInt8MinMaxCalibrator: (3, b"-MinMaxCalibration\n"),
}
BATCHES = [np.random.default_rng(seed).standard_normal((1, 8, 6, 6)).astype(np.float32) for seed in range(4)]
LARGEST = max(float(np.abs(one).max()) for one in BATCHES)


def derived(base, **members):
    """A user's class: batches, a cache, and what the legacy one is asked for."""

    class Mine(base):
        def __init__(self):
            super().__init__()
            self.batches, self.cache = iter(BATCHES), None

        def get_batch_size(self):
            return 1

        def get_batch(self, names):
            batch = next(self.batches, None)
            return None if batch is None else [batch]

        def read_calibration_cache(self):
            return self.cache

        def write_calibration_cache(self, cache):
            self.cache = bytes(cache)

        def get_quantile(self):
            return 0.9999

        def get_regression_cutoff(self):
            return 1.0

    for name, value in members.items():
        setattr(Mine, name, value)
    return Mine()


def int8(network, calibrator, config=None):
    config = config or dryfit.Builder().create_builder_config()
    config.set_flag(BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    return dryfit.Builder().build_engine(network, config)


@pytest.mark.parametrize("base", ALGORITHMS)
def test_each_class_names_its_algorithm_and_builds(base):
    calibrator = derived(base)
    number, header = ALGORITHMS[base]
    assert calibrator.get_algorithm() == number
    assert isinstance(calibrator, dryfit.IInt8Calibrator)
    assert is_stream(calibrator)
    int8(chain("c", "r"), calibrator)
    assert header in calibrator.cache[:60]


def test_the_algorithms_have_the_numbers_of_tensorrt():
    assert {one.name: int(one) for one in CalibrationAlgoType} == {
        "LEGACY_CALIBRATION": 0,
        "ENTROPY_CALIBRATION": 1,
        "ENTROPY_CALIBRATION_2": 2,
        "MINMAX_CALIBRATION": 3,
    }


@pytest.mark.parametrize("base", ALGORITHMS)
def test_what_a_class_leaves_to_the_user_has_to_be_written(base):
    with pytest.raises(TypeError, match="get_batch"):
        base()


def test_inputs_keep_their_largest_magnitude_unless_the_calibrator_says_no():
    found = {}
    for full_range in (True, False):
        calibrator = derived(dryfit.IInt8EntropyCalibrator2, full_range=full_range)
        found[full_range] = int8(chain("c", "r"), calibrator).plan.network.tensor("x").dynamic_range[1]
    assert found[True] == LARGEST > found[False]
    config = dryfit.Builder().create_builder_config()
    config.set_flag(BuilderFlag.INT8)
    config.calibrate_with("entropy2", BATCHES, full_range=False)
    assert (
        dryfit.Builder().build_engine(chain("c", "r"), config).plan.network.tensor("x").dynamic_range[1] == found[False]
    )


def test_a_full_range_that_is_no_bool_is_refused():
    with pytest.raises(CalibrationError, match=r"Mine\.full_range"):
        int8(chain("c", "r"), derived(dryfit.IInt8EntropyCalibrator2, full_range="no"))


@pytest.mark.parametrize("base", ALGORITHMS)
@pytest.mark.parametrize("is_default", [True, False])
def test_for_the_dla_ranges_are_found_before_fusion(base, is_default):
    network, config = chain("c", "r"), dla_config()
    if not is_default:
        config.default_device_type = "GPU"
        config.set_device_type(network.get_layer(0), "DLA")
        config.set_flag(BuilderFlag.GPU_FALLBACK)
    is_older = ALGORITHMS[base][0] < 2
    if is_older:
        with pytest.raises(ConfigError, match=r"implicit\.dla_calibrator") as error:
            int8(network, derived(base), config)
        assert error.value.found == f"calibrator {'legacy' if base is dryfit.IInt8LegacyCalibrator else 'entropy'!r}"
        assert "IInt8EntropyCalibrator2" in error.value.remedy
        assert "CALIBRATE_BEFORE_FUSION" in error.value.remedy
        assert "required for DLA" in error.value.source
        config.set_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    plan = int8(network, derived(base), config).plan
    assert {layer.device for layer in plan.layers if layer.layer == "c0"} == {"DLA"}


def test_the_gpu_and_networks_that_are_not_calibrated_take_every_calibrator():
    config = dryfit.Builder().create_builder_config()
    config.int8_calibrator = derived(dryfit.IInt8EntropyCalibrator)
    config.default_device_type = "DLA"
    assert list(broken_rules(chain("c"), config)) == []
    config.set_flag(BuilderFlag.INT8)
    config.default_device_type = "GPU"
    assert list(broken_rules(chain("c"), config)) == []
