"""What an engine need not keep, because kernels packed it: parameters of layers, and constants.

In their places are stand-ins, so that an engine still knows types and shapes, and `comparison` can find the values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.constant import Constant
from dryfit.network.network import Network
from dryfit.network.stand_ins import stand_in
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel

Packed = Sequence[tuple[LayerGroup, Kernel]]
"""All groups of an engine with their kernels."""


def drop_packed_weights(network: Network, packed: Packed) -> None:
    """Forget the parameters and constants that kernels packed: the engine does not need them twice.

    Args:
        network: the engine's. Stand-ins take the places of values.
        packed: groups of its layers.
    """
    for group, kernel in packed:
        for layer in group.layers:
            names = {field.name for field in layer.parameters()}
            for name in kernel.packed_parameters:
                array = getattr(layer, name) if name in names else None
                if isinstance(array, np.ndarray):
                    setattr(layer, name, stand_in(DataType.from_numpy(array.dtype), array.shape))
    for constant in packed_constants(network, packed):
        constant.weights = stand_in(constant.outputs[0].dtype, constant.outputs[0].shape)
    network.refresh_shapes()


def packed_constants(network: Network, packed: Packed) -> list[Constant]:
    """The constants whose every reader is a dequantization that every group that has it packed with its weights."""
    needed = {layer.name for group, kernel in packed for layer in group.layers} - _superfluous(packed)
    return [
        layer
        for layer in network.layers
        if isinstance(layer, Constant)
        and layer.outputs[0].consumers
        and not layer.outputs[0].is_network_output
        and all(reader.kind == "dequantize" and index == 0 for reader, index in layer.outputs[0].consumers)
        and not any(reader.name in needed for reader, _ in layer.outputs[0].consumers)
    ]


def _superfluous(packed: Packed) -> set[str]:
    """Names of the dequantizations of weights that no group runs, since all that have them packed what they give."""
    found: set[str] = set()
    run: set[str] = set()
    for group, kernel in packed:
        weights = _dequantized_weights(group) if kernel.packs_constants else None
        for layer in group.layers:
            (found if layer is weights else run).add(layer.name)
    return found - run


def _dequantized_weights(group: LayerGroup) -> Layer | None:
    """The layer of a group that gives its main layer's weights."""
    tensor = group.main.inputs[1] if len(group.main.inputs) > 1 else None
    producer = None if tensor is None else tensor.producer
    return producer if producer in group.prologue else None
