"""What an engine tells of itself, by TensorRT's names."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, relu_network

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import Builder
from dryfit.engine.engine import Engine, EngineStat, TensorIOMode
from dryfit.errors import ConfigError, EngineFileError, ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import TensorLocation
from dryfit.plugins import registry

PROFILE = {"x": ((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))}


@pytest.fixture
def engine():
    return Engine(plan_of(convolution_network(), groups=[("conv", "relu")], profiles=[PROFILE]))


def on_dla(platform: str, name: str, format: str, dtype: DataType = DataType.HALF) -> Engine:
    """A RELU network of which one tensor lies in a DLA's format."""
    plan = plan_of(relu_network((1, 3, 5, 7), dtype), settings={"platforms": {"DLA": platform}})
    placement = attrs.evolve(plan.placements[name], device="DLA", format=format)
    return Engine(attrs.evolve(plan, placements={**plan.placements, name: placement}))


def test_inputs_and_outputs_are_known_by_name_and_number(engine):
    assert engine.num_io_tensors == 2
    assert [engine.get_tensor_name(index) for index in range(2)] == ["x", "y"]
    assert (engine[0], engine[-1]) == ("x", "y")
    assert engine.get_tensor_mode("x") is TensorIOMode.INPUT
    assert engine.get_tensor_mode("y") is TensorIOMode.OUTPUT
    assert engine.get_tensor_mode("conv_out") is TensorIOMode.NONE
    assert engine.get_tensor_shape("x") == (-1, 3, 8, 8)
    assert engine.get_tensor_dtype("y") is DataType.FLOAT
    assert engine.get_tensor_location("y") is TensorLocation.DEVICE
    assert not engine.is_shape_inference_io("x")
    with pytest.raises(ExecutionError, match="found 2; allowed: 0 to 1"):
        engine.get_tensor_name(2)
    with pytest.raises(UnknownNameError, match="Unknown input or output: 'conv_out'"):
        engine.get_tensor_shape("conv_out")


def test_an_engine_tells_its_layers_memory_and_settings(engine):
    assert engine.name == "tiny"
    assert engine.num_layers == 1
    assert engine.device_memory_size == engine.device_memory_size_v2 == 1024
    assert engine.engine_capability == "STANDARD"
    assert engine.profiling_verbosity == "LAYER_NAMES_ONLY"
    assert not engine.refittable


def test_profiles_are_told(engine):
    assert engine.num_optimization_profiles == 1
    assert engine.get_tensor_profile_shape("x", 0) == [(1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8)]
    with pytest.raises(ExecutionError, match="found 1; allowed: 0 to 0"):
        engine.get_tensor_profile_shape("x", 1)
    with pytest.raises(UnknownNameError, match="Unknown input: 'y'"):
        engine.get_tensor_profile_shape("y", 0)
    static = Engine(plan_of(relu_network((2, 3))))
    assert static.num_optimization_profiles == 1
    assert static.get_tensor_profile_shape("x", 0) == [(2, 3)] * 3


def test_an_engine_that_was_saved_computes_what_the_built_one_does(engine, tmp_path):
    x = np.random.default_rng(0).standard_normal((3, 3, 8, 8)).astype(np.float32)
    expected = engine.create_execution_context(1).run(x)["y"]
    engine.save(tmp_path / "tiny.engine")
    for source in (tmp_path / "tiny.engine", str(tmp_path / "tiny.engine"), engine.serialize()):
        loaded = Engine.load(source)
        np.testing.assert_array_equal(loaded.create_execution_context(2).run(x)["y"], expected)
        assert loaded.serialize() == engine.serialize()


def test_plain_formats_are_told(engine):
    assert engine.get_tensor_format("x") == "LINEAR"
    assert engine.get_tensor_format_desc("x") == "Row major linear FP32"
    assert engine.get_tensor_vectorized_dim("x") == -1
    assert engine.get_tensor_components_per_element("x") == -1
    assert engine.get_tensor_bytes_per_component("x") == -1


def test_vector_formats_are_told():
    engine = on_dla("agx-orin-64", "y", "CHW16")
    assert engine.get_tensor_format("y") == "CHW16"
    assert engine.get_tensor_format_desc("y") == "Sixteen wide channel vectorized row major FP16 format"
    assert engine.get_tensor_vectorized_dim("y") == 1
    assert engine.get_tensor_components_per_element("y") == 16
    assert engine.get_tensor_bytes_per_component("y") == 2
    assert engine.create_execution_context(1).get_strides("y") == (35, 35, 7, 1)


@pytest.mark.parametrize(("platform", "line"), [("agx-orin-64", 64), ("agx-xavier", 32)])
def test_the_line_of_an_image_format_follows_the_platform(platform, line):
    engine = on_dla(platform, "x", "DLA_HWC4")
    words = "Channel major FP16 format where channel == 4 and column stride % 32 == 0"  # TensorRT's, on every platform
    assert engine.get_tensor_format_desc("x") == words
    padded = -(-7 * 8 // line) * line // 2
    assert engine.create_execution_context(1).get_strides("x")[2] == padded


def test_a_tensor_is_packed_into_the_format_of_the_device_and_unpacked_again():
    engine = on_dla("agx-orin-64", "y", "CHW16")
    array = np.random.default_rng(0).normal(size=engine.get_tensor_shape("y")).astype(np.float16)
    packed = engine.pack_tensor("y", array)
    assert packed.dtype == np.uint8
    assert packed.nbytes == engine.tensor_bytes("y", array.shape) == 16 * 2 * math.prod(array.shape[2:])
    stored = packed.view(np.float16).reshape(1, 1, *array.shape[2:], 16)
    np.testing.assert_array_equal(stored[0, 0, :, :, : array.shape[1]].transpose(2, 0, 1), array[0])
    np.testing.assert_array_equal(engine.unpack_tensor("y", packed, array.shape), array)
    with pytest.raises(ConfigError, match="size of the tensor"):
        engine.unpack_tensor("y", packed[1:], array.shape)


def test_a_format_that_the_device_does_not_have_is_refused():
    with pytest.raises(EngineFileError, match=r"tensor 'x'.*found CHW7 on DLA"):
        on_dla("agx-orin-64", "x", "CHW7").get_tensor_format("x")


def test_every_format_of_every_target_has_a_description():
    for target in registry.targets().values():
        for table in (target.input_formats, target.output_formats):
            for formats in table.values():
                for described in formats:
                    plan = plan_of(relu_network((1, 4, 5, 7)))
                    placement = attrs.evolve(plan.placements["x"], device=target.device, format=described.name)
                    engine = Engine(attrs.evolve(plan, placements={"x": placement}))
                    words = engine.get_tensor_format_desc("x")
                    assert words.count("format") == (described.name != "LINEAR")
                    assert "{" not in words


# Weights --------------------------------------------------------------------------------------------------------------


def _refittable_engine(*flags):
    config = BuilderConfig()
    for flag in flags:
        config.set_flag(flag)
    return Builder().build_engine(convolution_network(), _with_profile(config))


def _with_profile(config):
    profile = OptimizationProfile()
    profile.set_shape("x", *((batch, 3, 8, 8) for batch in (1, 2, 4)))
    config.add_optimization_profile(profile)
    return config


def test_the_size_of_weights_does_not_depend_on_kernels():
    engine = _refittable_engine()
    assert engine.get_engine_stat(EngineStat.TOTAL_WEIGHTS_SIZE) == 4 * (4 * 3 * 3 * 3 + 4)
    assert engine.get_engine_stat(EngineStat.STRIPPED_WEIGHTS_SIZE) == 0
    assert engine.get_engine_stat(0) == engine.get_engine_stat(EngineStat.TOTAL_WEIGHTS_SIZE)


def test_the_weights_of_a_stripped_engine_are_all_stripped():
    engine = _refittable_engine(BuilderFlag.STRIP_PLAN)
    sizes = [engine.get_engine_stat(stat) for stat in EngineStat]
    assert sizes == [4 * (4 * 3 * 3 * 3 + 4)] * 2


def test_weights_can_be_excluded_from_the_file_of_an_engine_that_can_be_refitted():
    engine = _refittable_engine(BuilderFlag.REFIT)
    whole, small = engine.serialize(), engine.serialize(exclude_weights=True)
    assert len(small) < len(whole)
    assert Engine.load(small).is_stripped
    assert not engine.is_stripped
    assert engine.serialize() == whole


def test_weights_cannot_be_excluded_without_a_refit():
    with pytest.raises(ExecutionError, match="supports refit can be excluded"):
        _refittable_engine().serialize(exclude_weights=True)
