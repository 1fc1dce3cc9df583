"""Calibrators of TensorRT's interface, and the classes to derive from."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import chain, dla_config
from tests.core.quantization.small_networks import LARGEST, SAMPLES, doubling_network

import dryfit
from dryfit import BuilderFlag, QuantizationFlag
from dryfit.builder.config.mode_rules import broken_rules
from dryfit.errors import CalibrationError, ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.quantization.calibration import calibrate_ranges
from dryfit.quantization.calibration_stream import CalibrationAlgoType, is_stream, stream_algorithm, stream_samples
from dryfit.quantization.calibrator import Calibrator, Solution


class Stream:
    """A calibrator as TensorRT's users write it."""

    cache = None
    asked = 0
    end = None

    def __init__(self, batches=None, algorithm=3):
        self.batches = iter([[sample["x"]] for sample in SAMPLES] if batches is None else batches)
        self.algorithm = algorithm

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        type(self).asked += 1
        self.names = names
        return next(self.batches, self.end)

    def read_calibration_cache(self):
        return self.cache

    def write_calibration_cache(self, cache):
        type(self).cache = bytes(cache)

    def get_algorithm(self):
        return self.algorithm


def calibrator_of(stream):
    return Calibrator(
        name="acme", title="Acme", solve=lambda one: Solution.of_threshold(one.magnitude), stream=lambda: stream
    )


@pytest.fixture
def fresh():
    """A class of streams that shares nothing with those of other tests."""
    return type("AcmeStream", (Stream,), {})


def test_a_stream_is_known_by_its_methods():
    assert is_stream(Stream)
    assert is_stream(Stream())
    assert not is_stream(Network)
    assert not is_stream(type("Four", (Stream,), {"get_algorithm": None}))


def test_a_stream_brings_samples_and_gets_a_cache(fresh):
    solutions = calibrate_ranges(doubling_network(), calibrator_of(fresh()))
    assert {name: one.dynamic_range.threshold for name, one in solutions.items()} == LARGEST
    lines = fresh.cache.decode().splitlines()
    assert lines[0] == "TRT-100300-MinMaxCalibration"
    assert lines[1:] == ["x: 3d810204", "relu: 3c810204", "y: 3d010204"]  # 8, 2 and 4, divided by 127


def test_a_cache_that_covers_the_network_saves_the_run(fresh):
    network = doubling_network()
    network.add_activation(network.tensor("x"), ActivationType.TANH)  # no output needs it: it is not in the cache
    first = calibrate_ranges(network, calibrator_of(fresh()))
    asked = fresh.asked
    again = calibrate_ranges(network, calibrator_of(fresh()))
    assert fresh.asked == asked
    assert {n: one.dynamic_range.scale for n, one in again.items()} == {
        n: one.dynamic_range.scale for n, one in first.items()
    }
    assert again["x"].details == {"origin": "cache"}


@pytest.mark.parametrize(
    "cache", [b"TRT-8600-MinMaxCalibration\nx: 3f800000\n", b"1\nx: 1\nrelu: 1\ny: 1\n", b"", memoryview(b"")]
)
def test_a_cache_of_too_few_tensors_or_another_algorithm_is_not_used(fresh, cache):
    fresh.cache = cache
    solutions = calibrate_ranges(doubling_network(), calibrator_of(fresh()))
    assert solutions["x"].dynamic_range.threshold == 8.0
    assert fresh.cache != cache


def test_a_damaged_cache_is_an_error(fresh):
    fresh.cache = b"TRT-8600-MinMaxCalibration\nx = 1\n"
    with pytest.raises(CalibrationError, match=r"line 2"):
        calibrate_ranges(doubling_network(), calibrator_of(fresh()))


def test_an_empty_list_ends_a_stream_too(fresh):
    fresh.end = []
    samples = dict(stream_samples(fresh(), doubling_network()))
    assert list(samples) == ["batch 0", "batch 1", "batch 2"]


def test_addresses_are_read_with_the_shape_of_the_input(fresh):
    memory = np.arange(6, dtype=np.float32)
    network = Network()
    network.add_input("x", DataType.FLOAT, (-1, 2, 3))
    ((name, feeds),) = stream_samples(fresh([[memory.ctypes.data]]), network)
    memory[...] = 0  # the batch's memory is the stream's: what was read is a copy
    assert name == "batch 0"
    assert feeds["x"].tolist() == [[[0, 1, 2], [3, 4, 5]]]


def test_arrays_may_be_of_any_library_with_dlpack(fresh):
    class OnlyDlpack:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    batches = [[OnlyDlpack(sample["x"])] for sample in SAMPLES]
    samples = [feeds["x"] for _, feeds in stream_samples(fresh(batches), doubling_network())]
    assert [one.tolist() for one in samples] == [sample["x"].tolist() for sample in SAMPLES]


def test_an_address_without_a_shape_is_refused(fresh):
    network = Network()
    network.add_input("x", DataType.FLOAT, (1, -1))
    with pytest.raises(CalibrationError, match=r"input 'x'.*address 4096 for the shape \(1, -1\)"):
        list(stream_samples(fresh([[4096]]), network))
    with pytest.raises(CalibrationError, match=r"input 'x'.*address 0"):
        list(stream_samples(fresh([[0]]), doubling_network()))


def test_a_batch_with_too_few_arrays_is_refused(fresh):
    with pytest.raises(CalibrationError, match=r"batch 1 of AcmeStream.*found 2; allowed: 1: x"):
        list(stream_samples(fresh([[SAMPLES[0]["x"]], [1, 2]]), doubling_network()))


@pytest.mark.parametrize("size", [0, -1, "8", None])
def test_a_wrong_batch_size_is_refused(fresh, size):
    fresh.get_batch_size = lambda self: size
    with pytest.raises(CalibrationError, match=r"AcmeStream.get_batch_size.*found"):
        list(stream_samples(fresh(), doubling_network()))


@pytest.mark.parametrize("algorithm", [4, "entropy", None])
def test_an_unknown_algorithm_is_refused_with_those_that_exist(algorithm):
    with pytest.raises(CalibrationError, match=r"Stream.get_algorithm.*3 \(MINMAX_CALIBRATION\)"):
        stream_algorithm(Stream(algorithm=algorithm))


def test_an_algorithm_may_be_a_number_or_a_member():
    assert stream_algorithm(Stream(algorithm=2)) is CalibrationAlgoType.ENTROPY_CALIBRATION_2
    assert stream_algorithm(Stream(algorithm=CalibrationAlgoType(0))) is CalibrationAlgoType.LEGACY_CALIBRATION


def test_samples_from_two_sides_are_refused(fresh):
    with pytest.raises(CalibrationError, match=r"calibrator 'acme'.*provides its own samples"):
        calibrate_ranges(doubling_network(), calibrator_of(fresh()), SAMPLES)


class Legacy(Stream):
    """A calibrator that states the legacy algorithm's two parameters."""

    quantile = 0.75

    def get_quantile(self):
        return self.quantile

    def get_regression_cutoff(self):
        return 1.0


def share(histogram, *, quantile=1.0, regression_cutoff=0.5):
    return Solution.of_threshold(histogram.magnitude * quantile, cutoff=regression_cutoff)


def test_a_legacy_stream_states_its_options_and_they_stand_in_its_cache():
    class Own(Legacy):
        pass

    def ranges():
        stream = Own(algorithm=0)
        return calibrate_ranges(
            doubling_network(),
            Calibrator(name="legacy", title="", solve=share, stream=lambda: stream),
            full_range=False,
        )

    found = ranges()
    assert (found["y"].dynamic_range.threshold, found["y"].details["cutoff"]) == (3.0, 1.0)
    assert Own.cache.startswith(b"0 3ff0000000000000 3fe8000000000000\n")
    asked = Own.asked
    assert ranges()["y"].details == {"origin": "cache"}
    assert Own.asked == asked
    Own.quantile = 0.5  # a cache of another quantile is not used
    assert ranges()["y"].dynamic_range.threshold == 2.0


def test_a_share_that_is_no_number_is_refused():
    class Own(Legacy):
        quantile = None

    stream = Own(algorithm=0)
    with pytest.raises(
        CalibrationError, match=r"Own.get_quantile: The value must be between 0 and 1 \(found None; allowed: 0 to 1"
    ):
        calibrate_ranges(doubling_network(), Calibrator(name="legacy", title="", solve=share, stream=lambda: stream))


ALGORITHMS = {
    dryfit.IInt8LegacyCalibrator: (0, b"0 3ff0000000000000 3feff"),
    dryfit.IInt8EntropyCalibrator: (1, b"-EntropyCalibration\n"),
    dryfit.IInt8EntropyCalibrator2: (2, b"-EntropyCalibration2\n"),
    dryfit.IInt8MinMaxCalibrator: (3, b"-MinMaxCalibration\n"),
}
BATCHES = [np.random.default_rng(seed).standard_normal((1, 8, 6, 6)).astype(np.float32) for seed in range(4)]
LARGEST_GIVEN = max(float(np.abs(one).max()) for one in BATCHES)


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
    assert found[True] == LARGEST_GIVEN > found[False]
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
