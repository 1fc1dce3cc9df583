"""Runs TensorFlow Lite models: in LiteRT, in tflite-runtime or in TensorFlow, whichever this Python has."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

_PACKAGES = (
    ("ai-edge-litert", "ai_edge_litert.interpreter"),
    ("tflite-runtime", "tflite_runtime.interpreter"),
    ("tensorflow-cpu", "tensorflow.lite.python.interpreter"),
    ("tensorflow", "tensorflow.lite.python.interpreter"),
)
"""Distributions, the most specific first, and the module of each."""


def _distribution() -> tuple[str, str, str]:
    """Name, version and module of the first distribution that is there."""
    from importlib import metadata

    for name, module in _PACKAGES:
        try:
            return name, metadata.version(name), module
        except metadata.PackageNotFoundError:
            continue
    raise ImportError("no distribution of TensorFlow Lite: " + ", ".join(name for name, _ in _PACKAGES))


NAME, VERSION, MODULE = _distribution()
LITE: Any = importlib.import_module(MODULE)


def version() -> str:
    """Name and version of the package."""
    return f"{NAME} {VERSION}"


def output(document: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The output of a model, `arrays[0]`, for the inputs behind it."""
    options: dict[str, Any] = {"model_content": arrays[0].tobytes(), "num_threads": 1}
    if document["resolver"] != "AUTO":
        options["experimental_op_resolver_type"] = getattr(LITE.OpResolverType, document["resolver"])
    interpreter = LITE.Interpreter(**options)
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), arrays[1:]):  # noqa: B905  # Python 3.7
        interpreter.set_tensor(detail["index"], np.ascontiguousarray(values))
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
