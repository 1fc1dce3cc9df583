"""Runs ONNX models in ONNX Runtime on the CPU, each node as it is written: no graph optimization."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped, import-not-found]


def version() -> str:
    """Name and version of the package."""
    return f"onnxruntime {onnxruntime.__version__}"


def output(document: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The output of a model, `arrays[0]`, for the inputs behind it."""
    del document
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Without VNNI, products of UINT8 and INT8 would saturate in 16 bits.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(arrays[0].tobytes(), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return np.asarray(session.run(None, dict(zip(names, arrays[1:])))[0])  # noqa: B905  # Python 3.7
