"""What part a layer plays in a build: work for a device, a constant, or a computation of shapes."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import TensorLocation


class LayerRole(enum.Enum):
    """Who looks after a layer."""

    WORK = "work"
    """It runs on a device."""
    CONSTANT = "constant"
    """It belongs to its consumers, and is on no device."""
    SHAPE = "shape"
    """It depends on shapes alone, not on data; the host computes it before the run."""


def layer_roles(network: Network) -> Mapping[str, LayerRole]:
    """Layer name to role.

    A layer computes shapes when it is a shape layer, or when all that it reads is known before the run: what other such
    layers give, inputs on the host, and constants. Constants alone do not make it one: what could be computed from them
    has been, and what was left, such as a dequantized weight, is work.
    """
    roles: dict[str, LayerRole] = {}
    shapes = {tensor.name for tensor in network.inputs if tensor.location is TensorLocation.HOST}
    constants: set[str] = set()
    for layer in network.layers:
        roles[layer.name] = role = _role(layer, shapes, constants)
        if role is not LayerRole.WORK:
            known = shapes if role is LayerRole.SHAPE else constants
            known.update(tensor.name for tensor in layer.outputs)
    return roles


def _role(layer: Layer, shapes: set[str], constants: set[str]) -> LayerRole:
    if layer.kind == "constant":
        return LayerRole.CONSTANT
    if layer.kind == "shape":
        return LayerRole.SHAPE
    inputs = {tensor.name for tensor in layer.inputs if tensor is not None}
    is_known = all(name in shapes or name in constants for name in inputs) and not inputs <= constants
    is_evaluated = layer.kind != "plugin" and not layer.bodies
    return LayerRole.SHAPE if is_known and is_evaluated else LayerRole.WORK
