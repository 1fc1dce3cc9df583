"""INT64 of ONNX models in each version: TensorRT 8 has INT32 in its place."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dryfit_tensorrt import memory


class Kept:
    """A logger that keeps its messages."""

    def __new__(cls, trt: Any) -> Any:
        class Logger(trt.ILogger):
            def __init__(self) -> None:
                trt.ILogger.__init__(self)
                self.lines: list[str] = []

            def log(self, severity: Any, msg: str) -> None:
                self.lines.append(f"{severity.name} {msg}")

        return Logger()


def lookup() -> onnx.ModelProto:
    """Rows of a table by INT64 indices, and the indices plus one."""
    table = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "table")
    one = numpy_helper.from_array(np.array([1], np.int64), "one")
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("Add", ["ids", "one"], ["next"])]
    graph = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [3])],
        [
            helper.make_tensor_value_info("rows", TensorProto.FLOAT, [3, 3]),
            helper.make_tensor_value_info("next", TensorProto.INT64, [3]),
        ],
        [table, one],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def network_of(trt: Any, logger: Any) -> tuple[Any, Any]:
    builder = trt.Builder(logger)
    flags = trt.NetworkDefinitionCreationFlag.__members__
    return builder, builder.create_network(1 << int(flags["EXPLICIT_BATCH"]) if "EXPLICIT_BATCH" in flags else 0)


def run(engine: Any, trt: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of an engine, in the types that it states."""
    context, held = engine.create_execution_context(), {}
    for index in range(engine.num_io_tensors):
        name = engine.get_tensor_name(index)
        dtype, shape = trt.nptype(engine.get_tensor_dtype(name)), tuple(engine.get_tensor_shape(name))
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        address = memory.allocate(max(size, 1))
        held[name] = memory.view(address, size).view(dtype).reshape(shape)
        if name in inputs:
            assert inputs[name].dtype == dtype
            held[name][...] = inputs[name]
        context.set_tensor_address(name, address)
    assert context.execute_async_v3(0)
    return {name: array.copy() for name, array in held.items() if name not in inputs}


@pytest.mark.parametrize(("major", "dtype"), [(8, "INT32"), (10, "INT64"), (11, "INT64")])
def test_int64_of_a_model_is_int32_in_version_8(major: int, dtype: str) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    logger = Kept(trt)
    builder, network = network_of(trt, logger)
    parser = trt.OnnxParser(network, logger)
    assert parser.parse(lookup().SerializeToString())
    assert any("INT64" in line and line.startswith("WARNING") for line in logger.lines) == (major == 8)
    assert [network.get_input(0).dtype.name, network.get_output(1).dtype.name] == [dtype, dtype]
    constants = [layer for layer in network if layer.type == trt.LayerType.CONSTANT]
    for layer in constants:
        layer.__class__ = trt.IConstantLayer
    assert {str(layer.weights.dtype) for layer in constants} == {"float32", dtype.lower()}
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine.get_tensor_dtype("ids").name == dtype
    found = run(engine, trt, {"ids": np.array([2, 0, 3], dtype.lower())})
    assert found["next"].tolist() == [3, 1, 4]
    assert found["rows"].tolist() == [[6, 7, 8], [0, 1, 2], [9, 10, 11]]


@pytest.mark.parametrize(("major", "dtype"), [(8, "INT32"), (10, "INT64"), (11, "INT64")])
def test_a_shape_layer_returns_integers_that_constants_of_the_version_combine_with(major: int, dtype: str) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    logger = Kept(trt)
    builder, network = network_of(trt, logger)
    x = network.add_input("x", trt.float32, (2, 6))
    shape = network.add_shape(x)
    assert isinstance(shape, trt.IShapeLayer)
    assert shape.get_output(0).dtype.name == dtype
    two = network.add_constant((2,), np.array([2, 2], dtype.lower())).get_output(0)
    half = network.add_elementwise(shape.get_output(0), two, trt.ElementWiseOperation.PROD)
    network.mark_output(half.get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    assert plan is not None, logger.lines
    found = run(trt.Runtime(logger).deserialize_cuda_engine(plan), trt, {"x": np.zeros((2, 6), np.float32)})
    assert [array.tolist() for array in found.values()] == [[4, 12]]
