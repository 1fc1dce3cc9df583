"""The files of `--saveDebugTensors` and `--saveAllDebugTensors`.

They come from one query after the measurement, so that writing them does not change the times.

Source: `samples/common/debugTensorWriter.cpp` of NVIDIA/TensorRT, for the names of the files and of the JSON's members.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dryfit.answers.trtexec.exports import Array, output_lines
from dryfit.answers.trtexec.inference import Arrays
from dryfit.atomic_file import write_atomically
from dryfit.engine.engine import Engine
from dryfit.engine.execution_context import ExecutionContext
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape

FORMATS = ("summary", "numpy", "string", "raw")
SUMMARY = "tensor_summary.json"
_SAVE, _SAVE_ALL = "--saveDebugTensors", "--saveAllDebugTensors"


class DebugFiles:
    """A debug listener that writes each tensor to files.

    Attributes:
        files: paths of the written files.

    Args:
        engine: engine whose debug tensors are written.
        named: file of raw bytes by tensor.
        formats: formats in which all debug tensors are written.

    Raises:
        UnknownNameError: A tensor is not a debug tensor, or a format does not exist.
    """

    def __init__(self, engine: Engine, named: Mapping[str, Path], formats: Sequence[str]) -> None:
        for name in named:
            if name not in engine.plan.debug_tensors:
                raise UnknownNameError("debug tensor", name, engine.plan.debug_tensors, where=_SAVE)
        for word in formats:
            if word not in FORMATS:
                raise UnknownNameError("format", word, FORMATS, where=_SAVE_ALL)
        self.files: list[str] = []
        self._named, self._formats = named, formats
        self._records: list[dict[str, Any]] = []

    def write(self, context: ExecutionContext, inputs: Arrays) -> None:
        """Run one query, and write its debug tensors.

        Raises:
            ConfigError: A file cannot be written.
        """
        context.profiler = None
        context.set_debug_listener(self)
        for name in self._named:
            context.set_tensor_debug_state(name, True)
        if self._formats:
            context.set_all_tensors_debug_state(True)
            context.unfused_tensors_debug_state = context.engine.plan.has_unfused_debug_tensors
        context.run(inputs)
        context.set_debug_listener(None)
        if "summary" in self._formats:
            text = json.dumps({"metadata": {"title": "Tensor Summary Report"}, "tensors": self._records}, indent=2)
            self._save(SUMMARY, text.encode() + b"\n", _SAVE_ALL)

    def process_debug_tensor(self, name: str, array: Array, dtype: DataType, shape: Shape) -> bool:
        """Write one tensor."""
        written: dict[str, str] = {}
        if name in self._named:
            written["assigned"] = str(self._named[name])
            self._save(written["assigned"], array.tobytes(), _SAVE)
        stem = f"{len(self._records):04}_{re.sub(r'[^A-Za-z0-9._,-]', '_', name)}"
        for word, (ending, contents) in self._contents(name, array).items():
            written[word] = f"{stem}{ending}"
            self._save(written[word], contents, _SAVE_ALL)
        statistics = dict(_statistics(array))
        self._records.append(
            {"name": name, "shape": list(shape), "type": dtype.text, "statistics": statistics, "files": written}
        )
        return True

    def _contents(self, name: str, array: Array) -> dict[str, tuple[str, bytes]]:
        """Return (end of the file name, contents) by format."""
        found: dict[str, tuple[str, bytes]] = {}
        if "numpy" in self._formats:
            is_standard = array.dtype.kind in "biuf"
            file = io.BytesIO()
            np.save(file, array if is_standard else array.astype(np.float32), allow_pickle=False)
            found["numpy"] = (".npy" if is_standard else "_to_float.npy", file.getvalue())
        if "string" in self._formats:
            found["string"] = (".txt", "".join(output_lines({name: array})).partition("\n")[2].encode())
        if "raw" in self._formats:
            found["raw"] = (".raw", array.tobytes())
        return found

    def _save(self, path: str, contents: bytes, option: str) -> None:
        try:
            write_atomically(path, [contents])
        except OSError as error:
            raise ConfigError(
                "The file cannot be written",
                where=f"{option}, {path}",
                found=error.strerror or error,
                remedy="Check that the folder exists and is writable",
            ) from error
        self.files.append(path)


def _statistics(array: Array) -> Iterator[tuple[str, float]]:
    """Return minimum, maximum and average of the finite values, and the number of others."""
    values = array.astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    if finite.size:
        yield "min", float(finite.min())
        yield "max", float(finite.max())
        yield "avg", float(finite.mean())
    yield "nan_count", int(np.isnan(values).sum())
    yield "inf_count", int(np.isinf(values).sum())
