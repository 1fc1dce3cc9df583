"""Valid layers with any parameters, for asking a device whatever may be asked."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.testing.example_layers import add_example


def random_layer(kind: str, rng: np.random.Generator) -> Layer:
    """A valid layer of a kind, in a network of its own: any shape, type and parameters that come up and fit."""
    layer = None
    while layer is None:
        network = Network(f"one {kind}")
        rank = int(rng.choice([4, 4, 4, 3, 2, 5]))
        shape = (int(rng.choice([1, 2, -1])), int(rng.choice([1, 3, 4, 16])), 16, 16, 16)[:rank]
        dtype = (DataType.FLOAT, DataType.FLOAT, DataType.HALF, DataType.INT32, DataType.BOOL)[int(rng.integers(5))]
        layer = add_example(kind, network, network.add_input("x", dtype, shape), rng)
        if layer is not None and rng.random() < 0.7 and not vary(layer, rng):
            layer = None
    return layer


def vary(layer: Layer, rng: np.random.Generator) -> bool:
    """Change some parameters to anything of their type. Returns whether the layer is still a valid one."""
    try:
        for parameter in layer.parameters():
            if rng.random() < 0.4:
                setattr(layer, parameter.name, _another(getattr(layer, parameter.name), rng))
        if layer.output_count != len(layer.outputs):
            return False  # its outputs were made when it was added: it would have to be added anew
        layer.network.refresh_shapes()
    except DryfitError:
        return False
    return True


def _another(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, enum.Enum):
        members = list(type(value))
        return members[int(rng.integers(len(members)))]
    if isinstance(value, bool):
        return bool(rng.integers(2))
    if isinstance(value, int):
        return int(rng.choice([0, 1, 2, 3, 7, 33, 200]))
    if isinstance(value, float):
        return float(rng.choice([0.0, 0.1, 1.0, -1.0, 300.0]))
    if isinstance(value, tuple):
        return tuple(_another(one, rng) for one in value)
    return value
