"""Weights that are either a parameter of a layer or one of its inputs: kernels and biases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Inputs, Layer
from dryfit.network.tensor import Shape
from dryfit.network.weights import Weights


def weights_or_none(value: Any) -> Any:
    """Weights as they were given; None for empty ones, TensorRT's `Weights()`, which says that there are none."""
    is_empty = isinstance(value, (Weights, np.ndarray)) and np.shape(value) == (0,)
    return None if is_empty else value


def check_weights(
    layer: Layer,
    inputs: Inputs,
    kernel: np.ndarray[Any, Any] | None,
    bias: np.ndarray[Any, Any] | None,
    kernel_shape: Sequence[int],
    output_maps: int,
    shapes_to_be: Iterable[Shape] = (),
) -> None:
    """Check that kernel (parameter or input 1) and bias (parameter or input 2) have the shapes that the layer needs.

    A kernel that is in neither place is no error here, because an input is connected after the layer is added.

    Args:
        layer: whose weights they are.
        inputs: specs of the layer's inputs.
        kernel: the parameter.
        bias: the parameter.
        kernel_shape: what the kernel must be; -1 where the input leaves it open.
        output_maps: values of the bias.
        shapes_to_be: what the kernel must be once parameters are set that are set after the layer is added.

    Raises:
        NetworkError: a shape does not fit, or weights are given in both places.
    """
    for index, name, array, expected in (
        (1, "kernel", kernel, tuple(kernel_shape)),
        (2, "bias", bias, (output_maps,)),
    ):
        connected = inputs[index] if len(inputs) > index else None
        if array is not None and connected is not None:
            raise layer.problem(f"The {name} is given both as a parameter and as input {index}", remedy="Remove one")
        found = array.shape if array is not None else connected.shape if connected is not None else None
        if found is None:
            continue
        if not _fits(found, expected):
            flat = (
                f", or {math.prod(expected)} values without extents" if name == "kernel" and -1 not in expected else ""
            )
            raise layer.problem(
                f"The {name} does not fit",
                found=tuple(found),
                allowed=f"{expected}{flat}",
                is_mendable=name == "kernel" and any(_fits(found, shape) for shape in shapes_to_be),
            )


def _fits(found: Shape, expected: Shape) -> bool:
    return len(found) == len(expected) and all(-1 in (f, e) or f == e for f, e in zip(found, expected, strict=True))
