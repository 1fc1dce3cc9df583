"""The sides of a comparison: dryfit's engine from its file, ONNX Runtime and OpenVINO, each with arrays in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from measuring.bars import ONNXRUNTIME, OPENVINO

if TYPE_CHECKING:
    import onnxruntime

Array = np.ndarray[Any, Any]
Run = Callable[[], Array]

PRECISE = MappingProxyType({"session.x64quantprecision": "1"})
"""Configures ONNX Runtime's kernels on x86 without dot products of bytes to add products without saturation."""


def build_engine(model: Path, engine: Path) -> None:
    """Build a CPU engine of a model and write it to a file."""
    import dryfit

    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    builder.build_engine(dryfit.network_from_onnx(str(model)), config).save(engine)


def dryfit_run(engine: Path, name: str, image: Array, threads: int) -> Run:
    """A run of an engine that is loaded from its file."""
    from dryfit.engine.engine import Engine

    context = Engine.load(engine).create_execution_context(num_threads=threads)
    return lambda: next(iter(context.run({name: image}).values()))


def onnxruntime_session(
    model: Path | bytes, threads: int = 0, entries: Mapping[str, str] = MappingProxyType({})
) -> onnxruntime.InferenceSession:
    """A session of ONNX Runtime on so many threads, 0 for its own choice, with entries of its configuration."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def onnxruntime_run(model: Path, name: str, image: Array, threads: int) -> Run:
    """A run of ONNX Runtime."""
    session = onnxruntime_session(model, threads)
    return lambda: session.run(None, {name: image})[0]


def openvino_run(model: Path, name: str, image: Array, threads: int) -> Run:
    """A run of OpenVINO; what is not quantized is computed in FP32, as the other sides do.

    Raises:
        ImportError: it is not installed.
    """
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    return lambda: compiled({name: image})[0]


PEERS: dict[str, Callable[[Path, str, Array, int], Run]] = {ONNXRUNTIME: onnxruntime_run, OPENVINO: openvino_run}
"""Name to what makes a run of a model's file."""
