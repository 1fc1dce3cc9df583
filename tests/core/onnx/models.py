"""Small models written as text, and ONNX Runtime as their oracle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

from dryfit.onnx.importer import network_from_onnx
from dryfit.reference.executor import run_reference


def model(
    body: str, *, inputs: str, outputs: str, opset: int = 13, weights: Mapping[str, np.ndarray] | None = None
) -> onnx.ModelProto:
    """A model of these nodes, in the notation of `onnx.parser`."""
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> net ({inputs}) => ({outputs}) {{ {body} }}'
    parsed = onnx.parser.parse_model(text)
    parsed.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()
    )
    return parsed


def run(parsed: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of the imported network, in the graph's order."""
    network = network_from_onnx(parsed)
    outputs = run_reference(network, {tensor.name: feeds[tensor.name] for tensor in network.inputs})
    return [outputs[info.name] for info in parsed.graph.output]


def run_runtime(parsed: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs as ONNX Runtime computes them."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of this test")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(parsed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feeds))


def assert_agrees(parsed: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> None:
    """Compare the imported network with ONNX Runtime."""
    for output, expected in zip(run(parsed, feeds), run_runtime(parsed, feeds), strict=True):
        assert output.dtype == expected.dtype
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """FP32 numbers around 0."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
