"""From a network and its config to what the board is told."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.board.boards import small_model, small_network

from dryfit.board.board_build import BoardBuild
from dryfit.board.from_config import HOST_SETTINGS, board_build
from dryfit.board.versions import plausible_name, strayed_names
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.onnx.parser import network_from_onnx
from dryfit.quantization.calibration_cache import CalibrationCache

EXPORTED_SETTINGS = frozenset(
    {
        "flags",
        "quantization_flags",
        "default_device_type",
        "fallback_device",
        "device_types",
        "software",
        "DLA_core",
        "engine_capability",
        "memory_pool_limits",
        "optimization_profiles",
        "profiling_verbosity",
        "builder_optimization_level",
        "assume_scales",
    }
)
"""Settings of a config that the board is told of."""

CACHE = CalibrationCache("TRT-8600-MinMaxCalibration", {"x": 0.25, "a": 0.5})
GEMM = "block/Gemm y"


@pytest.fixture
def network() -> Network:
    return network_from_onnx(small_model().SerializeToString())


def test_every_setting_of_a_config_is_told_or_known_to_be_the_hosts() -> None:
    network = small_network()
    assert BuilderConfig().settings(network).keys() == EXPORTED_SETTINGS | HOST_SETTINGS.keys()


def test_layers_go_by_the_names_of_their_nodes(network: Network) -> None:
    config = BuilderConfig()
    layers = [layer for layer in network.layers if layer.onnx_nodes == (GEMM,)]
    assert len(layers) > 1
    for layer in layers:
        config.set_device_type(layer, "DLA")
    exported = board_build(network, config, (10, 3))
    assert (exported.build.devices, exported.notes) == ({GEMM: "DLA"}, ())


def test_a_part_of_a_node_stands_for_the_whole_and_is_told(network: Network) -> None:
    config = BuilderConfig()
    config.set_device_type(network.layer(GEMM), "DLA")
    exported = board_build(network, config, (10, 3))
    assert exported.build.devices == {GEMM: "DLA"}
    assert f"{GEMM!r} applies to all of its layers" in exported.notes[0]


def test_layers_of_one_node_cannot_be_told_different_things(network: Network) -> None:
    config = BuilderConfig()
    first, *_, last = [layer for layer in network.layers if layer.onnx_nodes == (GEMM,)]
    config.set_device_type(first, "DLA")
    config.set_device_type(last, "GPU")
    with pytest.raises(ConfigError, match=f"The device of layers from ONNX node '{GEMM}' differ"):
        board_build(network, config, (10, 3))


def test_ranges_by_hand_win_over_the_cache_and_its_algorithm_is_the_one_that_boards_take(network: Network) -> None:
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.calibration_cache = CACHE
    network.tensor("a").dynamic_range = (-127.0, 3.0)
    build = board_build(network, config, (8, 5, 10)).build
    assert build.scales == {"x": 0.25, "a": 1.0}
    assert build.calibration_cache == CalibrationCache("TRT-8510-EntropyCalibration2", {"x": 0.25, "a": 1.0})


def test_scales_mean_nothing_without_int8_and_that_is_told(network: Network) -> None:
    config = BuilderConfig()
    config.calibration_cache = CACHE
    exported = board_build(network, config, (10, 3))
    assert exported.build.scales is None
    assert exported.notes == ("The scales are left out, because the flag INT8 is off",)


def test_given_scales_win_over_assumed_ones(network: Network) -> None:
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.assume_scales = True
    assert board_build(network, config, (10, 3)).build.assumes_scales
    config.calibration_cache = CACHE
    exported = board_build(network, config, (10, 3))
    assert not exported.build.assumes_scales
    assert exported.notes == ("Placeholder scales cannot be combined with given scales",)


def test_a_profile_says_nothing_of_inputs_that_have_one_shape() -> None:
    network = small_network(batch=2)
    config = BuilderConfig()
    profile = OptimizationProfile()
    profile.set_shape("x: y", (2, 4, 8, 8), (2, 4, 8, 8), (2, 4, 8, 8))
    config.add_optimization_profile(profile)
    assert board_build(network, config, (10, 3)).build.profiles == ()


def test_devices_and_calibrators_that_tensorrt_does_not_have_are_refused_together(network: Network) -> None:
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.default_device_type = "CPU"
    config.allow_fallback("CPU")
    config.set_device_type(network.layer(GEMM), "CPU")
    config.calibrate_with("minmax", [{"x": np.zeros((1, 4, 6, 6), np.float32)}])
    with pytest.raises(ConfigError) as refused:
        board_build(network, config, (10, 3))
    assert [word in str(refused.value) for word in ("default device", "fall back", GEMM, "calibrator")] == [True] * 4


def test_a_build_is_not_applied_to_a_network_that_is_typed_otherwise() -> None:
    with pytest.raises(ConfigError, match="The network and the build must both be strongly typed, or neither"):
        BoardBuild((10, 3), is_strongly_typed=True).apply_to(small_network())


def test_host_kernels_are_told_to_be_the_hosts(network: Network) -> None:
    config = BuilderConfig()
    config.forbid_kernels("cpu.winograd_*")
    notes = board_build(network, config, (10, 3)).notes
    assert notes == ("Forbidden host kernels are left out",)


def test_precisions_and_output_types_are_told(network: Network) -> None:
    layer = network.layer("block/Relu b")
    layer.precision = DataType.HALF
    layer.set_output_type(0, DataType.FLOAT)
    build = board_build(network, BuilderConfig(), (10, 3)).build
    assert (build.precisions, build.output_types) == (
        {"block/Relu b": DataType.HALF},
        {"block/Relu b": (DataType.FLOAT,)},
    )


@pytest.mark.parametrize(
    ("name", "listed", "found"),
    [
        ("conv1", ["conv*", "conv1"], "conv1"),
        ("conv2", ["conv*", "conv1"], "conv*"),
        ("ab", ["a*b"], "a*b"),
        ("a", ["a*a"], None),
        ("b", ["a"], None),
    ],
)
def test_one_star_is_read_as_trtexec_does(name: str, listed: list[str], found: str | None) -> None:
    assert plausible_name(name, listed) == found
    assert strayed_names([name], listed) == ([name] if found not in (None, name) else [])
