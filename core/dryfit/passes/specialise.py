"""A network with dynamic shapes, made for the shapes that it will run with."""

from __future__ import annotations

from collections.abc import Mapping

from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.network.tensor import Shape
from dryfit.passes.fold_constants import absorb_dimensions, fold_constants, remove_dead_layers
from dryfit.reference.inference import checked_input_shapes


def specialise(network: Network, input_shapes: Mapping[str, Shape]) -> Network:
    """A copy with these input shapes; what follows from them is computed once, now. Weights are shared.

    Args:
        network: stays as it is.
        input_shapes: input name to shape; an input that is not named keeps its own, and so may stay dynamic.

    Raises:
        ExecutionError: a shape does not fit the input, or there is no such input.
        NetworkError: a layer's parameters do not fit the shapes.
    """
    shapes = checked_input_shapes(network, input_shapes)
    copy = copy_network(network)
    for tensor in copy.inputs:
        shape = shapes[tensor.name]
        if shape != tensor.shape:
            tensor.shape = shape
            tensor.dimension_names = {axis: name for axis, name in tensor.dimension_names.items() if shape[axis] < 0}
    copy.refresh_shapes()
    fold_constants(copy)
    absorb_dimensions(copy)
    remove_dead_layers(copy)
    copy.refresh_shapes()
    return copy
