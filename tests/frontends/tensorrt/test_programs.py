"""Programs as users write them for TensorRT, through the modules of each version, against ONNX Runtime or numpy."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dryfit_tensorrt import memory

VERSIONS = (8, 10, 11)
WEAK = (8, 10)
"""Versions with weak typing and calibrators."""


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"dryfit_tensorrt.trt{request.param}")


class Log:
    """A logger that keeps its messages."""

    def __new__(cls, trt: Any) -> Any:
        class Kept(trt.ILogger):
            def __init__(self) -> None:
                trt.ILogger.__init__(self)
                self.lines: list[tuple[str, str]] = []

            def log(self, severity: Any, msg: str) -> None:
                self.lines.append((severity.name, msg))

            def of(self, severity: str) -> list[str]:
                return [text for name, text in self.lines if name == severity]

        return Kept()


def explicit(trt: Any) -> int:
    flags = trt.NetworkDefinitionCreationFlag.__members__
    return 1 << int(flags["EXPLICIT_BATCH"]) if "EXPLICIT_BATCH" in flags else 0


def model(batch: int | str = 1) -> onnx.ModelProto:
    """A convolution, a ReLU and a convolution, with the batch given."""
    random = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2"], ["y"], name="conv2"),
    ]
    weights = [
        numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in (("w1", (16, 4, 3, 3)), ("w2", (8, 16, 1, 1)))
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 8, 12, 12])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def parsed(trt: Any, builder: Any, logger: Any, proto: onnx.ModelProto) -> Any:
    network = builder.create_network(explicit(trt))
    parser = trt.OnnxParser(network, logger)
    assert parser.parse(proto.SerializeToString()), [str(parser.get_error(i)) for i in range(parser.num_errors)]
    return network


def expected(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]  # type: ignore[no-any-return]


def sample(batch: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, (batch, 4, 12, 12)).astype(np.float32)


def on_device(array: np.ndarray) -> int:
    address = memory.allocate(array.nbytes)
    memory.view(address, array.nbytes)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return address


def run(trt: Any, engine: Any, x: np.ndarray) -> np.ndarray:
    context = engine.create_execution_context()
    assert context.set_input_shape("x", x.shape)
    shape = context.get_tensor_shape("y")
    kind = trt.nptype(engine.get_tensor_dtype("y"))
    output = memory.allocate(trt.volume(shape) * np.dtype(kind).itemsize)
    assert context.set_tensor_address("x", on_device(x))
    assert context.set_tensor_address("y", output)
    assert context.execute_async_v3(0)
    return memory.array_at(output, tuple(shape), kind).copy()


def test_a_model_is_parsed_built_saved_loaded_and_run(trt: Any) -> None:
    logger = Log(trt)
    with trt.Builder(logger) as builder:
        network = parsed(trt, builder, logger, model())
        config = builder.create_builder_config()
        plan = builder.build_serialized_network(network, config)
    assert plan.nbytes == len(bytes(plan)) > 0
    engine = trt.Runtime(logger).deserialize_cuda_engine(memoryview(plan))
    assert [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)] == ["x", "y"]
    assert engine.get_tensor_shape("x") == (1, 4, 12, 12)
    np.testing.assert_allclose(run(trt, engine, sample()), expected(model(), sample()), atol=1e-5)
    assert logger.of("ERROR") == []


def test_dynamic_shapes_follow_the_profile(trt: Any) -> None:
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = parsed(trt, builder, logger, model("n"))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    assert builder.build_serialized_network(network, config) is None
    assert any("profile" in text for text in logger.of("ERROR"))
    profile.set_shape("x", (1, 4, 12, 12), (2, 4, 12, 12), (4, 4, 12, 12))
    assert config.add_optimization_profile(profile) == 0
    build = builder.build_engine_with_config if hasattr(builder, "build_engine_with_config") else builder.build_engine
    engine = build(network, config)
    assert engine.get_tensor_profile_shape("x", 0) == [(1, 4, 12, 12), (2, 4, 12, 12), (4, 4, 12, 12)]
    np.testing.assert_allclose(run(trt, engine, sample(3)), expected(model("n"), sample(3)), atol=1e-5)
    context = engine.create_execution_context()
    assert context.infer_shapes() == ["x"]
    assert not context.set_input_shape("x", (5, 4, 12, 12))
    with pytest.raises(RuntimeError):
        profile.set_shape("x", (4, 4, 12, 12), (2, 4, 12, 12), (4, 4, 12, 12))


@pytest.mark.parametrize("major", WEAK)
def test_layers_run_on_the_dla_and_the_log_lists_them(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    logger = Log(trt)
    builder = trt.Builder(logger)
    assert builder.num_DLA_cores == 2
    network = parsed(trt, builder, logger, model())
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.default_device_type = trt.DeviceType.DLA
    config.DLA_core = 0
    network[1].precision = trt.float32
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    config.set_device_type(network[2], trt.DeviceType.GPU)
    assert config.can_run_on_DLA(network[0])
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    log = logger.of("INFO")
    assert "---------- Layers Running on DLA ----------" in log
    assert "[DlaLayer] {ForeignNode[conv1]}" in log
    assert "[GpuLayer] CONVOLUTION: conv2" in log
    np.testing.assert_allclose(run(trt, engine, sample()), expected(model(), sample()), atol=3e-2)


def test_version_11_has_no_dla_and_says_so() -> None:
    trt = importlib.import_module("dryfit_tensorrt.trt11")
    logger = Log(trt)
    builder = trt.Builder(logger)
    assert builder.num_DLA_cores == 0
    network, config = parsed(trt, builder, logger, model()), builder.create_builder_config()
    config.default_device_type = trt.DeviceType.DLA
    assert builder.build_serialized_network(network, config) is None
    assert any("TensorRT 11 has no DLA" in text for text in logger.of("ERROR"))


@pytest.mark.parametrize("major", WEAK)
def test_a_calibrator_is_called_in_tensorrts_order_and_its_cache_does_not_depend_on_the_batch_size(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    samples = np.concatenate([sample(seed=seed) for seed in range(8)])

    class Calibrator(trt.IInt8EntropyCalibrator2):
        def __init__(self, batch: int, cache: bytes | None = None) -> None:
            trt.IInt8EntropyCalibrator2.__init__(self)
            self.batch, self.cache, self.calls = batch, cache, list[str]()
            self.batches = iter(np.split(samples, len(samples) // batch))

        def get_batch_size(self) -> int:
            self.calls.append("batch size")
            return self.batch

        def get_batch(self, names: list[str]) -> list[int] | None:
            assert names == ["x"]
            self.calls.append("batch")
            found = next(self.batches, None)
            return None if found is None else [on_device(found)]

        def read_calibration_cache(self) -> bytes | None:
            self.calls.append("read")
            return self.cache

        def write_calibration_cache(self, cache: Any) -> None:
            self.calls.append("write")
            self.cache = bytes(cache)

    def calibrated(calibrator: Any, batch: int) -> Any:
        logger = Log(trt)
        builder = trt.Builder(logger)
        network, config = parsed(trt, builder, logger, model("n")), builder.create_builder_config()
        config.set_flag(trt.BuilderFlag.INT8)
        config.int8_calibrator = calibrator
        profile = builder.create_optimization_profile()
        profile.set_shape("x", *[(batch, 4, 12, 12)] * 3)
        config.add_optimization_profile(profile)
        assert config.set_calibration_profile(profile)
        return builder.build_serialized_network(network, config), logger

    first, second = Calibrator(1), Calibrator(4)
    plan, logger = calibrated(first, 1)
    assert plan is not None, logger.of("ERROR")
    assert first.calls[0] == "batch size" or first.calls[0] == "read"
    assert first.calls.count("batch") == 9
    assert first.calls[-1] == "write"
    assert calibrated(second, 4)[0] is not None
    assert first.cache == second.cache
    assert first.cache is not None
    assert first.cache.startswith(b"TRT-")
    again = Calibrator(1, first.cache)
    assert calibrated(again, 1)[0] is not None
    assert "batch" not in again.calls


def test_calibrators_are_gone_in_version_11_and_the_translation_is_named() -> None:
    trt = importlib.import_module("dryfit_tensorrt.trt11")
    with pytest.raises(AttributeError, match=r"IInt8EntropyCalibrator2.*removed in TensorRT 11\.0.*dryfit translate"):
        _ = trt.IInt8EntropyCalibrator2
    with pytest.raises(AttributeError, match=r"INT8.*removed in TensorRT 11\.0.*QuantizeLinear.*dryfit translate"):
        _ = trt.BuilderFlag.INT8
    config = trt.Builder(trt.Logger()).create_builder_config()
    with pytest.raises(AttributeError, match=r"int8_calibrator.*removed in TensorRT 11\.0.*dryfit translate"):
        config.int8_calibrator = object()


def test_a_misspelt_setting_is_refused_as_by_the_bindings(trt: Any) -> None:
    config = trt.Builder(trt.Logger()).create_builder_config()
    with pytest.raises(AttributeError, match="'IBuilderConfig' object has no attribute 'DLA_cores'"):
        config.DLA_cores = 1
    logger = Log(trt)
    logger.anything = 1  # a class of the program's own


def test_an_input_in_a_device_format_is_read_as_the_board_has_it() -> None:
    trt = importlib.import_module("dryfit_tensorrt.trt10")
    logger = Log(trt)
    builder = trt.Builder(logger)
    network, config = parsed(trt, builder, logger, model()), builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.set_flag(trt.BuilderFlag.DIRECT_IO)
    config.default_device_type = trt.DeviceType.DLA
    for tensor in (network.get_input(0), network.get_output(0)):
        tensor.dtype = trt.float16
        tensor.allowed_formats = 1 << int(trt.TensorFormat.CHW16)
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    assert engine.get_tensor_format("x") == trt.TensorFormat.CHW16
    assert engine.get_tensor_components_per_element("x") == 16
    packed = np.zeros((1, 1, 12, 12, 16), np.float16)
    packed[0, 0, :, :, :4] = sample()[0].transpose(1, 2, 0)
    context = engine.create_execution_context()
    output = memory.allocate(context.get_max_output_size("y"))
    context.set_tensor_address("x", on_device(packed))
    context.set_tensor_address("y", output)
    assert context.execute_async_v3(0), logger.of("ERROR")
    found = memory.array_at(output, (1, 1, 12, 12, 16), np.float16)[0, 0, :, :, :8].transpose(2, 0, 1)
    np.testing.assert_allclose(found, expected(model(), sample())[0], atol=3e-2)


def test_wrong_addresses_fail_a_run_and_are_logged(trt: Any) -> None:
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = parsed(trt, builder, logger, model())
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    context = trt.Runtime(logger).deserialize_cuda_engine(plan).create_execution_context()
    assert not context.execute_async_v3(0)
    context.set_tensor_address("x", on_device(sample()))
    context.set_tensor_address("y", memory.allocate(16))
    assert not context.execute_async_v3(0)
    assert any("outside of its allocation" in text for text in logger.of("ERROR"))
    assert not context.set_tensor_address("z", 1)


def test_damaged_bytes_are_no_engine(trt: Any) -> None:
    logger = Log(trt)
    assert trt.Runtime(logger).deserialize_cuda_engine(b"no engine") is None
    assert logger.of("ERROR")


def test_layers_are_changed_through_their_class_as_polygraphy_does(trt: Any) -> None:
    logger = Log(trt)
    network = parsed(trt, trt.Builder(logger), logger, model())
    layer = network[0]
    assert type(layer) is trt.ILayer
    assert layer.type == trt.LayerType.CONVOLUTION
    layer.__class__ = trt.IConvolutionLayer
    assert (layer.num_output_maps, layer.kernel_size_nd, layer.padding_nd) == (16, (3, 3), (1, 1))
    assert layer.kernel.shape == (16 * 4 * 3 * 3,), "weights have one axis"
    own = set(dir(layer)) - set(dir(trt.ILayer))
    assert not [name for name in own if name.startswith("_") and not name.startswith("__")]
    assert layer.get_output(0) is network[1].get_input(0)
    assert network[-1].name == "conv2"


def test_a_network_is_built_layer_by_layer(trt: Any) -> None:
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(explicit(trt))
    x = network.add_input("x", trt.float32, (1, 4, 12, 12))
    kernel = np.random.default_rng(2).normal(0, 0.2, (8, 4, 3, 3)).astype(np.float32)
    layer = network.add_convolution_nd(x, 8, (3, 3), trt.Weights(kernel), trt.Weights())
    layer.padding_nd = (1, 1)
    layer.stride_nd = trt.DimsHW(1, 1)
    relu = network.add_activation(layer.get_output(0), type=trt.ActivationType.RELU)
    assert relu.type == trt.ActivationType.RELU
    pool = network.add_pooling_nd(relu.get_output(0), trt.PoolingType.MAX, (2, 2))
    pool.stride_nd = (2, 2)
    shuffle = network.add_shuffle(pool.get_output(0))
    shuffle.reshape_dims = (1, -1)
    shuffle.get_output(0).name = "y"
    network.mark_output(shuffle.get_output(0))
    assert network.get_output(0).shape == (1, 288)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    found = run(trt, trt.Runtime(logger).deserialize_cuda_engine(plan), sample())
    padded = np.pad(sample()[0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    wanted = np.maximum(np.einsum("chwij,ocij->ohw", windows, kernel), 0)
    wanted = wanted.reshape(8, 6, 2, 6, 2).max((2, 4)).reshape(1, -1)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_a_layer_that_cannot_be_is_none_and_logged(trt: Any) -> None:
    logger = Log(trt)
    network = trt.Builder(logger).create_network(explicit(trt))
    x = network.add_input("x", trt.float32, (1, 4))
    assert network.add_softmax(x) is not None
    assert network.add_input("x", trt.float32, (1, 4)) is None
    assert any("unique" in text or "already" in text for text in logger.of("ERROR"))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        network.add_softmax()


def test_the_inspector_has_the_form_of_the_version(trt: Any) -> None:
    logger = Log(trt)
    builder = trt.Builder(logger)
    network, config = parsed(trt, builder, logger, model()), builder.create_builder_config()
    plan = builder.build_serialized_network(network, config)
    names = trt.Runtime(logger).deserialize_cuda_engine(plan).create_engine_inspector()
    assert all(
        isinstance(one, str)
        for one in json.loads(names.get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
    )
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    found = json.loads(engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON))
    assert len(found["Layers"]) == engine.num_layers
    tensor = found["Layers"][0]["Inputs"][0]
    if trt.__version__.startswith("11"):
        assert {"Format", "Datatype"} <= set(tensor)
        assert [one["Name"] for one in found["I/O Tensors"]] == ["x", "y"]
    else:
        assert tensor["Format/Datatype"] == "Row major linear FP32"
        assert found["Bindings"] == ["x", "y"]


def test_output_allocators_get_the_size_and_the_shape(trt: Any) -> None:
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = parsed(trt, builder, logger, model())
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    context = trt.Runtime(logger).deserialize_cuda_engine(plan).create_execution_context()

    class Allocator(trt.IOutputAllocator):
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)
            self.address, self.shape = 0, ()

        def reallocate_output(self, tensor_name: str, memory_: int, size: int, alignment: int) -> int:
            self.address = memory.allocate(size)
            return self.address

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            self.shape = tuple(shape)

    allocator = Allocator()
    assert context.set_output_allocator("y", allocator)
    context.set_tensor_address("x", on_device(sample()))
    assert context.execute_async_v3(0)
    assert allocator.shape == (1, 8, 12, 12)
    found = memory.array_at(allocator.address, allocator.shape, np.float32)
    np.testing.assert_allclose(found, expected(model(), sample()), atol=1e-5)


def test_a_subgraph_that_is_not_supported_is_named() -> None:
    trt = importlib.import_module("dryfit_tensorrt.trt10")
    proto = model()
    proto.graph.node.insert(1, helper.make_node("NoSuchOperator", ["c1"], ["c2"], name="odd", domain="nowhere"))
    proto.graph.node[2].input[0] = "c2"
    logger = Log(trt)
    parser = trt.OnnxParser(trt.Builder(logger).create_network(0), logger)
    assert not parser.supports_model_v2(proto.SerializeToString())
    found = [(parser.get_subgraph_nodes(i), parser.is_subgraph_supported(i)) for i in range(parser.num_subgraphs)]
    assert found == [([0], True), ([2, 3], False)], "what follows the error is to be asked about again"
    assert parser.num_errors
    assert parser.get_error(0).node_name() == "odd"
    assert not parser.parse(proto.SerializeToString())


@pytest.mark.shared
@pytest.mark.parametrize("major", VERSIONS)
def test_a_profiler_gets_the_time_of_each_engine_layer(shared_models: Path, major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(explicit(trt))
    assert trt.OnnxParser(network, logger).parse_from_file(str(shared_models / "mnist-8.onnx"))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    context = engine.create_execution_context()

    class Times(trt.IProfiler):
        def __init__(self) -> None:
            trt.IProfiler.__init__(self)
            self.names: list[str] = []

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            self.names.append(layer_name)

    context.profiler = Times()
    for index in range(engine.num_io_tensors):
        name = engine.get_tensor_name(index)
        context.set_tensor_address(name, memory.allocate(4 * trt.volume(engine.get_tensor_shape(name))))
    assert context.execute_async_v3(0)
    assert len(context.profiler.names) == engine.num_layers


def test_a_loop_is_written_as_in_tensorrt(trt: Any) -> None:
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(explicit(trt))
    x = network.add_input("x", trt.float32, (4, 3))
    count = network.add_constant((), np.array(4, np.int32)).get_output(0)
    zero = network.add_constant((3,), np.zeros(3, np.float32)).get_output(0)
    loop = network.add_loop()
    loop.name = "sums"
    loop.add_trip_limit(count, trt.TripLimit.COUNT)
    row = loop.add_iterator(x, axis=0)
    total = loop.add_recurrence(zero)
    added = network.add_elementwise(total.get_output(0), row.get_output(0), trt.ElementWiseOperation.SUM)
    total.set_input(1, added.get_output(0))
    sums = loop.add_loop_output(added.get_output(0), trt.LoopOutput.CONCATENATE, 0)
    sums.set_input(1, count)
    assert total.loop.name == "sums"
    assert (row.axis, row.reverse, sums.kind) == (0, False, trt.LoopOutput.CONCATENATE)
    sums.get_output(0).name = "y"
    network.mark_output(sums.get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None, logger.of("ERROR")
    values = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    found = run(trt, trt.Runtime(logger).deserialize_cuda_engine(plan), values)
    np.testing.assert_allclose(found, np.cumsum(values, axis=0), rtol=1e-6)


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_a_conditional_runs_the_chosen_branch(trt: Any, value: float) -> None:
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(explicit(trt))
    x = network.add_input("x", trt.float32, (1, 3))
    total = network.add_reduce(x, trt.ReduceOperation.SUM, 3, False).get_output(0)
    zero = network.add_constant((), np.zeros((), np.float32)).get_output(0)
    positive = network.add_elementwise(total, zero, trt.ElementWiseOperation.GREATER).get_output(0)
    conditional = network.add_if_conditional()
    conditional.set_condition(positive)
    inside = conditional.add_input(x).get_output(0)
    doubled = network.add_elementwise(inside, inside, trt.ElementWiseOperation.SUM).get_output(0)
    negated = network.add_unary(inside, trt.UnaryOperation.NEG).get_output(0)
    output = conditional.add_output(doubled, negated).get_output(0)
    output.name = "y"
    network.mark_output(output)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None, logger.of("ERROR")
    values = np.full((1, 3), value, np.float32)
    found = run(trt, trt.Runtime(logger).deserialize_cuda_engine(plan), values)
    np.testing.assert_array_equal(found, 2 * values if value > 0 else -values)


@pytest.mark.parametrize("major", [10, 11])
def test_attention_equals_its_formula(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (1, 2, 5, 8))
    attention = network.add_attention(x, x, x, trt.AttentionNormalizationOp.SOFTMAX, False)
    assert type(attention) is trt.IAttention
    assert (attention.causal, attention.num_outputs) == (False, 1)
    attention.get_output(0).name = "y"
    network.mark_output(attention.get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None, logger.of("ERROR")
    values = np.random.default_rng(0).normal(size=(1, 2, 5, 8)).astype(np.float32)
    found = run(trt, trt.Runtime(logger).deserialize_cuda_engine(plan), values)
    scores = np.exp(values @ values.swapaxes(-1, -2))
    np.testing.assert_allclose(found, scores / scores.sum(-1, keepdims=True) @ values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("major", [10, 11])
def test_a_debug_listener_gets_marked_tensors_that_are_switched_on(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    logger = Log(trt)
    builder = trt.Builder(logger)
    network = parsed(trt, builder, logger, model())
    assert network.mark_debug(network[0].get_output(0)) is True
    assert network.is_debug_tensor(network[0].get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    seen: list[tuple[str, tuple[int, ...], float]] = []

    class Listener(trt.IDebugListener):
        def __init__(self) -> None:
            trt.IDebugListener.__init__(self)

        def process_debug_tensor(self, addr: int, location: Any, type: Any, shape: Any, name: str, stream: int) -> bool:
            values = memory.array_at(addr, tuple(shape), trt.nptype(type))
            seen.append((name, tuple(shape), float(values.min())))
            return True

    assert engine.is_debug_tensor("c1")
    context.set_debug_listener(Listener())
    context.set_tensor_address("x", on_device(sample()))
    context.set_tensor_address("y", memory.allocate(4 * 8 * 144))
    assert context.execute_async_v3(0)
    assert seen == []
    assert context.set_tensor_debug_state("c1", True)
    assert context.get_debug_state("c1")
    assert context.execute_async_v3(0)
    ((name, shape, least),) = seen
    assert (name, shape) == ("c1", (1, 16, 12, 12))
    assert least < 0  # before the ReLU
