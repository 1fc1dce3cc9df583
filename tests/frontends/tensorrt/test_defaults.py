"""Defaults and values that clients compare with those of TensorRT's bindings."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

VERSIONS = (8, 10, 11)


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"dryfit_tensorrt.trt{request.param}")


def network_of(trt: Any) -> tuple[Any, Any]:
    builder = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR))
    flags = trt.NetworkDefinitionCreationFlag.__members__
    explicit = 1 << int(flags["EXPLICIT_BATCH"]) if "EXPLICIT_BATCH" in flags else 0
    return builder, builder.create_network(explicit)


def test_an_enumeration_has_the_entries_of_pybind11(trt: Any) -> None:
    entries = getattr(trt.GatherMode, "__entries")
    assert entries["DEFAULT"][0] is trt.GatherMode.DEFAULT
    assert entries.keys() == trt.GatherMode.__members__.keys()
    assert hasattr(trt.GatherMode.ND, "__entries")


@pytest.mark.parametrize(
    ("major", "on"),
    [
        (8, {"CUBLAS", "CUBLAS_LT", "CUDNN", "EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"}),
        (10, {"EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"}),
        (11, {"EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"}),
    ],
)
def test_the_default_tactic_sources_are_those_of_the_version(major: int, on: set[str]) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    builder, network = network_of(trt)
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    config = builder.create_builder_config()
    assert {one.name for one in trt.TacticSource if config.get_tactic_sources() >> int(one) & 1} == on
    engine = trt.Runtime(builder.logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    assert engine.tactic_sources == config.get_tactic_sources()


@pytest.mark.parametrize(
    ("major", "on"),
    [
        (8, {"FASTER_DYNAMIC_SHAPES_0805", "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805"}),
        (10, {"PROFILE_SHARING_0806"}),
        (11, set()),
    ],
)
def test_the_default_preview_features_are_those_of_the_version(major: int, on: set[str]) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    config = network_of(trt)[0].create_builder_config()
    assert {one.name for one in trt.PreviewFeature if config.get_preview_feature(one)} == on


def test_pools_without_a_limit_report_the_memory_of_the_simulated_device(trt: Any) -> None:
    from dryfit_tensorrt.cuda.device import current_device

    config = network_of(trt)[0].create_builder_config()
    total = current_device().total_bytes
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == total
    assert config.get_memory_pool_limit(trt.MemoryPoolType.TACTIC_DRAM) == total
    if hasattr(trt.MemoryPoolType, "TACTIC_SHARED_MEMORY"):
        assert config.get_memory_pool_limit(trt.MemoryPoolType.TACTIC_SHARED_MEMORY) == 1 << 30


def test_a_pool_keeps_any_size_and_only_a_build_with_the_dla_refuses_it(capfd: pytest.CaptureFixture[str]) -> None:
    trt = importlib.import_module("dryfit_tensorrt.trt10")
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network(0)
    relu = network.add_activation(network.add_input("x", trt.float32, (1, 8, 4, 4)), trt.ActivationType.RELU)
    network.mark_output(relu.get_output(0))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    config.set_memory_pool_limit(trt.MemoryPoolType.DLA_MANAGED_SRAM, 25)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.DLA_MANAGED_SRAM) == 25
    assert builder.build_serialized_network(network, config) is not None
    config.default_device_type = trt.DeviceType.DLA
    assert builder.build_serialized_network(network, config) is None
    assert "DLA_MANAGED_SRAM" in capfd.readouterr().err
    config.set_memory_pool_limit(trt.MemoryPoolType.DLA_MANAGED_SRAM, 1 << 16)
    assert builder.build_serialized_network(network, config) is not None


def test_weights_are_read_as_one_axis(trt: Any) -> None:
    _, network = network_of(trt)
    layer = network.add_constant((2, 3), np.arange(6, dtype=np.float32).reshape(2, 3))
    assert layer.weights.shape == (6,)
    assert layer.weights.tolist() == [0, 1, 2, 3, 4, 5]
    x = network.add_input("x", trt.float32, (1, 2, 4, 4))
    kernel = np.arange(6, dtype=np.float32).reshape(3, 2, 1, 1)
    convolution = network.add_convolution_nd(x, 3, (1, 1), kernel)
    assert convolution.kernel.tolist() == kernel.reshape(-1).tolist()


@pytest.mark.parametrize("major", [8, 10])
def test_the_type_that_is_set_for_an_output_is_read_back(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    _, network = network_of(trt)
    identity = network.add_identity(network.add_input("x", trt.float32, (2,)))
    network.mark_output(identity.get_output(0))
    network.get_output(0).dtype = trt.float16
    assert network.get_output(0).dtype == trt.float16


@pytest.mark.parametrize("major", [10, 11])
def test_the_memory_of_a_context_is_known_for_a_profile(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    builder, network = network_of(trt)
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(builder.logger).deserialize_cuda_engine(plan)
    assert engine.get_device_memory_size_for_profile_v2(0) == engine.device_memory_size_v2
