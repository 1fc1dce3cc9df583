"""Weights that are either a parameter of a layer or one of its inputs: kernels and biases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Inputs, Layer
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

    Raises:
        NetworkError: a shape does not fit, or weights are given in both places.
    """
    # The number of groups, which counts in the kernel's shape, is set after adding the layer.
    has_groups = hasattr(layer, "num_groups")
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
        if len(found) != len(expected) or any(
            -1 not in (f, e) and f != e for f, e in zip(found, expected, strict=True)
        ):
            raise layer.problem(
                f"The {name} does not fit", found=tuple(found), allowed=expected, is_mendable=has_groups and index == 1
            )
