"""Plugins made of decorated functions, as programs write them with `tensorrt.plugin`."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper
from tests.frontends.tensorrt.test_plugins import Errors, circular, run, sample

_NUMBERS = itertools.count()


@pytest.fixture(params=(10, 11))
def trt(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"dryfit_tensorrt.trt{request.param}")


@pytest.fixture
def trt10() -> Any:
    return importlib.import_module("dryfit_tensorrt.trt10")


def annotated(function: Any, **kinds: Any) -> Any:
    """The function with these annotations: the classes of a version are known only to the test."""
    function.__annotations__ = kinds
    return function


def new_id(name: str) -> str:
    """A name that no other test has: a process has one registry of each version."""
    return f"tests{next(_NUMBERS)}::{name}"


def operator(trt: Any, plugin_id: str) -> Any:
    namespace, _, name = plugin_id.partition("::")
    return getattr(getattr(trt.plugin.op, namespace), name)


def engine_of(
    trt: Any,
    plugin_id: str,
    inputs: Sequence[tuple[Any, Sequence[int]]],
    flags: Sequence[str] = (),
    bounds: Sequence[Sequence[int]] | None = None,
    **attributes: Any,
) -> Any:
    """The engine, loaded from its file, of a network with one plugin."""
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    tensors = [network.add_input(f"x{i}", dtype, shape) for i, (dtype, shape) in enumerate(inputs)]
    layer = network.add_plugin(operator(trt, plugin_id)(*tensors, **attributes))
    assert layer is not None, logger.errors
    for index in range(layer.num_outputs):
        network.mark_output(layer.get_output(index))
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(trt.BuilderFlag[flag])
    if bounds is not None:
        profile = builder.create_optimization_profile()
        profile.set_shape("x0", *bounds)
        config.add_optimization_profile(profile)
    contents = builder.build_serialized_network(network, config)
    assert contents is not None, logger.errors
    return trt.Runtime(logger).deserialize_cuda_engine(contents)


def add_plugin(trt: Any, seen: list[Any] | None = None) -> str:
    """An element-wise plugin with an attribute; returns its id."""
    plugin_id, trtp = new_id("add"), trt.plugin

    def describe(inp0: Any, delta: Any) -> Any:
        return inp0.like()

    def compute(inp0: Any, delta: int, outputs: Any, stream: int) -> None:
        if seen is not None:
            seen.append((inp0.dtype, inp0.format, tuple(inp0.shape), inp0.strides, stream))
        assert not hasattr(inp0, "__cuda_array_interface__")
        np.asarray(outputs[0])[...] = np.asarray(inp0) + delta

    trtp.register(plugin_id)(annotated(describe, inp0=trtp.TensorDesc, delta=int, **{"return": trtp.TensorDesc}))
    trtp.impl(plugin_id)(compute)
    return plugin_id


def test_a_decorated_plugin_is_built_saved_loaded_and_run(trt: Any) -> None:
    seen: list[Any] = []
    plugin_id = add_plugin(trt, seen)
    engine = engine_of(trt, plugin_id, [(trt.float32, (2, 3, 4))], delta=2)
    x = sample(2, 3, 4)
    (y,) = run(engine, x, names=["x0"], stream=9)
    np.testing.assert_array_equal(y, x + np.float32(2))
    assert seen == [(trt.DataType.FLOAT, trt.TensorFormat.LINEAR, (2, 3, 4), (12, 4, 1), 9)]


def test_types_and_formats_are_those_of_autotune(trt10: Any) -> None:
    trt, seen = trt10, list[Any]()
    plugin_id = add_plugin(trt, seen)

    def tune(inp0: Any, outputs: Any) -> Any:
        assert inp0.has_shape
        assert tuple(inp0.shape) == (1, 3, 4, 5)
        return [trt.plugin.AutoTuneCombination("FP32|FP16, FP32|FP16", "HWC")]

    trt.plugin.autotune(plugin_id)(tune)
    x = sample(1, 3, 4, 5)
    (y,) = run(engine_of(trt, plugin_id, [(trt.float32, x.shape)], ["FP16"], delta=1), x, names=["x0"])
    np.testing.assert_array_equal(y, (x.astype(np.float16) + np.float16(1)).astype(np.float32))
    assert seen[-1][:4] == (trt.DataType.HALF, trt.TensorFormat.HWC, x.shape, (60, 1, 15, 3))


def test_a_dynamic_shape_with_an_array_attribute(trt: Any) -> None:
    plugin_id, trtp = new_id("circ_pad"), trt.plugin

    def describe(inp0: Any, pads: Any, unused: Any) -> Any:
        desc = inp0.like()
        for i in range(np.size(pads) // 2):
            desc.shape_expr[inp0.ndim - i - 1] += int(pads[i * 2] + pads[i * 2 + 1])
        return desc

    def compute(inp0: Any, pads: Any, outputs: Any, stream: Any, tactic: Any) -> None:
        assert tactic in (1, 2)
        np.asarray(outputs[0])[...] = circular(pads, np.asarray(inp0))

    def tune(inp0: Any, outputs: Any) -> Any:
        combination = trtp.AutoTuneCombination()
        combination.pos([0, 1], "FP32|FP16")
        combination.tactics([1, 2])
        return [combination]

    kinds = {"inp0": trtp.TensorDesc, "pads": npt.NDArray[np.int32], "unused": str, "return": trtp.TensorDesc}
    trtp.register(plugin_id)(annotated(describe, **kinds))
    trtp.impl(plugin_id)(compute)
    trtp.autotune(plugin_id)(tune)
    pads = np.array([1, 1, 2, 1], np.int32)
    bounds = ((1, 2, 4, 5), (2, 2, 4, 5), (3, 2, 4, 5))
    engine = engine_of(trt, plugin_id, [(trt.float32, (-1, 2, 4, 5))], bounds=bounds, pads=pads, unused="text")
    for batch in (1, 3):
        x = sample(batch, 2, 4, 5)
        np.testing.assert_array_equal(run(engine, x, names=["x0"])[0], circular(pads, x))


def test_an_output_whose_size_the_data_decides(trt: Any) -> None:
    plugin_id, trtp = new_id("non_zero"), trt.plugin

    def describe(inp0: Any) -> Any:
        upper = inp0.shape_expr[0] * inp0.shape_expr[1]
        size = trtp.size_tensor(upper // 2, upper)
        assert size.is_size_tensor
        return trtp.from_shape_expr((size.expr(), 2), dtype=trt.int32), size

    def compute(inp0: Any, outputs: Any, stream: Any) -> None:
        found = np.argwhere(np.asarray(inp0))
        assert outputs[0].is_data_dependent
        with pytest.raises(ValueError, match=r"tensor\.aliased\(shape\)"):
            np.asarray(outputs[0])
        np.asarray(outputs[0].aliased(found.shape))[...] = found
        np.asarray(outputs[1])[...] = len(found)

    kinds = {"inp0": trtp.TensorDesc, "return": tuple[trtp.TensorDesc, trtp.TensorDesc]}
    trtp.register(plugin_id)(annotated(describe, **kinds))
    trtp.impl(plugin_id)(compute)
    engine = engine_of(trt, plugin_id, [(trt.float32, (5, 6))])
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 2, (5, 6)).astype(np.float32)
        places, count = run(engine, x, names=["x0"])
        np.testing.assert_array_equal(places, np.argwhere(x))
        assert count == np.count_nonzero(x)


def test_an_aliased_output_shares_the_memory_of_its_input(trt: Any) -> None:
    plugin_id, trtp = new_id("in_place"), trt.plugin

    def describe(inp0: Any, delta: Any) -> Any:
        return inp0.aliased()

    def compute(inp0: Any, delta: Any, outputs: Any, stream: Any) -> None:
        assert inp0.data_ptr == outputs[0].data_ptr
        assert outputs[0].get_aliased() is inp0
        np.asarray(inp0)[...] += delta

    trtp.register(plugin_id)(annotated(describe, inp0=trtp.TensorDesc, delta=float, **{"return": trtp.TensorDesc}))
    trtp.impl(plugin_id)(compute)
    x = sample(3, 4)
    (y,) = run(engine_of(trt, plugin_id, [(trt.float32, (3, 4))], delta=0.5), x, names=["x0"])
    np.testing.assert_array_equal(y, x + np.float32(0.5))


def test_an_onnx_node_is_imported_as_a_decorated_plugin(trt: Any) -> None:
    plugin_id = add_plugin(trt)
    namespace, _, name = plugin_id.partition("::")
    node = helper.make_node(name, ["x"], ["y"], delta=3, plugin_namespace=namespace)
    kind = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "quick", [kind("x", TensorProto.FLOAT, [2, 3])], [kind("y", TensorProto.FLOAT, [2, 3])]
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    logger = Errors(trt)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(proto.SerializeToString()), logger.errors
    contents = builder.build_serialized_network(network, builder.create_builder_config())
    x = sample(2, 3)
    (y,) = run(trt.Runtime(logger).deserialize_cuda_engine(contents), x)
    np.testing.assert_array_equal(y, x + np.float32(3))


def test_a_kernel_that_is_compiled_ahead_needs_a_gpu(trt: Any) -> None:
    plugin_id, trtp = new_id("ahead"), trt.plugin

    def describe(inp0: Any) -> Any:
        return inp0.like()

    def kernel(inp0: Any, outputs: Any, tactic: Any) -> Any:
        raise AssertionError("a kernel is not compiled")

    def compute(inp0: Any, outputs: Any, stream: Any) -> None:
        np.asarray(outputs[0])[...] = np.asarray(inp0) * 2

    trtp.register(plugin_id)(annotated(describe, inp0=trtp.TensorDesc, **{"return": trtp.TensorDesc}))
    trtp.aot_impl(plugin_id)(kernel)
    builder = trt.Builder(Errors(trt))
    network = builder.create_network(0)
    x = network.add_input("x0", trt.float32, (2, 3))
    with pytest.raises(NotImplementedError, match=f"kernel of the plugin {plugin_id} cannot run.*tensorrt.plugin.impl"):
        network.add_plugin(operator(trt, plugin_id)(x))
    trtp.impl(plugin_id)(compute)
    with pytest.raises(ValueError, match="both impl and aot_impl"):
        network.add_plugin(operator(trt, plugin_id)(x))
    layer = network.add_plugin(operator(trt, plugin_id)(x), aot=True)
    network.mark_output(layer.get_output(0))
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    values = sample(2, 3)
    np.testing.assert_array_equal(run(engine, values, names=["x0"])[0], values * 2)


def test_wrong_functions_are_refused(trt: Any) -> None:
    trtp = trt.plugin
    desc = trtp.TensorDesc

    def describe(inp0: Any, size: Any) -> Any:
        return inp0

    for name, kinds, match in (
        ("plain", {"inp0": desc, "size": int, "return": desc}, "namespace::name"),
        ("trt::taken", {"inp0": desc, "size": int, "return": desc}, "namespace none of"),
        (new_id("a"), {"inp0": desc, "return": desc}, "'size' must have a type annotation"),
        (new_id("a"), {"inp0": int, "size": desc, "return": desc}, "tensors must come before"),
        (new_id("a"), {"inp0": desc, "size": list, "return": desc}, "is not supported"),
        (new_id("a"), {"inp0": desc, "size": int, "return": int}, "return annotation"),
    ):
        with pytest.raises(ValueError, match=match):
            trtp.register(name)(annotated(describe, **kinds))
    plugin_id = new_id("a")
    trtp.register(plugin_id)(annotated(describe, inp0=desc, size=int, **{"return": desc}))
    with pytest.raises(ValueError, match="registered already"):
        trtp.register(plugin_id)(annotated(describe, inp0=desc, size=int, **{"return": desc}))
    with pytest.raises(ValueError, match=r"must be \(inp0, outputs, stream\)"):
        trtp.impl(plugin_id)(lambda inp0, stream, outputs: None)
    with pytest.raises(ValueError, match="not registered"):
        trtp.impl("tests::unknown")(lambda: None)
    with pytest.raises(AttributeError, match="no namespace 'nobody'"):
        _ = trtp.op.nobody
    network = trt.Builder(Errors(trt)).create_network(0)
    x = network.add_input("x", trt.float32, (1,))
    with pytest.raises(ValueError, match="the attribute 'size' must be"):
        operator(trt, plugin_id)(x, size=1.5)
    with pytest.raises(ValueError, match="takes 1 tensors, then the attributes"):
        operator(trt, plugin_id)(x)
    with pytest.raises(ValueError, match="has no implementation"):
        network.add_plugin(operator(trt, plugin_id)(x, size=1))


def test_combinations_choose_together_or_each_for_itself(trt: Any) -> None:
    combination = trt.plugin.AutoTuneCombination("FP32|FP16, FP32|FP16, FP32*FP16", "LINEAR", [1])
    found = {types for (types, _), _ in combination._combinations()}
    assert found == {
        ("FLOAT", "FLOAT", "FLOAT"),
        ("FLOAT", "FLOAT", "HALF"),
        ("HALF", "HALF", "FLOAT"),
        ("HALF", "HALF", "HALF"),
    }
    with pytest.raises(ValueError, match="equally many"):
        trt.plugin.AutoTuneCombination("FP32|FP16, FP32|FP16|INT8")._combinations()
    with pytest.raises(ValueError, match="are set already"):
        combination.pos(0, "FP32")


def test_extents_can_be_computed_with(trt: Any) -> None:
    trtp = trt.plugin
    extents = trtp.ShapeExprs.from_tuple((6, 4))
    assert extents.numel().constant_value() == 24
    assert trtp.cdiv(extents[0], 4).constant_value() == 2
    assert trtp.max(extents[0], extents[1]).constant_value() == 6
    assert trtp.min(3, extents[1]).constant_value() == 3
    assert [one.constant_value() for one in (extents[0] - 1, extents[0] // 4, extents[0] == 6, extents[0] < 4)] == [
        *(5, 1, 1, 0)
    ]
    assert trtp.ShapeExpr().is_fake
    desc = trtp.from_shape_expr(extents, dtype=trt.float16)
    assert (desc.ndim, desc.dtype, desc.has_shape, desc.is_aliased) == (2, trt.float16, False, False)
    with pytest.raises(ValueError, match="no shape information"):
        _ = desc.format
    copied = desc.like()
    copied.shape_expr[0] += 1
    assert (copied.shape_expr[0].constant_value(), desc.shape_expr[0].constant_value()) == (7, 6)
    size = trtp.size_tensor(extents[0], extents[1])
    with pytest.raises(ValueError, match="size tensor are not permitted"):
        size.expr() + 1
    assert trtp.Shape((2, 3)).numel() == 6
    scalars = trtp.SymIntExprs.from_tuple([trtp.SymInt32(extents[0]), trtp.SymInt8(3)])
    assert len(scalars) == 2
    assert trtp.KernelLaunchParams(grid_x=trtp.cdiv(extents.numel(), 8)).block_x == 1
