"""Layers from a tensor that several of them read to the one in which they meet again, such as `x * sigmoid(x)`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.tensor import Tensor

MOST_LAYERS = 16
"""Layers of a fork. Our choice: GELU by tanh, written as exporters write it, has eight, and the branches of a MobileOne
block with their sums have eleven."""


def fork_after(tensor: Tensor) -> Sequence[Layer]:
    """Return the layers of the fork that begins at a tensor, in an execution order; none where there is no fork.

    Each has one output and reads nothing but the tensor, outputs of the others, and constants. Nothing else reads
    these, except for the output of the last layer. Of those that read the tensor, that with the largest window is the
    first: its kernel is the one that may run the others beside it.
    """
    if len(tensor.consumers) < 2 or tensor.is_network_output:
        return ()
    inner, asked = {tensor.name}, set[str]()
    found: list[Layer] = []
    waiting: list[tuple[int, int, Layer]] = []
    end = tensor
    while True:
        is_left = end.is_network_output or not end.consumers
        if len(end.consumers) > MOST_LAYERS or (is_left and waiting):
            return ()
        for reader, _ in end.consumers:
            if reader.name not in asked:
                asked.add(reader.name)
                places = _window_places(reader) if end is tensor else 0
                heapq.heappush(waiting, (-places, reader.index, reader))
        layer = heapq.heappop(waiting)[2]
        found.append(layer)
        is_known = all(one.name in inner or one.spec.value is not None for one in layer.connected_inputs)
        if len(found) > MOST_LAYERS or len(layer.outputs) != 1 or not is_known:
            return ()
        end = layer.outputs[0]
        inner.add(end.name)
        if not waiting:
            return found if len(found) > 1 else ()


def _window_places(layer: Layer) -> int:
    """The places in the window of a convolution; 0 for a layer of another kind."""
    from dryfit.network.layers.kernel_layer import KernelLayer  # numpy, which records of targets do not load

    return math.prod(layer.kernel_size_nd) if isinstance(layer, KernelLayer) else 0


def fork_at(layers: Sequence[Layer], place: int) -> int:
    """Return how many of the layers, from a place on, are a fork; 0 if no fork begins there.

    Such a fork begins at the only output of the layer before it, or at any input of the first layer.
    """
    tensors = layers[place - 1].outputs if place else layers[0].connected_inputs
    if place and len(tensors) != 1:
        return 0
    for tensor in tensors:
        fork = fork_after(tensor)
        if fork and list(layers[place : place + len(fork)]) == list(fork):
            return len(fork)
    return 0


def has_constants(layer: Layer) -> bool:
    """Return whether a layer reads numbers that are known before the run."""
    return any(tensor.spec.value is not None for tensor in layer.connected_inputs)


def with_next(fork: Sequence[Layer]) -> Sequence[Layer]:
    """Return a fork with the layer after it, if that is the only reader of the result and reads constants otherwise."""
    end = fork[-1].outputs[0]
    if len(end.consumers) != 1 or end.is_network_output:
        return fork
    reader = end.consumers[0][0]
    is_known = all(one is end or one.spec.value is not None for one in reader.connected_inputs)
    return [*fork, reader] if is_known and len(reader.outputs) == 1 else fork
