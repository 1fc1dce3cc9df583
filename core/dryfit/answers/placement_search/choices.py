"""The choices of a placement search: the allowed devices of each layer, from the decisions of a build.

A layer is free only if it has no device of its own and both devices can run it. All layers that were created from one
layer of the user's network move together, because the user assigns that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.builder.placement.assign import Assignment, ask
from dryfit.builder.placement.cutter import Edge
from dryfit.builder.placement.partition import layer_edges
from dryfit.builder.placement.roles import LayerRole
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorLocation

CALLER = -1
"""Stands for the caller of the engine where layers are numbers."""


@frozen(eq=False)
class Flow:
    """A tensor that carries data.

    Attributes:
        tensor: tensor in the network that is built.
        giver: number of the layer that computes the tensor, or `CALLER`.
        takers: numbers of the layers that read the tensor, without duplicates; `CALLER` is last for a network output.
    """

    tensor: Tensor
    giver: int
    takers: Sequence[int]


@frozen(eq=False)
class Choices:
    """Layers as numbers in execution order, with their allowed devices.

    Attributes:
        device, other: default device and fallback device, between which the search chooses.
        layers: layers that run on a device.
        options: allowed devices of each layer; a fixed layer has one.
        owners: name in the user's network by which each layer's device is set; "" for none.
        groups: numbers of the free layers of each owner, in order.
        edges: pairs of layers (first, second), where the first must run before the second.
        flows: tensors between layers.
        assignment: assignment of the build, with the verdicts of both devices.
    """

    device: str
    other: str
    layers: Sequence[Layer]
    options: Sequence[Sequence[str]]
    owners: Sequence[str]
    groups: Sequence[Sequence[int]]
    edges: Sequence[Edge]
    flows: Sequence[Flow]
    assignment: Assignment

    def placed_on(self, device: str) -> tuple[str, ...]:
        """Return a placement with all allowed layers on a device, and the others on their only device."""
        return tuple(device if device in options else options[0] for options in self.options)

    def with_devices(self, devices: Sequence[str]) -> Assignment:
        """Return the assignment with each layer on its device."""
        placed = {layer.name: device for layer, device in zip(self.layers, devices, strict=True)}
        return attrs.evolve(self.assignment, devices=placed)

    def own_devices(self, devices: Sequence[str]) -> dict[str, str]:
        """Return device by layer name for the user to set, for the free layers that leave the default device."""
        return {self.owners[group[0]]: devices[group[0]] for group in self.groups if devices[group[0]] != self.device}


def choices_of(network: Network, config: BuilderConfig, design: Design, other: str) -> Choices:
    """Return the choices of a search."""
    device = config.default_device_type
    roles = design.assignment.roles
    layers = [layer for layer in design.network.layers if roles[layer.name] is LayerRole.WORK]
    number = {layer.name: index for index, layer in enumerate(layers)}
    own = config.explicit_device_types(network)
    users = {layer.name for layer in network.layers}
    verdicts = {name: dict(asked) for name, asked in design.assignment.verdicts.items()}
    owners: list[str] = []
    options: list[tuple[str, ...]] = []
    for layer in layers:
        origin = design.canonical.found.rewrites.origin(layer.name)
        owners.append(origin if origin in users and origin not in own else "")
        asked = verdicts.setdefault(layer.name, {})
        if owners[-1] and other not in asked:
            asked[other] = ask(layer, other, config, {**own, layer.name: other})
        can_both = all(one in asked and asked[one].supported for one in (device, other))
        is_free = bool(owners[-1]) and can_both and not _is_voted(design, layer, other)
        options.append((device, other) if is_free else (design.assignment.devices[layer.name],))
    groups = _tied(owners, options, [design.assignment.devices[layer.name] for layer in layers])
    return Choices(
        device=device,
        other=other,
        layers=layers,
        options=options,
        owners=owners,
        groups=groups,
        edges=layer_edges(design.network, design.assignment),
        flows=_flows(design, number),
        assignment=attrs.evolve(design.assignment, verdicts=verdicts),
    )


def _is_voted(design: Design, layer: Layer, other: str) -> bool:
    """Return whether plugin votes moved a layer away that could stay; votes are respected."""
    return design.assignment.devices[layer.name] == other and layer.name not in design.partition.moved


def _tied(owners: Sequence[str], options: list[tuple[str, ...]], placed: Sequence[str]) -> list[list[int]]:
    """Return the free layers by owner. If one layer of an owner is fixed, all of them become fixed in `options`."""
    found: dict[str, list[int]] = {}
    for index, owner in enumerate(owners):
        if owner:
            found.setdefault(owner, []).append(index)
    for group in found.values():
        if any(len(options[index]) == 1 for index in group):
            for index in group:
                options[index] = (placed[index],)
    return [group for group in found.values() if len(options[group[0]]) > 1]


def _flows(design: Design, number: Mapping[str, int]) -> list[Flow]:
    """Return the tensors that layers exchange, in network order."""
    flows = []
    for tensor in design.network.tensors:
        giver = CALLER if tensor.producer is None else number.get(tensor.producer.name, -2)
        if giver < CALLER or tensor.location is not TensorLocation.DEVICE:
            continue  # a constant, or what the host computes before the run
        takers = list(dict.fromkeys(number[one.name] for one, _ in tensor.consumers if one.name in number))
        if tensor.is_network_output:
            takers.append(CALLER)
        if takers:
            flows.append(Flow(tensor, giver, takers))
    return flows
