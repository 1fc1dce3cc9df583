"""Which oracle a quantize method is held against, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import attrs
from tests.oracles.caffe2 import Caffe2Oracle
from tests.oracles.onnx_runtime import OnnxRuntimeOracle
from tests.oracles.oracle import Oracle
from tests.oracles.tensorflow_lite import TensorFlowLiteOracle

from dryfit.errors import ConfigError, UnknownNameError


@attrs.frozen
class OracleEntry:
    """How the oracle of a method is made.

    Attributes:
        make: from an interpreter to the oracle.
        packages: that the interpreter needs; those of an oracle that runs in dryfit's own interpreter.
        variable: environment variable that names the interpreter; "" where dryfit's own has the library.
        library: what it is, for messages.
    """

    make: Callable[[str], Oracle]
    packages: tuple[str, ...]
    variable: str
    library: str


_LITERT = ("ai_edge_litert", "flatbuffers")
ORACLES: Mapping[str, OracleEntry] = {
    "caffe2": OracleEntry(Caffe2Oracle, (), "DRYFIT_CAFFE2_PYTHON", "torch 1.10.2 or older, for Python 3.9 or older"),
    "onnx": OracleEntry(OnnxRuntimeOracle, ("onnxruntime",), "", "onnxruntime"),
    "tflite": OracleEntry(partial(TensorFlowLiteOracle, "BUILTIN_REF"), _LITERT, "", "ai-edge-litert"),
    "tflite-2.14": OracleEntry(
        partial(TensorFlowLiteOracle, "BUILTIN_REF"), _LITERT, "DRYFIT_TFLITE_2_14_PYTHON", "tflite-runtime 2.14.0"
    ),
    "tflite-2.5": OracleEntry(
        partial(TensorFlowLiteOracle, "AUTO"), _LITERT, "DRYFIT_TFLITE_2_5_PYTHON", "tensorflow-cpu 2.5.0"
    ),
    "tflite-ruy": OracleEntry(
        partial(TensorFlowLiteOracle, "BUILTIN_WITHOUT_DEFAULT_DELEGATES"), _LITERT, "", "ai-edge-litert"
    ),
    "tflite-xnnpack": OracleEntry(partial(TensorFlowLiteOracle, "AUTO"), _LITERT, "", "ai-edge-litert"),
}
"""Method to its oracle. Methods of devices have none."""


def oracle_of_method(method: str, python: str | None = None) -> Oracle:
    """The oracle that a method is held against.

    Args:
        method: name of the quantize method.
        python: an interpreter that has the library; else the one that the environment variable names, or this one.

    Raises:
        UnknownNameError: no library computes as the method does.
        ConfigError: the library is not there; says how to get it.
    """
    if method not in ORACLES:
        raise UnknownNameError("method with an oracle", method, ORACLES)
    entry = ORACLES[method]
    missing = [name for name in entry.packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"The oracle of {method!r} needs packages that are not installed",
            found=", ".join(missing),
            remedy="pip install dryfit[dev]",
        )
    python = python or (os.environ.get(entry.variable) if entry.variable else sys.executable)
    if not python:
        raise ConfigError(
            f"The oracle of {method!r} needs a Python of its own, with {entry.library}",
            remedy=f"Name that interpreter in {entry.variable}",
        )
    if not Path(python).exists():
        raise ConfigError(f"The oracle of {method!r} needs an interpreter", found=f"no file {python}")
    return entry.make(python)
