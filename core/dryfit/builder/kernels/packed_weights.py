"""What an engine need not keep, because kernels packed it: parameters of layers, and constants.

In their places are stand-ins, so that an engine still knows types and shapes, and `comparison` can find the values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.packed_elements import stand_in
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
    """The constants that are read as weights only, by groups that packed them."""
    packed_reads = _packed_reads(packed)
    return [
        layer
        for layer in network.layers
        if isinstance(layer, Constant)
        and layer.outputs[0].consumers
        and not layer.outputs[0].is_network_output
        and all((reader.name, index) in packed_reads for reader, index in layer.outputs[0].consumers)
    ]


def _packed_reads(packed: Packed) -> set[tuple[str, int]]:
    """Names of layers and numbers of their inputs that every group which has the layer packed."""
    found: set[tuple[str, int]] = set()
    run: set[tuple[str, int]] = set()
    for group, kernel in packed:
        weights = group.codes_read if kernel.packs_constants else None
        for layer in group.layers:
            for index in range(len(layer.inputs)):
                is_packed = weights is not None and layer is weights[0] and index == weights[1]
                (found if is_packed else run).add((layer.name, index))
    return found - run
