"""Which layers run as one: each segment's layers joined to groups, as the kernels that run them allow.

Greedy, in execution order: a layer joins the group whose output it reads, where nobody else reads that output and the
group's kernel takes the layer. A sum of two branches joins the one that is ready last, so that the other operand is
there when the group runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.kernel_choice import choose_kernel, serves
from dryfit.builder.layer_roles import LayerRole
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel, Specs


@attrs.frozen
class LayerPlace:
    """Where a layer of the engine's network runs.

    Attributes:
        device: its device; the host for a shape computation.
        segment: index of its segment; -1 for none.
        precision: the type it is computed in.
        role: what part it plays.
    """

    device: str
    segment: int
    precision: DataType
    role: LayerRole = LayerRole.WORK


@attrs.frozen(eq=False)
class FusedGroup:
    """Layers that run as one, the kernel that runs them, and where."""

    group: LayerGroup
    kernel: Kernel
    place: LayerPlace


def fuse_layers(network: Network, places: Mapping[str, LayerPlace]) -> list[FusedGroup]:
    """The groups of the engine's network, in an order in which they can run.

    Args:
        network: layers in execution order.
        places: layer name to place, for all layers but constants.

    Raises:
        BuildError: no kernel runs a layer.
    """
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    outputs = {tensor.name for tensor in network.outputs}
    fuser = _Fuser(specs, outputs)
    for layer in network.layers:
        if layer.name in places:
            fuser.add(layer, places[layer.name])
    return fuser.in_order()


class _Fuser:
    """Adds one layer after another."""

    def __init__(self, specs: Specs, outputs: set[str]) -> None:
        self._specs = specs
        self._outputs = outputs
        self._groups: list[FusedGroup] = []
        self._group_of: dict[str, int] = {}

    def add(self, layer: Layer, place: LayerPlace) -> None:
        for tensor in self._latest_first(layer):
            if self._join(layer, place, tensor):
                return
        group = LayerGroup((layer,))
        self._group_of[layer.name] = len(self._groups)
        self._groups.append(FusedGroup(group, choose_kernel(place.device, group, self._specs), place))

    def _latest_first(self, layer: Layer) -> Sequence[Tensor]:
        """The inputs that other layers give, the one that is ready last first."""
        given = {tensor.name: tensor for tensor in layer.inputs if tensor is not None and tensor.producer is not None}
        return sorted(given.values(), key=lambda tensor: -(tensor.producer.index if tensor.producer else 0))

    def _join(self, layer: Layer, place: LayerPlace, tensor: Tensor) -> bool:
        """Add a layer to the group that gives one of its inputs, if group and kernel allow it."""
        producer = tensor.producer
        number = self._group_of.get(producer.name if producer is not None else "")
        if number is None or tensor.name in self._outputs or place.segment < 0:
            return False
        fused = self._groups[number]
        is_end = fused.group.layers[-1] is producer and len(fused.group.outputs) == 1
        is_only_reader = all(consumer is layer for consumer, _ in tensor.consumers)
        if not (is_end and is_only_reader and fused.place == place and rounds_once(place)):
            return False
        if not fused.kernel.fuses(fused.group, layer):
            return False
        longer = LayerGroup((*fused.group.layers, layer))
        if not serves(fused.kernel, longer, self._specs):
            return False
        self._groups[number] = attrs.evolve(fused, group=longer)
        self._group_of[layer.name] = number
        return True

    def in_order(self) -> list[FusedGroup]:
        """The groups by their last layers: by then all that a group reads is there."""
        return sorted(self._groups, key=lambda fused: fused.group.layers[-1].index)


def rounds_once(place: LayerPlace) -> bool:
    """Whether the device rounds a group's result once, rather than after each layer."""
    arithmetic = registry.target(place.device).arithmetic.get(place.precision)
    return arithmetic is None or arithmetic.rounds != "layer"
