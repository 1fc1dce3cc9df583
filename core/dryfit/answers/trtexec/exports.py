"""The texts and files that trtexec writes about an inference: times, profile, outputs, layers and raw bindings.

The JSON has the members of trtexec, whose readers are the scripts beside it (`profiler.py`), the TensorRT engine
explorer and pandas. Where trtexec writes six digits, these files have as many as the value needs, so that an output is
read back as it was.

Source: `samples/common/sampleReporting.cpp` and `sampleInference.cpp` of NVIDIA/TensorRT, releases 8.6 to 11.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dryfit.atomic_file import write_atomically
from dryfit.engine.tensorrt_layers import engine_information, engine_lines
from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.answers.trtexec.inference import Arrays, InferenceTimes, QueryTimes
    from dryfit.engine.engine import Engine
    from dryfit.engine.execution_context import ExecutionContext
    from dryfit.engine.profiler import LayerTimes

Array = np.ndarray[Any, Any]

CHUNK = 65536
"""Values that are formatted at once, so that the text of a large output is never in memory as a whole."""


def write_export(path: str | Path, chunks: Iterable[str], option: str) -> None:
    """Write the text of an export to a file.

    Args:
        path: path of the file.
        chunks: text in pieces.
        option: option that names the file, for errors.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        write_atomically(path, (chunk.encode("utf-8") for chunk in chunks))
    except OSError as error:
        raise ConfigError(
            "The file cannot be written",
            where=f"{option}={path}",
            found=error.strerror or error,
            remedy="Check that the folder exists and is writable",
        ) from error


# Times ----------------------------------------------------------------------------------------------------------------


def times_json(times: InferenceTimes) -> Iterator[str]:
    """Return the JSON of `--exportTimes`: one record per query after the warm-up, in ms of this host."""
    yield "[\n"
    for index, one in enumerate(times.measured):
        members = ", ".join(f'"{name}" : {_moment(value)}' for name, value in _times_record(one).items())
        yield f"{', ' if index else '  '}{{ {members} }}\n"
    yield "]\n"


def _times_record(one: QueryTimes) -> dict[str, float]:
    """Return the times of a query under the names of trtexec."""
    return {
        "startEnqMs": one.start_compute_ms,
        "endEnqMs": one.end_compute_ms,
        "startH2dMs": one.start_h2d_ms,
        "endH2dMs": one.start_compute_ms,
        "startComputeMs": one.start_compute_ms,
        "endComputeMs": one.end_compute_ms,
        "startD2hMs": one.end_compute_ms,
        "endD2hMs": one.end_d2h_ms,
        "h2dMs": one.h2d_ms,
        "computeMs": one.compute_ms,
        "d2hMs": one.d2h_ms,
        "latencyMs": one.latency_ms,
    }


def _moment(ms: float) -> str:
    """Format a time to the nanosecond."""
    return f"{ms:.6f}".rstrip("0").rstrip(".")


# Profile --------------------------------------------------------------------------------------------------------------


def profile_json(layers: LayerTimes) -> Iterator[str]:
    """Return the JSON of `--exportProfile`: the number of runs, then a record per layer, in ms of this host."""
    yield "[\n"
    for index, record in enumerate(layers.trtexec_profile()):
        members = ", ".join(f"{json.dumps(name)} : {json.dumps(value)}" for name, value in record.items())
        yield f"{', ' if index else '  '}{{ {members} }}\n"
    yield "]\n"


_PROFILE_COLUMNS = ("   Time(ms)", "     Avg.(ms)", "   Median(ms)", "   Time(%)")
_PROFILE_COLUMNS_8 = ("   Time (ms)", "   Avg. Time (ms)", "   Median Time (ms)", "   Time %")


def profile_lines(layers: LayerTimes, *, major: int = 10) -> list[str]:
    """Return the table of `--dumpProfile`, in ms of this host. Layers without any time are left out, as in trtexec.

    Args:
        layers: times of the layers.
        major: major version of TensorRT; the names come first before version 10.
    """
    count, *records = layers.trtexec_profile()
    runs, total = count["count"], sum(one["timeMs"] for one in records)
    rows = [
        (one["name"], one["timeMs"], one["averageMs"], one["medianMs"], one["percentage"])
        for one in records
        if one["timeMs"]
    ]
    rows.append(("Total", total, total / runs if runs else 0.0, layers.total(), 100.0 if total else 0.0))
    names_first = major < 10
    columns = _PROFILE_COLUMNS_8 if names_first else _PROFILE_COLUMNS
    widest = max(len("Layer"), *(len(name) + 1 for name, *_ in rows))

    def line(name: str, cells: Sequence[str]) -> str:
        joined = "".join(cell.rjust(len(column)) for cell, column in zip(cells, columns, strict=True))
        return f"{name.rjust(widest)}{joined}" if names_first else f"{joined}   {name}"

    return [
        "",
        f"=== Profile ({runs} iterations ) ===",
        "The times of the layers are those of this host's CPU, which emulates the devices.",
        line("Layer", columns),
        *(
            line(name, [f"{sum_ms:.2f}", f"{mean_ms:.4f}", f"{median_ms:.4f}", f"{share:.1f}"])
            for name, sum_ms, mean_ms, median_ms, share in rows
        ),
        "",
    ]


# Outputs --------------------------------------------------------------------------------------------------------------


def outputs_json(outputs: Arrays) -> Iterator[str]:
    """Return the JSON of `--exportOutput`: name, dimensions and values of each output, in pieces.

    Values that are not finite are `NaN`, `Infinity` and `-Infinity`, which Python's and most other readers accept; the
    `nan` and `inf` of trtexec are not JSON to any reader.
    """
    yield "[\n"
    for index, (name, array) in enumerate(outputs.items()):
        yield f'{", " if index else "  "}{{ "name" : {json.dumps(name)}\n'
        yield f'  , "dimensions" : "{dimensions_text(array.shape)}"\n  , "values" : [ '
        yield from _values(array, ", ", {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"})
        yield " ]\n  }\n"
    yield "]\n"


def output_lines(outputs: Arrays) -> Iterator[str]:
    """Return the text of `--dumpOutput`, in pieces that end anywhere in a line."""
    yield "Output Tensors:\n"
    for name, array in outputs.items():
        yield f"{name}: ({dimensions_text(array.shape)})\n"
        yield from _values(array, " ", {})
        yield "\n"


def _values(array: Array, separator: str, words: Mapping[str, str]) -> Iterator[str]:
    """Return the values of an array in the order of its elements: integers, booleans as 0 and 1, floats in full."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        # The types of ml_dtypes are of kind V; their FP32 values are exact, and so is the text of FP16 that has them.
        if part.dtype.kind == "b":
            texts: Iterable[str] = map(str, part.astype(np.uint8).tolist())
        elif part.dtype.kind in "iu":
            texts = map(str, part.tolist())
        elif not _is_integer(part.dtype):
            texts = (words.get(text, text) for text in map(_float_text, _exact_floats(part)))
        else:
            texts = map(str, part.astype(np.int64).tolist())
        yield (separator if start else "") + separator.join(texts)


def _is_integer(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in "fc" and "int" in dtype.name


def _exact_floats(part: Array) -> Iterable[Any]:
    """Return floats whose `str` is the shortest that reads back as the same value of their type."""
    if part.dtype.kind == "f" and part.dtype.name in ("float16", "float32"):
        return part
    return part.astype(np.float64 if part.dtype.name == "float64" else np.float32)


def _float_text(value: Any) -> str:
    text = str(value)
    return text if text == "-0.0" else text.removesuffix(".0")


def dimensions_text(shape: Sequence[int]) -> str:
    """Format a shape as trtexec does: `1x3x224x224`, "" for a scalar."""
    return "x".join(map(str, shape))


# Raw bindings ---------------------------------------------------------------------------------------------------------


def write_raw_bindings(engine: Engine, inputs: Arrays, outputs: Arrays, folder: Path) -> list[str]:
    """Write each input and output to a file of its bytes in its format on the device; return the lines to print.

    The files are named as by trtexec `--dumpRawBindingsToFile`: NAME.input.1.3.224.224.fp32.raw, with characters other
    than letters, digits and `._-,` replaced by `_`.

    Raises:
        ConfigError: A file cannot be written, or two bindings would have the same file name.
    """
    lines, names = ["Dumping I/O Bindings to RAW Files:"], dict[str, str]()
    for mode, arrays in (("input", inputs), ("output", outputs)):
        for name, array in arrays.items():
            word = engine.get_tensor_dtype(name).text.lower()
            dimensions = ".".join(map(str, array.shape))
            file_name = f"{re.sub(r'[^A-Za-z0-9._,-]', '_', name)}.{mode}.{dimensions}.{word}.raw"
            if file_name in names:
                raise ConfigError(
                    "Two bindings have the same file name",
                    where="--dumpRawBindingsToFile",
                    found=f"{name!r} and {names[file_name]!r}: {file_name}",
                    remedy="Rename one of them in the model",
                )
            names[file_name] = name
            lines.append(
                f"Writing file for {mode} binding {name} (with datatype {word} and dimensions {dimensions}) "
                f"to {file_name}"
            )
            try:
                write_atomically(folder / file_name, [engine.pack_tensor(name, array).data])
            except OSError as error:
                raise ConfigError(
                    "The file cannot be written",
                    where=f"--dumpRawBindingsToFile, {file_name}",
                    found=error.strerror or error,
                    remedy="Check that the folder is writable",
                ) from error
    return lines


# Layers and profiles of the engine ------------------------------------------------------------------------------------


def layer_information_json(engine: Engine, context: ExecutionContext | None = None, *, major: int = 10) -> str:
    """Return the JSON of `--exportLayerInfo`; the arguments are those of `engine_information`."""
    return json.dumps(engine_information(engine, context, major=major), indent=2, allow_nan=False) + "\n"


def layer_information_lines(engine: Engine, context: ExecutionContext | None = None) -> list[str]:
    """Return the text of `--dumpLayerInfo`: a line per layer, then the inputs and outputs."""
    return ["Layer Information:", *engine_lines(engine, context)]


def optimization_profile_lines(engine: Engine) -> list[str]:
    """Return the text of `--dumpOptimizationProfile`: the shapes of each input in each profile."""
    lines = ["Optimization Profile Information:"]
    inputs = [tensor.name for tensor in engine.plan.network.inputs]
    for index in range(engine.num_optimization_profiles):
        for name in inputs:
            shapes = zip(("min", "opt", "max"), engine.get_tensor_profile_shape(name, index), strict=True)
            text = ", ".join(f"{word}={dimensions_text(shape) or 'scalar'}" for word, shape in shapes)
            lines.append(f"Model input {name} (profile {index}): {text}")
    return lines
