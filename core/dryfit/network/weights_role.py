"""What weights are to a layer, so that they can be named by layer and role: TensorRT's `WeightsRole`."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import numpy as np

from dryfit.network.layer import Layer


class WeightsRole(enum.IntEnum):
    """What an array is to its layer; names and numbers of TensorRT."""

    KERNEL = 0
    BIAS = 1
    SHIFT = 2
    SCALE = 3
    CONSTANT = 4
    ANY = 5


PARAMETERS = {
    WeightsRole.KERNEL: "kernel",
    WeightsRole.BIAS: "bias",
    WeightsRole.SHIFT: "shift",
    WeightsRole.SCALE: "scale",
    WeightsRole.CONSTANT: "weights",
}
"""Role to the parameter that layers keep it in. The power of a scale layer has no role in TensorRT, and none here."""


def weights_of(layer: Layer) -> Iterator[tuple[WeightsRole, np.ndarray[Any, Any]]]:
    """The weights of a layer by role; a layer whose weights are inputs has none."""
    names = {field.name for field in layer.parameters()}
    for role, name in PARAMETERS.items():
        array = getattr(layer, name) if name in names else None
        if isinstance(array, np.ndarray) and array.size:
            yield role, array


def set_weights(layer: Layer, role: WeightsRole, array: np.ndarray[Any, Any]) -> None:
    """Give a layer other weights in a role that it has, in the extents that it has them in.

    An array that has these extents becomes the layer's own, so that several layers can share it.
    """
    name = PARAMETERS[role]
    shape = getattr(layer, name).shape
    setattr(layer, name, array if array.shape == shape else array.reshape(shape))
