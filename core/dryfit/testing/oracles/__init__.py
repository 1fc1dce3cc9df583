"""Live oracles of quantize methods: the real libraries, asked about one operator at a time.

`pip install dryfit[oracles]` brings LiteRT and ONNX Runtime; Caffe2 and older TensorFlow Lite live in Python
interpreters of their own. Each library runs in a process of its own (some end the process for inputs they dislike);
arrays travel in npz files. What a library does not have is a `Refusal` that says why, never another computation.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryfit.testing.oracles.caffe2 import Caffe2Oracle
    from dryfit.testing.oracles.case_table import trial_cases
    from dryfit.testing.oracles.onnx_runtime import OnnxRuntimeOracle
    from dryfit.testing.oracles.operator_case import OperatorCase
    from dryfit.testing.oracles.oracle import Oracle, Refusal
    from dryfit.testing.oracles.table import oracle_of_method
    from dryfit.testing.oracles.tensorflow_lite import TensorFlowLiteOracle

_MODULES = {
    "Caffe2Oracle": "caffe2",
    "OnnxRuntimeOracle": "onnx_runtime",
    "OperatorCase": "operator_case",
    "Oracle": "oracle",
    "Refusal": "oracle",
    "TensorFlowLiteOracle": "tensorflow_lite",
    "oracle_of_method": "table",
    "trial_cases": "case_table",
}

__all__ = [
    "Caffe2Oracle",
    "OnnxRuntimeOracle",
    "OperatorCase",
    "Oracle",
    "Refusal",
    "TensorFlowLiteOracle",
    "oracle_of_method",
    "trial_cases",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dryfit.testing.oracles' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dryfit.testing.oracles.{_MODULES[name]}"), name)
