"""Defaults and values that clients compare with those of TensorRT's bindings."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dryfit_tensorrt.surface.default_tables import documented_defaults

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


# Documented defaults --------------------------------------------------------------------------------------------------


def new_objects(trt: Any) -> dict[str, Any]:
    """A new object of each class that has documented defaults, as a program gets it."""
    builder, network = network_of(trt)
    made = {
        "Builder": builder,
        "INetworkDefinition": network_of(trt)[1],
        "IBuilderConfig": builder.create_builder_config(),
        "IOptimizationProfile": builder.create_optimization_profile(),
        "Logger": trt.Logger(),
        "Runtime": trt.Runtime(builder.logger),
    }
    x = network.add_input("x", trt.float32, (1, 4, 8, 8))
    kernel, vector = np.ones((4, 4, 3, 3), np.float32), np.ones((1, 4, 1, 1), np.float32)
    scale = network.add_constant((), np.array(0.5, np.float32)).get_output(0)
    channels = network.add_constant((1, 4, 1, 1), vector).get_output(0)
    indices = network.add_constant((1,), np.zeros(1, np.int32)).get_output(0)
    grid = network.add_input("grid", trt.float32, (1, 5, 5, 2))
    lengths = network.add_constant((4,), np.ones(4, np.int32)).get_output(0)
    quantize = (
        network.add_quantize(x, scale, trt.int8) if "trt8" not in trt.__name__ else network.add_quantize(x, scale)
    )
    codes = quantize.get_output(0)
    real = (trt.float32,) if "trt8" not in trt.__name__ else ()
    layers = {
        "ILayer": network.add_identity(x),
        "IConvolutionLayer": network.add_convolution_nd(x, 4, (3, 3), kernel),
        "IDeconvolutionLayer": network.add_deconvolution_nd(x, 4, (3, 3), kernel),
        "IPoolingLayer": network.add_pooling_nd(x, trt.PoolingType.AVERAGE, (2, 2)),
        "ISoftMaxLayer": network.add_softmax(x),
        "IConcatenationLayer": network.add_concatenation([x, x]),
        "IShuffleLayer": network.add_shuffle(x),
        "ISliceLayer": network.add_slice(x, (0, 0, 0, 0), (1, 4, 4, 4), (1, 1, 1, 1)),
        "ITopKLayer": network.add_topk(x, trt.TopKOperation.MAX, 1, 2),
        "IGatherLayer": network.add_gather(x, indices, 1),
        "IResizeLayer": network.add_resize(x),
        "IFillLayer": network.add_fill((2, 2), trt.FillOperation.RANDOM_UNIFORM, *real),
        "IQuantizeLayer": quantize,
        "IDequantizeLayer": network.add_dequantize(codes, scale, *real),
        "IGridSampleLayer": network.add_grid_sample(x, grid),
        "INormalizationLayer": network.add_normalization(x, channels, channels, 0b1100),
        "IReverseSequenceLayer": network.add_reverse_sequence(x, lengths),
        "INonZeroLayer": network.add_non_zero(x),
        "IIteratorLayer": network.add_loop().add_iterator(x),
    }
    if hasattr(network, "add_attention"):
        layers["IAttention"] = network.add_attention(x, x, x, trt.AttentionNormalizationOp.SOFTMAX, False)
        cosines = network.add_constant((8, 4), np.ones((8, 4), np.float32)).get_output(0)
        layers["IRotaryEmbeddingLayer"] = network.add_rotary_embedding(x, cosines, cosines, False, 0)
    assert [name for name, layer in layers.items() if layer is None] == []
    built, small = network_of(trt)
    small.mark_output(small.add_identity(small.add_input("x", trt.float32, (2,))).get_output(0))
    config = built.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = made["Runtime"].deserialize_cuda_engine(built.build_serialized_network(small, config))
    context = engine.create_execution_context()
    return {
        **made,
        **layers,
        "ITensor": x,
        "IExecutionContext": context,
        "Refitter": trt.Refitter(engine, built.logger),
    }


def test_a_new_object_has_the_documented_defaults(trt: Any) -> None:
    api, objects = trt.Builder._api, new_objects(trt)
    expected = documented_defaults(api)
    assert len(expected) > 70
    found = {place: getattr(objects[place[0]], place[1]) for place in expected}
    assert {place: value for place, value in found.items() if value != expected[place]} == {}


@pytest.mark.shared
def test_the_defaults_of_a_config_are_those_of_the_gathered_facts(shared: Path) -> None:
    text = (shared / "reference" / "tensorrt-api.md").read_text()
    section = text[text.index("## 1.6 `IBuilderConfig`") : text.index("## 1.7 ")]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    rows = {name: line for line in lines for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    api = importlib.import_module("dryfit_tensorrt.trt10").Builder._api
    checked = 0
    for (owner, member), value in documented_defaults(api).items():
        if owner == "IBuilderConfig" and member in rows and member not in ("flags", "num_optimization_profiles"):
            spelled = "empty" if value == [] else str(getattr(value, "name", value))
            assert spelled.replace("-", "\N{MINUS SIGN}") in rows[member].split("|")[5], member
            checked += 1
    assert checked >= 12
