"""Operands that must have one type: in a strongly typed network, inputs are not converted implicitly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.resize import GridSample
from dryfit.network.tensor import Tensor

SOURCE = "TensorRT 11 inference library, Precision Control: strongly typed networks"


def check_operand_types(layer: Layer, inputs: Sequence[Tensor | None]) -> None:
    """Reject a layer of a strongly typed network whose operands have different types.

    Raises:
        NetworkError: The types differ. The message names the layer and each operand with its type.
    """
    problem = operand_type_problem(layer, inputs)
    if problem is not None:
        raise problem


def operand_type_problem(layer: Layer, inputs: Sequence[Tensor | None]) -> NetworkError | None:
    """Return the error that `check_operand_types` raises; None if the types are valid."""
    found = list(operands_of_one_type(layer, inputs))
    if len({dtype for _, _, dtype in found}) < 2:
        return None
    return layer.problem(
        "In a strongly typed network, operands must have the same type",
        found=", ".join(f"{name} {dtype.text}" for _, name, dtype in found),
        allowed="the same type",
        remedy="Add a cast layer after one of them, or convert the weights to the type of the data",
    )


def operands_of_one_type(
    layer: Layer, inputs: Sequence[Tensor | None]
) -> Iterator[tuple[Tensor | None, str, DataType]]:
    """Return (tensor, name, type) of each operand that must share its type; weights have no tensor."""
    if isinstance(layer, GridSample) and inputs[0] and not inputs[0].dtype.is_floating_point:
        return  # Integers are sampled at places that are never integers.
    for index, tensor in enumerate(inputs):
        if tensor is not None and index in layer.inputs_of_one_type:
            yield tensor, repr(tensor.name), tensor.dtype
    # The coefficients of a scale layer may be wider than its data, as those of ONNX's batch normalization are: they are
    # applied as they are, and the result is rounded once.
    for name in ("kernel", "bias") if layer.is_weighted else ():
        weights: np.ndarray[Any, Any] | None = getattr(layer, name)
        if weights is not None and weights.size:
            yield None, f"`{name}`", DataType.from_numpy(weights.dtype)
