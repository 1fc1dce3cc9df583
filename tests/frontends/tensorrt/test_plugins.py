"""Plugins that programs write: in a network, from ONNX, saved and loaded; their results equal numpy's."""

from __future__ import annotations

import ctypes
import gc
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from dryfit_tensorrt import memory


@pytest.fixture(params=(10, 11))
def trt(request: pytest.FixtureRequest) -> Iterator[Any]:
    module = importlib.import_module(f"dryfit_tensorrt.trt{request.param}")
    yield module
    registry = module.get_plugin_registry()
    for creator in list(registry.all_creators):
        registry.deregister_creator(creator)


@pytest.fixture
def trt10() -> Iterator[Any]:
    module = importlib.import_module("dryfit_tensorrt.trt10")
    yield module
    registry = module.get_plugin_registry()
    for creator in list(registry.all_creators):
        registry.deregister_creator(creator)


class Errors:
    """A logger that keeps its errors."""

    def __new__(cls, trt: Any) -> Any:
        class Kept(trt.ILogger):
            def __init__(self) -> None:
                trt.ILogger.__init__(self)
                self.errors: list[str] = []

            def log(self, severity: Any, msg: str) -> None:
                if severity.name == "ERROR":
                    self.errors.append(msg)

        return Kept()


def array_at(address: int, dims: Sequence[int], dtype: Any) -> Any:
    """The array at an address, as programs make it with ctypes."""
    size = math.prod(dims) * np.dtype(dtype).itemsize
    held = (ctypes.c_ubyte * size).from_address(address)
    return np.ctypeslib.as_array(held).view(dtype).reshape(tuple(dims))


def circular(pads: Sequence[int], x: Any) -> Any:
    return np.pad(x, [[0, 0], [0, 0], [pads[2], pads[3]], [pads[0], pads[1]]], "wrap")


PADS = np.array([1, 1, 2, 1], np.int32)


def padding_program(trt: Any, calls: list[Any] | None = None, *, tactics: Sequence[int] = ()) -> Any:
    """The creator of a V3 plugin that pads the last two axes with their other end."""
    seen = calls if calls is not None else []

    class CircPad(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
        def __init__(self, fc: Any = None, phase: Any = None) -> None:
            trt.IPluginV3.__init__(self)
            trt.IPluginV3OneCore.__init__(self)
            trt.IPluginV3OneBuild.__init__(self)
            trt.IPluginV3OneRuntime.__init__(self)
            self.pads: Any = []
            self.num_outputs = 1
            self.plugin_namespace = ""
            self.plugin_name = "CircPad"
            self.plugin_version = "1"
            self.phase, self.tactic = phase, None
            if fc is not None:
                assert fc[0].name == "pads"
                self.pads = fc[0].data

        def get_capability_interface(self, type: Any) -> Any:
            return self

        def get_output_data_types(self, input_types: Any) -> Any:
            return [input_types[0]]

        def get_output_shapes(self, inputs: Any, shape_inputs: Any, expr_builder: Any) -> Any:
            dims = trt.DimsExprs(inputs[0])
            for i in range(len(self.pads) // 2):
                dims[len(dims) - i - 1] = expr_builder.operation(
                    trt.DimensionOperation.SUM,
                    inputs[0][len(dims) - i - 1],
                    expr_builder.constant(self.pads[i * 2] + self.pads[i * 2 + 1]),
                )
            return [dims]

        def get_fields_to_serialize(self) -> Any:
            return trt.PluginFieldCollection([trt.PluginField("pads", self.pads, trt.PluginFieldType.INT32)])

        def configure_plugin(self, inp: Any, out: Any) -> None:
            seen.append(("configure_plugin", inp[0].desc.dims, inp[0].min, inp[0].opt, out[0].max))

        def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
            assert num_inputs == 1
            desc = in_out[pos].desc
            if desc.format != trt.TensorFormat.LINEAR:
                return False
            if pos == 0:
                return desc.type in (trt.DataType.FLOAT, trt.DataType.HALF)
            return bool(in_out[0].desc.type == desc.type)

        def get_valid_tactics(self) -> list[int]:
            return list(tactics)

        def set_tactic(self, tactic: int) -> None:
            self.tactic = tactic

        def on_shape_change(self, inp: Any, out: Any) -> None:
            seen.append(("on_shape_change", inp[0].dims, out[0].dims))

        def enqueue(
            self, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, workspace: int, stream: int
        ) -> None:
            seen.append(("enqueue", self.phase, self.tactic, input_desc[0].type, stream))
            dtype = trt.nptype(input_desc[0].type)
            x = array_at(inputs[0], input_desc[0].dims, dtype)
            array_at(outputs[0], output_desc[0].dims, dtype)[...] = circular(self.pads, x)

        def attach_to_context(self, context: Any) -> Any:
            assert context.error_recorder is None
            seen.append(("attach_to_context",))
            return self.clone()

        def clone(self) -> Any:
            cloned = CircPad()
            cloned.__dict__.update(self.__dict__)
            return cloned

    class Creator(trt.IPluginCreatorV3One):
        def __init__(self) -> None:
            trt.IPluginCreatorV3One.__init__(self)
            self.name = "CircPad"
            self.plugin_namespace = ""
            self.plugin_version = "1"
            self.field_names = trt.PluginFieldCollection(
                [trt.PluginField("pads", np.array([]), trt.PluginFieldType.INT32)]
            )

        def create_plugin(self, name: str, fc: Any, phase: Any) -> Any:
            seen.append(("create_plugin", name, phase))
            return CircPad(fc, phase)

    return Creator()


def padded_network(trt: Any, builder: Any, creator: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    network = builder.create_network(0)
    x = network.add_input("x", dtype or trt.float32, shape)
    fields = trt.PluginFieldCollection([trt.PluginField("pads", PADS, trt.PluginFieldType.INT32)])
    plugin = creator.create_plugin("pad", fields, trt.TensorRTPhase.BUILD)
    layer = network.add_plugin_v3([x], [], plugin)
    assert layer.type == trt.LayerType.PLUGIN_V3
    assert isinstance(layer, trt.IPluginV3Layer)
    assert layer.plugin is plugin
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    return network


def run(engine: Any, *inputs: Any, names: Sequence[str] = ("x",), stream: int = 0, sizes: int = 1 << 16) -> list[Any]:
    """The outputs of an engine, whose memory is as large as any test needs."""
    context = engine.create_execution_context()
    kinds = engine._api.TensorIOMode
    held, outputs = [], []
    for name, array in zip(names, inputs, strict=True):
        address = memory.allocate(array.nbytes)
        memory.view(address, array.nbytes)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        context.set_input_shape(name, array.shape)
        context.set_tensor_address(name, address)
        held.append(address)
    every = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    for name in [one for one in every if engine.get_tensor_mode(one) == kinds.OUTPUT]:
        shape = tuple(context.get_tensor_shape(name))
        if -1 in shape:
            allocator = Growing(engine._api)
            context.set_output_allocator(name, allocator)
            outputs.append((name, None, allocator))
        else:
            address = memory.allocate(sizes)
            context.set_tensor_address(name, address)
            outputs.append((name, (address, shape), None))
    assert context.execute_async_v3(stream)
    found = []
    for name, place, allocator in outputs:
        address, shape = place or (allocator.address, allocator.shape)
        dtype = engine._api.DataType
        found.append(memory.array_at(address, tuple(shape), _numpy(dtype, engine.get_tensor_dtype(name))).copy())
    return found


def _numpy(kinds: Any, dtype: Any) -> Any:
    return {kinds.FLOAT: np.float32, kinds.HALF: np.float16, kinds.INT32: np.int32, kinds.INT8: np.int8}[dtype]


class Growing:
    """An output allocator."""

    def __new__(cls, api: Any) -> Any:
        class Own(api.IOutputAllocator):
            def __init__(self) -> None:
                api.IOutputAllocator.__init__(self)

            def reallocate_output_async(self, name: str, memory_: int, size: int, alignment: int, stream: int) -> int:
                self.address = memory.allocate(size)
                return self.address

            def notify_shape(self, name: str, shape: Any) -> None:
                self.shape = tuple(shape)

        return Own()


def sample(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


# Version 3 ------------------------------------------------------------------------------------------------------------


def test_a_plugin_is_built_saved_loaded_and_run(trt: Any) -> None:
    calls: list[Any] = []
    creator = padding_program(trt, calls)
    registry = trt.get_plugin_registry()
    assert registry.register_creator(creator, "")
    assert not registry.register_creator(padding_program(trt), "")
    assert registry.get_creator("CircPad", "1", "") is creator
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = padded_network(trt, builder, creator, (-1, 2, 4, 5))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1, 2, 4, 5), (2, 2, 4, 5), (3, 2, 4, 5))
    config.add_optimization_profile(profile)
    assert network.get_output(0).shape == (-1, 2, 7, 7)
    contents = builder.build_serialized_network(network, config)
    assert calls[-1] == ("configure_plugin", (-1, 2, 4, 5), (1, 2, 4, 5), (2, 2, 4, 5), (3, 2, 7, 7))

    calls.clear()
    engine = trt.Runtime(logger).deserialize_cuda_engine(contents)
    assert calls == [("create_plugin", network.get_layer(0).name, trt.TensorRTPhase.RUNTIME)]
    x = sample(2, 2, 4, 5)
    (y,) = run(engine, x, stream=7)
    np.testing.assert_array_equal(y, circular(PADS, x))
    assert calls[1:] == [
        ("attach_to_context",),
        ("on_shape_change", (2, 2, 4, 5), (2, 2, 7, 7)),
        ("enqueue", trt.TensorRTPhase.RUNTIME, 0, trt.DataType.FLOAT, 7),
    ]


def test_each_context_has_its_plugin_and_learns_of_other_shapes(trt: Any) -> None:
    calls: list[Any] = []
    creator = padding_program(trt, calls)
    trt.get_plugin_registry().register_creator(creator, "")
    builder = trt.Builder(Errors(trt))
    network = padded_network(trt, builder, creator, (-1, 2, 4, 5))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1, 2, 4, 5), (2, 2, 4, 5), (3, 2, 4, 5))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    context = engine.create_execution_context()
    calls.clear()
    for batch in (1, 3, 1):
        x = sample(batch, 2, 4, 5)
        source, target = memory.allocate(x.nbytes), memory.allocate(batch * 2 * 7 * 7 * 4)
        memory.view(source, x.nbytes)[:] = x.reshape(-1).view(np.uint8)
        context.set_input_shape("x", x.shape)
        context.set_tensor_address("x", source)
        context.set_tensor_address("y", target)
        assert context.execute_async_v3(0)
        assert context.execute_async_v3(0)
        np.testing.assert_array_equal(memory.array_at(target, (batch, 2, 7, 7), np.float32), circular(PADS, x))
    assert [call[0] for call in calls].count("attach_to_context") == 1
    assert [call[1][0] for call in calls if call[0] == "on_shape_change"] == [1, 3, 1]
    assert [call[0] for call in calls].count("enqueue") == 6


def test_a_plugin_computes_in_half_where_the_flag_asks_for_it(trt10: Any) -> None:
    trt, calls = trt10, list[Any]()
    creator = padding_program(trt, calls)
    trt.get_plugin_registry().register_creator(creator, "")
    builder = trt.Builder(Errors(trt))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    engine = builder.build_engine_with_config(padded_network(trt, builder, creator, (1, 2, 4, 5)), config)
    x = sample(1, 2, 4, 5)
    (y,) = run(engine, x)
    np.testing.assert_array_equal(y, circular(PADS, x.astype(np.float16)).astype(np.float32))
    assert calls[-1][3] == trt.DataType.HALF


def test_one_of_several_tactics_is_chosen_and_kept(trt: Any) -> None:
    calls: list[Any] = []
    creator = padding_program(trt, calls, tactics=(3, 8))
    trt.get_plugin_registry().register_creator(creator, "")
    builder = trt.Builder(Errors(trt))
    network = padded_network(trt, builder, creator, (1, 2, 4, 5))
    contents = builder.build_serialized_network(network, builder.create_builder_config())
    assert {call[2] for call in calls if call[0] == "enqueue"} == {3, 8}
    calls.clear()
    x = sample(1, 2, 4, 5)
    (y,) = run(trt.Runtime(Errors(trt)).deserialize_cuda_engine(contents), x)
    np.testing.assert_array_equal(y, circular(PADS, x))
    assert calls[-1][2] in (3, 8)


def test_an_onnx_node_is_imported_by_the_creator_of_its_name(trt: Any) -> None:
    calls: list[Any] = []
    trt.get_plugin_registry().register_creator(padding_program(trt, calls), "")
    nodes = [
        helper.make_node("CircPad", ["x"], ["p"], name="padding", pads=PADS.tolist(), unknown=3, plugin_version="1"),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "padded",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    assert parser.supports_operator("CircPad")
    assert parser.parse(proto.SerializeToString()), logger.errors
    assert network.get_layer(0).type == trt.LayerType.PLUGIN_V3
    contents = builder.build_serialized_network(network, builder.create_builder_config())
    x = sample(1, 2, 4, 5)
    (y,) = run(trt.Runtime(logger).deserialize_cuda_engine(contents), x)
    np.testing.assert_array_equal(y, np.maximum(circular(PADS, x), 0))
    assert next(call for call in calls if call[0] == "create_plugin")[2] == trt.TensorRTPhase.BUILD


def test_an_engine_without_its_creator_is_not_loaded(trt: Any) -> None:
    creator = padding_program(trt)
    registry = trt.get_plugin_registry()
    registry.register_creator(creator, "")
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = padded_network(trt, builder, creator, (1, 2, 4, 5))
    contents = builder.build_serialized_network(network, builder.create_builder_config())
    assert registry.deregister_creator(creator)
    assert not registry.deregister_creator(creator)
    assert trt.Runtime(logger).deserialize_cuda_engine(contents) is None
    assert "creator is not registered (found 'CircPad', version '1', namespace ''" in logger.errors[0]
    assert "register_creator" in logger.errors[0]


@pytest.mark.parametrize(
    ("method", "when"),
    [
        ("get_output_shapes", "network"),
        ("supports_format_combination", "network"),
        ("configure_plugin", "build"),
        ("get_fields_to_serialize", "build"),
        ("enqueue", "run"),
    ],
)
def test_an_exception_in_a_plugin_is_printed_and_fails(
    trt: Any, method: str, when: str, capfd: pytest.CaptureFixture[str]
) -> None:
    creator = padding_program(trt)
    trt.get_plugin_registry().register_creator(creator, "")
    plugin_class = type(creator.create_plugin("", None, None))

    def fail(self: Any, *arguments: Any) -> None:
        raise RuntimeError("this is broken")

    setattr(plugin_class, method, fail)
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (1, 2, 4, 5))
    fields = trt.PluginFieldCollection([trt.PluginField("pads", PADS, trt.PluginFieldType.INT32)])
    layer = network.add_plugin_v3([x], [], creator.create_plugin("pad", fields, trt.TensorRTPhase.BUILD))
    if when == "network":
        assert layer is None or layer.get_output(0).shape == ()
    else:
        network.mark_output(layer.get_output(0))
        engine = builder.build_engine_with_config(network, builder.create_builder_config())
        assert (engine is None) is (when == "build")
        if engine is not None:
            context = engine.create_execution_context()
            for index, size in enumerate((40, 98)):
                context.set_tensor_address(engine.get_tensor_name(index), memory.allocate(size * 4))
            assert not context.execute_async_v3(0)
    assert "this is broken" in capfd.readouterr().err
    assert logger.errors


def test_the_plugin_is_placed_on_the_gpu(trt10: Any) -> None:
    trt = trt10
    creator = padding_program(trt)
    trt.get_plugin_registry().register_creator(creator, "")
    builder = trt.Builder(Errors(trt))
    network = padded_network(trt, builder, creator, (1, 2, 4, 5))
    config = builder.create_builder_config()
    config.default_device_type = trt.DeviceType.DLA
    config.set_flag(trt.BuilderFlag.FP16)
    assert not config.can_run_on_DLA(network.get_layer(0))
    assert builder.build_serialized_network(network, config) is None
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    engine = builder.build_engine_with_config(network, config)
    assert [placement.device for placement in engine._core.plan.layers] == ["GPU"]


# Formats, sizes that the data decides, aliases, shape inputs ----------------------------------------------------------


def simple_program(trt: Any, name: str, **methods: Callable[..., Any]) -> Any:
    """The creator of a V3 plugin without fields whose methods are given; the rest has a default here."""

    class Simple(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuildV2, trt.IPluginV3OneRuntime):
        def __init__(self) -> None:
            trt.IPluginV3.__init__(self)
            self.num_outputs, self.plugin_name, self.plugin_version, self.plugin_namespace = 1, name, "1", "tests"

        def get_capability_interface(self, type: Any) -> Any:
            return self

        def get_output_data_types(self, input_types: Any) -> Any:
            return [input_types[0]]

        def get_output_shapes(self, inputs: Any, shape_inputs: Any, expr_builder: Any) -> Any:
            return [trt.DimsExprs(inputs[0])]

        def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
            return bool(in_out[pos].desc.format == trt.TensorFormat.LINEAR)

        def configure_plugin(self, inp: Any, out: Any) -> None:
            pass

        def on_shape_change(self, inp: Any, out: Any) -> None:
            pass

        def set_tactic(self, tactic: int) -> None:
            assert tactic == 0

        def get_fields_to_serialize(self) -> Any:
            return trt.PluginFieldCollection([])

        def attach_to_context(self, context: Any) -> Any:
            return self

        def clone(self) -> Any:
            return self

    for method, function in methods.items():
        setattr(Simple, method, function)

    class Creator(trt.IPluginCreatorV3One):
        def __init__(self) -> None:
            trt.IPluginCreatorV3One.__init__(self)
            self.name, self.plugin_version, self.plugin_namespace = name, "1", "tests"
            self.field_names = trt.PluginFieldCollection()

        def create_plugin(self, name: str, fc: Any, phase: Any) -> Any:
            return Simple()

    creator = Creator()
    assert trt.get_plugin_registry().register_creator(creator, "tests")
    return creator


def built(trt: Any, creator: Any, inputs: dict[str, tuple[Any, Sequence[int]]], shape_inputs: int = 0) -> Any:
    """The engine, loaded from its file, of a network with one plugin layer."""
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    tensors = [network.add_input(name, dtype, shape) for name, (dtype, shape) in inputs.items()]
    split = len(tensors) - shape_inputs
    plugin = creator.create_plugin("", None, trt.TensorRTPhase.BUILD)
    layer = network.add_plugin_v3(tensors[:split], tensors[split:], plugin)
    assert layer is not None, logger.errors
    for index in range(layer.num_outputs):
        network.mark_output(layer.get_output(index))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    if shape_inputs:
        for tensor in tensors[split:]:
            profile.set_shape_input(tensor.name, (1,), (2,), (5,))
        config.add_optimization_profile(profile)
    contents = builder.build_serialized_network(network, config)
    assert contents is not None, logger.errors
    return trt.Runtime(logger).deserialize_cuda_engine(contents)


@pytest.mark.parametrize("layout", ["HWC", "CHW4", "CHW2", "HWC8"])
def test_a_plugin_gets_memory_in_the_format_that_it_supports(trt: Any, layout: str) -> None:
    vector = {"CHW4": 4, "CHW2": 2}.get(layout, 1)
    wanted = {"CHW4": trt.int8, "CHW2": trt.float16, "HWC8": trt.float16}.get(layout, trt.float32)

    def supports(self: Any, pos: int, in_out: Any, num_inputs: int) -> bool:
        return bool(in_out[pos].desc.format == trt.TensorFormat[layout] and in_out[pos].desc.type == wanted)

    seen = []

    def enqueue(self: Any, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        n, c, h, w = input_desc[0].dims
        extents = (n, -(-c // vector), h, w, vector) if layout.startswith("CHW") else (n, h, w, -(-c // 8) * 8)
        extents = (n, h, w, c) if layout == "HWC" else extents
        x = array_at(inputs[0], extents, trt.nptype(wanted))
        seen.append(x.copy())
        array_at(outputs[0], extents, trt.nptype(wanted))[...] = x + x

    creator = simple_program(trt, f"Twice{layout}", supports_format_combination=supports, enqueue=enqueue)
    engine = built(trt, creator, {"x": (wanted, (1, 3, 4, 5))})
    x = (sample(1, 3, 4, 5) * 4).astype(trt.nptype(wanted))
    (y,) = run(engine, x)
    np.testing.assert_array_equal(y, x + x)
    if layout == "HWC":
        np.testing.assert_array_equal(seen[-1], np.moveaxis(x, 1, -1))


def test_an_output_whose_size_the_data_decides(trt: Any) -> None:
    def shapes(self: Any, inputs: Any, shape_inputs: Any, expr_builder: Any) -> Any:
        dims = [trt.DimsExprs(2), trt.DimsExprs(0)]
        upper = expr_builder.operation(trt.DimensionOperation.PROD, inputs[0][0], inputs[0][1])
        usual = expr_builder.operation(trt.DimensionOperation.FLOOR_DIV, upper, expr_builder.constant(2))
        dims[0][0] = expr_builder.declare_size_tensor(1, usual, upper)
        assert dims[0][0].is_size_tensor()
        assert not dims[0][0].is_constant()
        dims[0][1] = expr_builder.constant(2)
        return dims

    def supports(self: Any, pos: int, in_out: Any, num_inputs: int) -> bool:
        desc = in_out[pos].desc
        kind = trt.DataType.FLOAT if pos == 0 else trt.DataType.INT32
        return bool(desc.format == trt.TensorFormat.LINEAR and desc.type == kind)

    def enqueue(self: Any, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        assert tuple(output_desc[0].dims) == (-1, 2)
        found = np.argwhere(array_at(inputs[0], input_desc[0].dims, np.float32))
        array_at(outputs[0], found.shape, np.int32)[...] = found
        array_at(outputs[1], (), np.int32)[...] = len(found)

    creator = simple_program(
        trt,
        "NonZero",
        get_output_shapes=shapes,
        get_output_data_types=lambda self, types: [trt.int32, trt.int32],
        supports_format_combination=supports,
        enqueue=enqueue,
    )
    make = creator.create_plugin

    def create(name: str, fc: Any, phase: Any) -> Any:
        plugin = make(name, fc, phase)
        plugin.num_outputs = 2
        return plugin

    creator.create_plugin = create
    engine = built(trt, creator, {"x": (trt.float32, (6, 7))})
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 2, (6, 7)).astype(np.float32)
        places, count = run(engine, x)
        np.testing.assert_array_equal(places, np.argwhere(x))
        assert count == np.count_nonzero(x)


def test_an_output_that_shares_the_memory_of_an_input(trt: Any) -> None:
    def enqueue(self: Any, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        assert inputs[0] == outputs[0]
        array_at(inputs[0], input_desc[0].dims, np.float32)[...] += 3

    creator = simple_program(trt, "InPlace", get_aliased_input=lambda self, index: 0, enqueue=enqueue)
    x = sample(4, 5)
    (y,) = run(built(trt, creator, {"x": (trt.float32, (4, 5))}), x)
    np.testing.assert_array_equal(y, x + np.float32(3))


def test_a_shape_input_decides_an_extent(trt: Any) -> None:
    def shapes(self: Any, inputs: Any, shape_inputs: Any, expr_builder: Any) -> Any:
        assert len(inputs) == len(shape_inputs) == 1
        dims = trt.DimsExprs(2)
        dims[0], dims[1] = shape_inputs[0][0], inputs[0][0]
        return [dims]

    def enqueue(self: Any, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        x = array_at(inputs[0], input_desc[0].dims, np.float32)
        assert len(inputs) == 1
        count = output_desc[0].dims[0]
        array_at(outputs[0], output_desc[0].dims, np.float32)[...] = np.tile(x, (count, 1))

    creator = simple_program(trt, "Tile", get_output_shapes=shapes, enqueue=enqueue)
    engine = built(trt, creator, {"x": (trt.float32, (4,)), "times": (trt.int32, (1,))}, shape_inputs=1)
    x = sample(4)
    (y,) = run(engine, x, np.array([3], np.int32), names=("x", "times"))
    np.testing.assert_array_equal(y, np.tile(x, (3, 1)))


# Version 2 ------------------------------------------------------------------------------------------------------------


def scaling_program(trt: Any, calls: list[str]) -> Any:
    """The creator of a V2 plugin that multiplies by a number, and knows its shape from `configure_plugin`."""

    class Times(trt.IPluginV2DynamicExt):
        def __init__(self, factor: float = 1.0) -> None:
            trt.IPluginV2DynamicExt.__init__(self)
            self.num_outputs, self.plugin_namespace = 1, ""
            self.plugin_type, self.plugin_version = "Times", "2"
            self.factor, self.shape = factor, ()

        def initialize(self) -> None:
            calls.append("initialize")

        def terminate(self) -> None:
            calls.append("terminate")

        def destroy(self) -> None:
            calls.append("destroy")

        def get_output_datatype(self, index: int, input_types: Any) -> Any:
            return input_types[index]

        def get_output_dimensions(self, output_index: int, inputs: Any, expr_builder: Any) -> Any:
            return trt.DimsExprs(inputs[output_index])

        def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
            if in_out[pos].format != trt.TensorFormat.LINEAR:
                return False
            kinds = (trt.float32, trt.float16)
            return bool(in_out[pos].type in kinds if pos == 0 else in_out[pos].type == in_out[0].type)

        def configure_plugin(self, inp: Any, out: Any) -> None:
            calls.append("configure_plugin")
            self.shape = tuple(inp[0].desc.dims)

        def get_workspace_size(self, inp: Any, out: Any) -> int:
            return trt.volume(inp[0].dims) * 4

        def enqueue(
            self, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, workspace: int, stream: int
        ) -> None:
            assert self.shape == tuple(input_desc[0].dims)
            dtype = trt.nptype(input_desc[0].type)
            scratch = array_at(workspace, self.shape, np.float32)
            scratch[...] = array_at(inputs[0], self.shape, dtype) * np.float32(self.factor)
            array_at(outputs[0], self.shape, dtype)[...] = scratch

        def serialize(self) -> str:
            return str(self.factor)

        def clone(self) -> Any:
            cloned = Times()
            cloned.__dict__.update(self.__dict__)
            return cloned

    class Creator(trt.IPluginCreator):
        def __init__(self) -> None:
            trt.IPluginCreator.__init__(self)
            self.name, self.plugin_version, self.plugin_namespace = "Times", "2", ""
            field = trt.PluginField("factor", np.array([], np.float32), trt.PluginFieldType.FLOAT32)
            self.field_names = trt.PluginFieldCollection([field])

        def create_plugin(self, name: str, fc: Any) -> Any:
            return Times(float(fc[0].data[0]))

        def deserialize_plugin(self, name: str, data: bytes) -> Any:
            return Times(float(data.decode("utf-8")))

    return Creator()


def test_a_plugin_of_version_2_is_built_saved_loaded_and_run(trt: Any) -> None:
    calls: list[str] = []
    creator = scaling_program(trt, calls)
    registry = trt.get_plugin_registry()
    registry.register_creator(creator, "")
    assert creator in registry.all_creators
    if trt is importlib.import_module("dryfit_tensorrt.trt10"):
        assert registry.get_plugin_creator("Times", "2", "") is creator
        assert creator in registry.plugin_creator_list
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (2, 3))
    fields = [trt.PluginField("factor", np.array([2.5], np.float32), trt.PluginFieldType.FLOAT32)]
    plugin = creator.create_plugin("times", trt.PluginFieldCollection(fields))
    layer = network.add_plugin_v2([x], plugin)
    assert layer.type == trt.LayerType.PLUGIN_V2
    assert isinstance(layer, trt.IPluginV2Layer)
    assert layer.plugin is plugin
    network.mark_output(layer.get_output(0))
    contents = builder.build_serialized_network(network, builder.create_builder_config())
    assert contents is not None, logger.errors
    assert calls == ["configure_plugin"]
    values = sample(2, 3)
    (y,) = run(trt.Runtime(logger).deserialize_cuda_engine(contents), values)
    np.testing.assert_array_equal(y, values * np.float32(2.5))
    gc.collect()
    assert calls == ["configure_plugin", "initialize", "configure_plugin", "terminate", "destroy"]


def test_an_onnx_node_is_imported_as_a_plugin_of_version_2(trt: Any) -> None:
    trt.get_plugin_registry().register_creator(scaling_program(trt, []), "")
    node = helper.make_node("Times", ["x"], ["y"], factor=0.5, plugin_version="2", plugin_namespace="")
    kind = helper.make_tensor_value_info
    graph = helper.make_graph([node], "times", [kind("x", TensorProto.FLOAT, [2, 3])], [kind("y", 1, [2, 3])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(proto.SerializeToString()), logger.errors
    assert network.get_layer(0).type == trt.LayerType.PLUGIN_V2
    values = sample(2, 3)
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    (y,) = run(engine, values)
    np.testing.assert_array_equal(y, values * np.float32(0.5))


# Fields, expressions, registry ----------------------------------------------------------------------------------------


def test_fields_read_their_buffer_as_their_type(trt: Any) -> None:
    kinds = trt.PluginFieldType
    assert trt.PluginField().name == ""
    assert trt.PluginField("a").type == kinds.UNKNOWN
    field = trt.PluginField("a", np.array([1, 2], np.int32), kinds.INT32)
    assert (field.size, field.data.tolist(), field.data.dtype) == (2, [1, 2], np.int32)
    assert trt.PluginField("a", np.int64(4), kinds.INT64).data.tolist() == [4]
    text = trt.PluginField("a", b"text", kinds.CHAR)
    assert text.data.tobytes().decode() == "text"
    # TensorRT keeps the pointer and the number of entries: eight-byte integers are misread, here as there.
    assert trt.PluginField("a", np.array([1, 2], np.int64), kinds.INT32).data.tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"too small: 2 entries of PluginFieldType\.FLOAT32 are 8 bytes"):
        _ = trt.PluginField("a", np.array([1, 2], np.float16), kinds.FLOAT32).data
    with pytest.raises(TypeError, match="data must be a buffer"):
        trt.PluginField("a", [1, 2], kinds.INT32)


def test_collections_of_fields_are_lists(trt: Any) -> None:
    a, b, c = (trt.PluginField(name) for name in "abc")
    fields = trt.PluginFieldCollection([a])
    fields.append(b)
    fields.extend([c])
    fields.insert(0, c)
    assert fields.pop().name == "c"
    assert [field.name for field in fields] == ["c", "a", "b"]
    assert len(trt.PluginFieldCollection_(fields)) == 3
    assert trt.PluginFieldCollection_(fields)[1] is a
    fields.clear()
    assert len(fields) == 0


def test_expressions_of_constants_are_constants(trt: Any) -> None:
    builder, kinds = trt.IExprBuilder(), trt.DimensionOperation
    seven, two = builder.constant(7), builder.constant(2)
    found = {one.name: builder.operation(one, seven, two).get_constant_value() for one in kinds}
    assert found == {
        "SUM": 9,
        "PROD": 14,
        "MAX": 7,
        "MIN": 2,
        "SUB": 5,
        "EQUAL": 0,
        "LESS": 0,
        "FLOOR_DIV": 3,
        "CEIL_DIV": 4,
    }
    assert seven.is_constant()
    assert not seven.is_size_tensor()
    dims = trt.DimsExprs(2)
    dims[0], dims[-1] = seven, two
    assert [one.get_constant_value() for one in dims] == [7, 2]
    assert len(trt.DimsExprs(dims)) == 2
    with pytest.raises(TypeError, match="must be an IDimensionExpr"):
        dims[0] = 3
    with pytest.raises(TypeError, match="operands must be IDimensionExpr"):
        builder.operation(kinds.SUM, seven, 3)


def test_plugins_share_resources_through_the_registry(trt: Any) -> None:
    released = []

    class Resource(trt.IPluginResource):
        def __init__(self) -> None:
            trt.IPluginResource.__init__(self)

        def clone(self) -> Any:
            return Resource()

        def release(self) -> None:
            released.append(self)

    registry = trt.get_plugin_registry()
    held = registry.acquire_plugin_resource("key", Resource())
    assert registry.acquire_plugin_resource("key", Resource()) is held
    assert registry.release_plugin_resource("key")
    assert released == []
    assert registry.release_plugin_resource("key")
    assert released == [held]
    assert not registry.release_plugin_resource("key")


def test_interfaces_have_a_version(trt: Any) -> None:
    plugin = simple_program(trt, "Versioned").create_plugin("", None, None)
    assert (plugin.interface_info.kind, plugin.interface_info.major) == ("PLUGIN", 1)
    assert plugin.api_language == trt.APILanguage.PYTHON
    assert trt.IPluginCreatorV3One().interface_info.kind == "PLUGIN CREATOR_V3ONE"


def test_a_library_of_plugins_is_refused_with_the_reason(trt: Any) -> None:
    with pytest.raises(NotImplementedError, match="write the plugin in Python"):
        trt.get_plugin_registry().load_library("libcustom.so")


@pytest.mark.parametrize("major", [8, 10])
def test_installed_layer_plugins_are_creators(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    registry = trt.get_plugin_registry()
    assert "Det" in [creator.name for creator in registry.plugin_creator_list]
    creator = registry.get_plugin_creator("Det", "1", "")
    builder = trt.Builder(Errors(trt))
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (2, 3, 3))
    plugin = creator.create_plugin("det", trt.PluginFieldCollection([]))
    layer = network.add_plugin_v2([x], plugin)
    network.mark_output(layer.get_output(0))
    values = sample(2, 3, 3)
    (y,) = (
        run(builder.build_engine(network, builder.create_builder_config()), values)
        if major == 8
        else run(builder.build_engine_with_config(network, builder.create_builder_config()), values)
    )
    np.testing.assert_allclose(y, np.linalg.det(values), rtol=1e-5)


# INT8 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["LINEAR", "CHW32"])
def test_an_int8_plugin_gets_the_scales_of_the_dynamic_ranges(trt10: Any, layout: str) -> None:
    trt, scales = trt10, list[Any]()

    def supports(self: Any, pos: int, in_out: Any, num_inputs: int) -> bool:
        desc = in_out[pos].desc
        return bool(desc.type == trt.int8 and desc.format == trt.TensorFormat[layout])

    def enqueue(self: Any, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        scales.append((input_desc[0].scale, output_desc[0].scale))
        count = 1 * 3 * 4 * 5 if layout == "LINEAR" else 1 * 1 * 4 * 5 * 32
        codes = array_at(inputs[0], (count,), np.int8)
        array_at(outputs[0], (count,), np.int8)[...] = np.maximum(codes, 0)

    creator = simple_program(trt, f"Relu8{layout}", supports_format_combination=supports, enqueue=enqueue)
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (1, 3, 4, 5))
    layer = network.add_plugin_v3([x], [], creator.create_plugin("", None, trt.TensorRTPhase.BUILD))
    y = layer.get_output(0)
    network.mark_output(y)
    config = builder.create_builder_config()
    assert builder.build_serialized_network(network, config) is None
    assert "INT8 with the flag INT8 and a dynamic range of each tensor" in logger.errors[-1]
    config.set_flag(trt.BuilderFlag.INT8)
    x.dynamic_range, y.dynamic_range = (-2.54, 2.54), (-1.27, 1.27)
    contents = builder.build_serialized_network(network, config)
    assert contents is not None, logger.errors
    values = sample(1, 3, 4, 5)
    (found,) = run(trt.Runtime(logger).deserialize_cuda_engine(contents), values)
    (input_scale, output_scale) = scales[-1]
    assert (input_scale, output_scale) == (np.float32(2.54 / 127), np.float32(1.27 / 127))
    codes = np.maximum(np.clip(np.rint(values / np.float32(input_scale)), -128, 127), 0)
    np.testing.assert_array_equal(found, codes.astype(np.float32) * np.float32(output_scale))


def test_an_int8_plugin_reads_what_a_quantize_layer_gives(trt: Any) -> None:
    scales = []

    def supports(self: Any, pos: int, in_out: Any, num_inputs: int) -> bool:
        desc = in_out[pos].desc
        return bool(desc.type == trt.int8 and desc.format == trt.TensorFormat.LINEAR)

    def enqueue(self: Any, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        scales.append(input_desc[0].scale)
        array_at(outputs[0], (4, 5), np.int8)[...] = array_at(inputs[0], (4, 5), np.int8)

    creator = simple_program(trt, "Copy8", supports_format_combination=supports, enqueue=enqueue)
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    x = network.add_input("x", trt.float32, (4, 5))
    scale = network.add_constant((), np.array(0.5, np.float32)).get_output(0)
    codes = network.add_quantize(x, scale, trt.int8).get_output(0)
    layer = network.add_plugin_v3([codes], [], creator.create_plugin("", None, trt.TensorRTPhase.BUILD))
    assert layer is not None, logger.errors
    result = network.add_dequantize(layer.get_output(0), scale, trt.float32).get_output(0)
    network.mark_output(result)
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    values = sample(4, 5) * 4
    np.testing.assert_array_equal(run(engine, values)[0], np.rint(values / np.float32(0.5)) * np.float32(0.5))
    assert scales == [0.5]


def test_a_network_with_a_plugin_is_calibrated(trt10: Any) -> None:
    trt, scales = trt10, list[Any]()

    def supports(self: Any, pos: int, in_out: Any, num_inputs: int) -> bool:
        desc = in_out[pos].desc
        kinds = (trt.int8, trt.float32) if pos == 0 else (in_out[0].desc.type,)
        return bool(desc.format == trt.TensorFormat.LINEAR and desc.type in kinds)

    def enqueue(self: Any, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        scales.append((input_desc[0].scale, output_desc[0].scale))
        dims, dtype = input_desc[0].dims, trt.nptype(input_desc[0].type)
        array_at(outputs[0], dims, dtype)[...] = np.maximum(array_at(inputs[0], dims, dtype), 0)

    class Calibrator(trt.IInt8EntropyCalibrator2):
        def __init__(self) -> None:
            trt.IInt8EntropyCalibrator2.__init__(self)
            self.batches = [sample(1, 3, 4, 5)] * 2
            self.cache = b""

        def get_batch_size(self) -> int:
            return 1

        def get_batch(self, names: Any) -> Any:
            if not self.batches:
                return None
            batch = self.batches.pop()
            address = memory.allocate(batch.nbytes)
            memory.view(address, batch.nbytes)[:] = batch.reshape(-1).view(np.uint8)
            return [address]

        def read_calibration_cache(self) -> None:
            return None

        def write_calibration_cache(self, cache: Any) -> None:
            self.cache = bytes(cache)

    creator = simple_program(trt, "CalibratedRelu", supports_format_combination=supports, enqueue=enqueue)
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (1, 3, 4, 5))
    layer = network.add_plugin_v3([x], [], creator.create_plugin("", None, trt.TensorRTPhase.BUILD))
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator = Calibrator()
    engine = builder.build_engine_with_config(network, config)
    assert engine is not None, logger.errors
    assert set(scales) == {(1.0, 1.0)}  # the calibration runs in FP32
    run(engine, sample(1, 3, 4, 5))
    lines = dict(line.split(": ") for line in calibrator.cache.decode().splitlines()[1:] if line)
    ends = [np.frombuffer(bytes.fromhex(lines[name]), ">f4")[0] for name in ("x", "y")]
    assert scales[-1] == tuple(ends)
