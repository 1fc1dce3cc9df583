"""Small models with Q/DQ nodes, built by hand, and ONNX Runtime without its fusions as their oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper, numpy_helper

from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.reference.executor import run_reference

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

Array = np.ndarray[Any, Any]


def quantize(x: str, scale: str, y: str, *zero_point: str, domain: str = "", kind: str = "", **more: Any) -> NodeProto:
    """A quantize node, named after its output."""
    return helper.make_node(kind or "QuantizeLinear", [x, scale, *zero_point], [y], y, domain=domain, **more)


def dequantize(
    q: str, scale: str, y: str, *zero_point: str, domain: str = "", kind: str = "", **more: Any
) -> NodeProto:
    """A dequantize node, named after its output."""
    return helper.make_node(kind or "DequantizeLinear", [q, scale, *zero_point], [y], y, domain=domain, **more)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array],
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
) -> onnx.ModelProto:
    """A model whose inputs have the shapes and types of these arrays."""
    graph = helper.make_graph(
        nodes,
        "quantized",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    domains = sorted({node.domain for node in nodes} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=11)


def kinds(network: Network) -> list[str]:
    """The kinds of a network's layers."""
    return [layer.kind for layer in network]


def reference_of(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """What the imported network computes."""
    network = network_from_onnx(model)
    outputs = run_reference(network, dict(inputs))
    return [outputs[info.name] for info in model.graph.output]


def runtime_of(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime computes, node by node."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(inputs)))


def assert_equal(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> None:
    """The network computes what ONNX Runtime does, bit for bit."""
    for output, expected in zip(reference_of(model, inputs), runtime_of(model, inputs), strict=True):
        assert output.dtype == expected.dtype
        np.testing.assert_array_equal(output, expected)


def assert_close(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> None:
    """The network computes what ONNX Runtime does, but for the order of sums."""
    for output, expected in zip(reference_of(model, inputs), runtime_of(model, inputs), strict=True):
        assert output.dtype == expected.dtype
        tolerance = 1e-5 if expected.dtype == np.float32 else 5e-3
        np.testing.assert_allclose(output, expected, rtol=tolerance, atol=tolerance)
