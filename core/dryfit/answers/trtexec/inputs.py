"""The inputs of an inference of trtexec: raw bytes of `--loadInputs`, or random values in its ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.board.trtexec_values import pairs
from dryfit.engine.buffers import check_size
from dryfit.errors import ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape
from dryfit.target.memory import aligned_bytes

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine

Array = np.ndarray[Any, Any]
ValueT = TypeVar("ValueT")

LOAD_INPUTS = "--loadInputs"

_NPY = b"\x93NUMPY"


@frozen
class InferenceInputs:
    """The inputs of an inference.

    Attributes:
        arrays: array by input name.
        lines: what trtexec prints about them.
        warnings: inputs whose shape or values were chosen.
    """

    arrays: Mapping[str, Array] = attrs.field(eq=False)
    lines: list[str]
    warnings: list[str]


def inference_inputs(
    engine: Engine, files: Mapping[str, Path], shapes: Mapping[str, Shape], *, seed: int = 0
) -> InferenceInputs:
    """Return the inputs of an engine: read from files, or random.

    As in trtexec, a dynamic extent without a shape is 1, and so are the values of an input that carries dimensions.

    Args:
        engine: engine to run.
        files: file of raw bytes by input name; a name may have one `*`.
        shapes: shape by input name, or the values of an input that carries dimensions; a name may have one `*`.
        seed: seed of the random values.

    Raises:
        UnknownNameError: The engine has no such input.
        ExecutionError: A file cannot be read or does not have the size of its input, or the memory is not enough.
    """
    names = [tensor.name for tensor in engine.plan.network.inputs]
    for option, given in ((LOAD_INPUTS, files), ("--shapes", shapes)):
        for pattern in given:
            if not any(matches(pattern, name) for name in names):
                raise UnknownNameError("input", pattern, names, where=option)
    rng = np.random.default_rng(seed)
    found = InferenceInputs({}, [], [])
    arrays = dict[str, Array]()
    for name in names:
        said, is_dynamic = _of_name(shapes, name), -1 in engine.get_tensor_shape(name)
        carries_dimensions = engine.is_shape_inference_io(name)
        shape = tuple(max(extent, 1) if extent < 0 else extent for extent in engine.get_tensor_shape(name))
        if said is not None and not carries_dimensions:
            shape = said
        elif is_dynamic and not carries_dimensions:
            found.warnings.append(f"Input {name!r} has a dynamic shape and none was specified: using {_text(shape)}")
        file = _of_name(files, name)
        if file is not None:
            found.lines.append(f"Using values loaded from {file} for input {name}")
            arrays[name] = read_input(engine, name, file, shape)
        elif carries_dimensions:
            if said is None:
                found.warnings.append(f"Input {name!r} carries dimensions and none were specified: using 1")
            values = np.ones(shape) if said is None else _values_of(name, said, shape)
            arrays[name] = values.astype(engine.get_tensor_dtype(name).numpy)
            found.lines.append(f"Set input shape tensor {name} to: {_text(tuple(arrays[name].reshape(-1).tolist()))}")
        else:
            found.lines.append(f"Using random values for input {name}")
            # Whole numbers are drawn in 8 bytes each. The memory is requested once before it is filled.
            aligned_bytes(check_size(math.prod(shape) * 8, f"input {name!r}", shape))
            arrays[name] = random_values(rng, engine.get_tensor_dtype(name), shape)
        found.lines.append(f"Input binding for {name} with dimensions {_text(arrays[name].shape)} is created.")
    return attrs.evolve(found, arrays=arrays)


def input_files(text: str) -> dict[str, Path]:
    """Parse the value of `--loadInputs`: `name:file,...`, with names that may be in single quotes.

    Raises:
        ConfigError: An entry has no colon.
    """
    return {name: Path(file) for name, file in pairs(text, LOAD_INPUTS)}


def read_input(engine: Engine, name: str, file: Path, shape: Shape) -> Array:
    """Read an input from the raw bytes of its binding, in its type and in its format on the device.

    Raises:
        ExecutionError: The file cannot be read or does not have the size of the input.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ExecutionError(
            "The input cannot be read",
            where=f"{LOAD_INPUTS}={name}:{file}",
            found=error.strerror or error,
            remedy="Check the path",
        ) from error
    expected = engine.tensor_bytes(name, shape)
    dtype = engine.get_tensor_dtype(name)
    if len(data) != expected:
        remedy = f"Write the raw bytes: array.astype({dtype.numpy_name!r}).tofile(path)"
        if data.startswith(_NPY):
            remedy = f"Write the raw bytes without the header of .npy: numpy.load(path).tofile({str(file)!r})"
        raise ExecutionError(
            "The file does not have the size of the input",
            where=f"{LOAD_INPUTS}={name}:{file}",
            found=f"{len(data)} bytes",
            allowed=f"{expected} bytes: {_text(shape) or 'scalar'} of {dtype.text} in {engine.get_tensor_format(name)}",
            remedy=remedy,
        )
    return np.ascontiguousarray(engine.unpack_tensor(name, np.frombuffer(data, np.uint8), shape))


def random_values(rng: np.random.Generator, dtype: DataType, shape: Shape) -> Array:
    """Return random values as trtexec does: from -1 to 1, or whole numbers from -128 to 127, 0 to 255 and 0 to 1.

    Whole numbers of fewer bits have the range of their type.
    """
    if dtype.is_floating_point:
        return (rng.random(shape, np.float32) * 2 - 1).astype(dtype.numpy)
    bits = min(dtype.bits, 8)
    is_unsigned = dtype.name.startswith("U")
    low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if dtype is DataType.BOOL:
        low, high = 0, 1
    return rng.integers(low, high, shape, endpoint=True).astype(dtype.numpy)


def matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern with at most one `*`, as in trtexec."""
    head, star, tail = pattern.partition("*")
    if not star:
        return pattern == name
    return len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)


def _of_name(given: Mapping[str, ValueT], name: str) -> ValueT | None:
    """Return the value of a name: its own, or that of the first pattern that matches."""
    if name in given:
        return given[name]
    return next((value for pattern, value in given.items() if matches(pattern, name)), None)


def _values_of(name: str, values: Shape, shape: Shape) -> Array:
    if len(values) != int(np.prod(shape)):
        raise ExecutionError(
            "The input carries dimensions and has another number of values",
            where=f"--shapes, input {name!r}",
            found=_text(values),
            allowed=f"{int(np.prod(shape))} values",
            remedy="Write one value per element, joined by x",
        )
    return np.reshape(values, shape)


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))
