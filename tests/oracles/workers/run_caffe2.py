"""Runs one Caffe2 operator on quantized tensors, as the PyTorch wheels up to 1.10 have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # type: ignore[import-untyped, import-not-found]
from caffe2.python import core, workspace  # type: ignore[import-untyped, import-not-found]

_FILLS = {"uint8": "Int8GivenTensorFill", "int32": "Int8GivenIntTensorFill"}


def version() -> str:
    """Name and version of the package."""
    return f"Caffe2 of torch {torch.__version__.split('+')[0]}"


def output(document: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The output of `operators`, one after the other, each with arguments.

    The first one takes the inputs with their `grids` (none for real numbers), each other one what the one before gave.
    """
    workspace.ResetWorkspace()
    names = [f"input{index}" for index in range(len(arrays))]
    for name, values, grid in zip(names, arrays, document["grids"]):  # noqa: B905  # Python 3.9
        if grid is None:
            workspace.FeedBlob(name, values)
        else:
            _fill(name, values, *grid)
    for index, (kind, arguments) in enumerate(document["operators"]):
        _run(core.CreateOperator(kind, names, [f"output{index}"], **arguments))
        names = [f"output{index}"]
    found = workspace.FetchBlob(names[0]) if document["is_real"] else workspace.FetchInt8Blob(names[0]).data
    return np.asarray(found)


def _fill(name: str, values: np.ndarray[Any, Any], scale: float, zero_point: int) -> None:
    """Make a quantized tensor."""
    content = values.tobytes() if values.dtype == np.uint8 else values.ravel()
    grid = {"Y_scale": scale, "Y_zero_point": zero_point}
    _run(core.CreateOperator(_FILLS[values.dtype.name], [], [name], shape=values.shape, values=content, **grid))


def _run(operator: Any) -> None:
    if not workspace.RunOperatorOnce(operator):
        raise RuntimeError("RunOperatorOnce failed")
