"""What reference tests compare with: ONNX Runtime on one-node models, and the layer's own shape inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import evaluate

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

Array = np.ndarray[Any, Any]


def onnx_runtime(
    operator: str,
    inputs: Sequence[Array | None],
    *,
    outputs: int = 1,
    opset: int = 21,
    domain: str = "",
    **attributes: Any,
) -> list[Array]:
    """The outputs that ONNX Runtime computes for one node with these inputs (None: left out) and attributes."""
    inputs = list(inputs)
    while inputs[-1] is None:
        inputs.pop()
    names = [f"i{index}" if array is not None else "" for index, array in enumerate(inputs)]
    results = [f"o{index}" for index in range(outputs)]
    feeds = {name: np.asarray(array, order="C") for name, array in zip(names, inputs, strict=True) if array is not None}
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, domain=domain, **attributes)],
        "one node",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(onnx.ModelProto.SerializeToString(model), options)
    return session.run(None, feeds)


def run(layer: Layer, *inputs: Array | None, dynamic: bool = True) -> list[Array]:
    """The reference's outputs, after a check that they have the shapes and types that the layer infers.

    Inference is asked twice: for the values' own shapes, and with every dimension dynamic. The second is left out for
    `dynamic=False`: for layers that need the length or the contents of an input at build time.
    """
    originals = [None if array is None else array.copy() for array in inputs]
    outputs = evaluate(layer, inputs)
    for array, original in zip(inputs, originals, strict=True):
        if array is not None and original is not None:
            assert array.tobytes() == original.tobytes(), "the reference changed its input"
    static = [None if array is None else TensorSpec.of(array) for array in inputs]
    unknown = [spec and TensorSpec((-1,) * spec.rank, spec.dtype) for spec in static]
    for specs in (static, *([unknown] if dynamic else [])):
        inferred = layer.infer_outputs(specs)
        assert len(inferred) == len(outputs)
        for spec, output in zip(inferred, outputs, strict=True):
            assert spec.dtype is DataType.from_numpy(output.dtype)
            assert spec.rank == output.ndim
            assert all(extent in (-1, actual) for extent, actual in zip(spec.shape, output.shape, strict=True)), (
                spec.shape,
                output.shape,
            )
    return outputs


def random_array(shape: Sequence[int], dtype: Any = np.float32, *, seed: int = 0) -> Array:
    """Normally distributed numbers, the same for the same seed; integers between -20 and 20."""
    generator = np.random.default_rng(seed)
    if np.issubdtype(np.dtype(dtype), np.integer):
        low = 0 if np.issubdtype(np.dtype(dtype), np.unsignedinteger) else -20
        return generator.integers(low, 20, tuple(shape)).astype(dtype)
    return generator.standard_normal(tuple(shape)).astype(dtype)
