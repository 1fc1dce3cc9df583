"""A network run by the references, layer by layer: slow, simple, and what every other way of running it is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.control_flow import collected
from dryfit.network.data_types import EXCHANGED_TYPES
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.reference.inference import checked_input_shapes
from dryfit.reference.quantization import check_run_time_scale
from dryfit.reference.registry import evaluate

Observer = Callable[[Tensor, Array], None]
"""Called with every tensor that is computed, and its contents, in the order of execution."""


def run_reference(network: Network, feeds: Mapping[str, Array], observe: Observer | None = None) -> dict[str, Array]:
    """The outputs of a network by name.

    Only the layers that an output or an assertion needs are run, and a tensor is dropped after its last use. Shapes
    follow from the arrays, so they may depend on the data. Outputs may be views of the inputs or of weights.

    Args:
        network: with at least one output.
        feeds: input name to an array of the input's type and shape.
        observe: sees every tensor, the inputs included; what it gets must not be changed.

    Raises:
        ExecutionError: an input is missing, or has the wrong type or shape; or a layer cannot take its data, such as a
            scale that is not positive; or an assertion does not hold.
        NetworkError: a layer's parameters do not fit the shapes.
    """
    network = collected(network)
    network.refresh_shapes()
    arrays = _checked_feeds(network, feeds)
    if observe is not None:
        for tensor in network.inputs:
            observe(tensor, arrays[tensor.name])
    needed = needed_layers(network, with_assertions=True)
    uses = Counter(tensor.name for layer in needed for tensor in layer.connected_inputs)
    uses.update(tensor.name for tensor in network.outputs)
    for layer in needed:
        check_run_time_scale(layer, arrays)
        inputs = [None if tensor is None else arrays[tensor.name] for tensor in layer.inputs]
        for tensor, array in zip(layer.outputs, evaluate(layer, inputs), strict=True):
            if observe is not None:
                observe(tensor, array)
            if uses[tensor.name]:
                arrays[tensor.name] = array
        for used in layer.inputs:
            if used is not None:
                uses[used.name] -= 1
                if not uses[used.name]:
                    del arrays[used.name]
    return {tensor.name: arrays[tensor.name] for tensor in network.outputs}


def needed_layers(network: Network, *, with_assertions: bool = False) -> list[Layer]:
    """The layers that some output of the network depends on, in the network's order.

    Args:
        network: with at least one output.
        with_assertions: whether assertions, which have no output, and what they depend on count as well.
    """
    needed: set[int] = set()
    waiting = [tensor.producer for tensor in network.outputs]
    if with_assertions:
        waiting += [layer for layer in network.layers if not layer.outputs]
    while waiting:
        layer = waiting.pop()
        if layer is not None and id(layer) not in needed:
            needed.add(id(layer))
            waiting += [tensor.producer for tensor in layer.inputs if tensor is not None]
    return [layer for layer in network.layers if id(layer) in needed]


def _checked_feeds(network: Network, feeds: Mapping[str, Array]) -> dict[str, Array]:
    arrays = {name: np.asarray(array) for name, array in feeds.items()}
    missing = [tensor.name for tensor in network.inputs if tensor.name not in arrays]
    if missing:
        raise ExecutionError(
            "Every input must have an array",
            where=f"network {network.name!r}",
            found=f"none for {', '.join(map(repr, missing))}",
            remedy="Pass an array for each input",
        )
    checked_input_shapes(network, {name: array.shape for name, array in arrays.items()})
    for tensor in network.inputs:
        array = arrays[tensor.name]
        # Codes with a scale are the builder's: a reference computes on the real numbers that they stand for.
        taken = tensor.dtype if tensor.dtype in EXCHANGED_TYPES else tensor.spec.dtype
        if array.dtype != taken.numpy:
            raise ExecutionError(
                "The input has the wrong type",
                where=f"input {tensor.name!r}",
                found=array.dtype,
                allowed=taken.numpy,
                remedy="Convert the array with astype",
            )
        arrays[tensor.name] = array.astype(tensor.spec.dtype.numpy, copy=False)
    return arrays
