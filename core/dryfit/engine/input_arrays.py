"""User arrays for an engine as numpy arrays: accepted without conversion, or rejected with a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.target.kernels import Array


def name_inputs(inputs: Sequence[Any], expected: Mapping[str, TensorSpec], where: str) -> Mapping[str, Any]:
    """Return the inputs of `ExecutionContext.run` by input name.

    Args:
        inputs: a mapping by name, or one array per input in order.
        expected: inputs of the engine.
        where: name of the engine, for errors.

    Raises:
        ExecutionError: Names are unknown or missing, or there are too many arrays. The message lists all of them.
    """
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        named: Mapping[str, Any] = inputs[0]
    elif any(isinstance(one, (list, tuple)) and any(map(_is_array, one)) for one in inputs):
        raise ExecutionError(
            "Inputs must be a mapping of names to arrays, or separate arguments",
            where=where,
            found=f"a {type(inputs[0]).__name__} of arrays",
            allowed=_described(expected),
            remedy=f"Write run({{{', '.join(f'{name!r}: array' for name in expected)}}}), or run(*arrays)",
        )
    elif len(inputs) > len(expected):
        raise ExecutionError(
            "There are more arrays than inputs",
            where=where,
            found=f"{len(inputs)} arrays",
            allowed=_described(expected),
            remedy="Pass one array for each input",
        )
    else:
        named = dict(zip(expected, inputs, strict=False))
    unknown = [f"unknown {name!r}" for name in named if name not in expected]
    missing = [f"missing {name!r}" for name in expected if name not in named]
    if unknown or missing:
        raise ExecutionError(
            "The arrays must match the engine's inputs",
            where=where,
            found=", ".join(unknown + missing),
            allowed=_described(expected),
            remedy="Pass one array for each input, by its name",
        )
    return named


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def _described(expected: Mapping[str, TensorSpec]) -> str:
    """Return a description of the inputs of an engine, for errors."""
    return ", ".join(f"{name!r} {spec.dtype.text} {spec.shape}" for name, spec in expected.items()) or "no input"


def as_input(name: str, value: Any, dtype: DataType) -> Array:
    """Return an input as a numpy array without copying.

    Args:
        name: name of the input, for errors.
        value: a numpy array, or an object with `__array_interface__` or `__dlpack__` in CPU memory.
        dtype: type that the engine requires.

    Raises:
        ExecutionError: The value is not an array, is not in CPU memory, or has another type.
    """
    array = value if type(value) is np.ndarray else _as_array(name, value)
    if array.dtype != dtype.numpy:
        raise ExecutionError(
            "The array must have the type of the input",
            where=f"input {name!r}",
            found=str(array.dtype),
            allowed=f"{dtype.numpy} ({dtype.text})",
            remedy=f"Convert it if intended: {_conversion(dtype)}",
        )
    return array


def as_output(name: str, value: Any, dtype: DataType) -> Array:
    """Return an array that an output is written to.

    Raises:
        ExecutionError: The value is not a numpy array, is not writable, or has another type.
    """
    if not isinstance(value, np.ndarray) or not value.flags.writeable or value.dtype != dtype.numpy:
        kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
        read_only = isinstance(value, np.ndarray) and not value.flags.writeable
        raise ExecutionError(
            "The output array must be writable and of the output's type",
            where=f"output {name!r}",
            found=f"a {'read-only ' if read_only else ''}{kind}",
            allowed=f"a numpy array of {dtype.numpy} ({dtype.text}) that can be written",
            remedy=f"Allocate it with numpy.empty(shape, {dtype.numpy.name!r})",
        )
    return value


def check_shape(name: str, found: Shape, declared: Shape, minimum: Shape | None, maximum: Shape | None) -> None:
    """Reject a shape that the input's declaration or the optimization profile does not allow.

    Args:
        name: name of the input.
        found: requested shape.
        declared: shape in the network; -1 for a dynamic extent.
        minimum: lower bounds of the profile; None if it has none for this input.
        maximum: upper bounds of the profile; None if it has none for this input.

    Raises:
        ExecutionError: The shape is not allowed.
    """
    low = minimum or tuple(max(extent, 0) for extent in declared)
    high = maximum or declared
    fits = len(found) == len(declared) and all(
        bottom <= extent and (top == -1 or extent <= top) for extent, bottom, top in zip(found, low, high, strict=True)
    )
    if fits:
        return
    bounds = ", ".join(_range(bottom, top) for bottom, top in zip(low, high, strict=True))
    raise ExecutionError(
        "The input shape must be within the engine's optimization profiles",
        where=f"input {name!r}",
        found=found,
        allowed=f"({bounds})",
        remedy="Build the engine with an optimization profile that includes it" if -1 in declared else None,
    )


def check_values(name: str, found: Array, minimum: Sequence[int], maximum: Sequence[int]) -> None:
    """Reject values of an input that carries dimensions if the optimization profile does not allow them.

    Args:
        name: name of the input.
        found: integer values of the input.
        minimum: minimum of each element.
        maximum: maximum of each element.

    Raises:
        ExecutionError: The number of elements is wrong, or an element is out of range.
    """
    values = tuple(int(value) for value in found.reshape(-1))
    fits = len(values) == len(minimum) and all(
        low <= value <= high for value, low, high in zip(values, minimum, maximum, strict=True)
    )
    if not fits:
        ranges = ", ".join(_range(low, high) for low, high in zip(minimum, maximum, strict=True))
        raise ExecutionError(
            "The values of an input that carries dimensions must be within the engine's optimization profiles",
            where=f"input {name!r}",
            found=values,
            allowed=f"({ranges})",
            remedy="Build the engine with a profile that includes them: OptimizationProfile.set_shape_input",
        )


def check_dimension_names(shapes: Mapping[str, Shape], names: Mapping[str, Mapping[int, str]]) -> None:
    """Reject shapes in which dimensions with the same name have different extents.

    Args:
        shapes: known shapes by input name.
        names: dimension names by input name and axis.

    Raises:
        ExecutionError: Two inputs conflict; the message names both.
    """
    first: dict[str, tuple[str, int, int]] = {}
    for name, shape in shapes.items():
        for axis, dimension in sorted(names.get(name, {}).items()):
            other, other_axis, extent = first.setdefault(dimension, (name, axis, shape[axis]))
            if shape[axis] != extent:
                raise ExecutionError(
                    f"The dimension {dimension!r} must have one extent in all inputs",
                    where=f"axis {axis} of input {name!r}",
                    found=shape[axis],
                    allowed=f"{extent}, as axis {other_axis} of input {other!r} has it",
                    remedy=f"Make {dimension!r} equal in all inputs that have it",
                )


def _range(low: int, high: int) -> str:
    if high == -1 and low >= 0:
        return f"at least {low}"
    return str(low) if low == high else f"{low} to {high}"


def _as_array(name: str, value: Any) -> Array:
    if np.ma.is_masked(value):
        raise ExecutionError(
            "An input must not have masked elements",
            where=f"input {name!r}",
            found=f"{int(np.ma.getmaskarray(value).sum())} masked elements",
            remedy="Fill them: array.filled(value)",
        )
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    try:
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ExecutionError(
            "The array cannot be read",
            where=f"input {name!r}",
            found=f"{type(value).__name__}: {error}",
            allowed="an array in the CPU's memory, of a type that numpy knows",
            remedy="Copy it to the CPU, or convert it to a numpy array",
        ) from error
    raise ExecutionError(
        "An input must be an array",
        where=f"input {name!r}",
        found=type(value).__name__,
        allowed="a numpy array, or anything with __array_interface__ or __dlpack__",
        remedy="Set its type: numpy.asarray(value, dtype=...)",
    )


def _conversion(dtype: DataType) -> str:
    native = dtype.numpy.type.__module__ == "numpy"
    return f"array.astype({'numpy' if native else 'ml_dtypes'}.{dtype.numpy_name})"
