"""Which layers of a flat network are inside which loop or conditional.

A layer is inside a loop if it depends on one of the loop's recurrences or iterators, and inside a conditional if it
depends on one of the conditional's inputs; dependence ends at the outputs.

Source: TensorRT Developer Guide, "Working with Loops" and "Working with Conditionals".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from dryfit.attrs_classes import define
from dryfit.errors import NetworkError
from dryfit.network.layer import Layer
from dryfit.network.layers.boundaries import (
    ConditionalBoundaryLayer,
    IfConditionalInputLayer,
    IfConditionalOutputLayer,
    IteratorLayer,
    LoopBoundaryLayer,
    LoopOutputLayer,
    RecurrenceLayer,
    TripLimit,
    TripLimitLayer,
)
from dryfit.network.layers.loops_and_conditionals import IfConditional, Loop
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


@define(eq=False)
class Region:
    """A loop or a conditional of a flat network.

    Attributes:
        owner: the object that added its boundary layers.
        boundaries: these layers, in the order of the network.
        inside: the layers that depend on its entries, by identity.
        parent: the innermost region around it.
    """

    owner: Loop | IfConditional
    boundaries: list[Layer] = attrs.field(factory=list)
    inside: dict[int, Layer] = attrs.field(factory=dict)
    parent: Region | None = None

    @property
    def where(self) -> str:
        """The region in messages."""
        what = "loop" if isinstance(self.owner, Loop) else "conditional"
        return f"{what} {self.name!r}"

    @property
    def name(self) -> str:
        """The name of the layer that it becomes."""
        exits = self.exits
        return self.owner.name or (exits[0] if exits else self.boundaries[0]).name

    @property
    def exits(self) -> list[Layer]:
        """Its output layers."""
        return [one for one in self.boundaries if isinstance(one, LoopOutputLayer | IfConditionalOutputLayer)]

    @property
    def entries(self) -> list[Layer]:
        """The layers that everything inside depends on."""
        kinds = RecurrenceLayer | IteratorLayer | IfConditionalInputLayer
        return [one for one in self.boundaries if isinstance(one, kinds)]

    @property
    def layers(self) -> list[Layer]:
        """All its layers."""
        return [*self.boundaries, *self.inside.values()]

    @property
    def places(self) -> set[int]:
        """The identities of its layers."""
        return {id(layer) for layer in self.layers}

    @property
    def sources(self) -> list[Tensor]:
        """Tensors from outside that its layers read."""
        own = self.places
        read = [tensor for layer in self.layers for tensor in layer.connected_inputs]
        return [tensor for tensor in read if tensor.producer is None or id(tensor.producer) not in own]

    @property
    def results(self) -> list[Tensor]:
        """Its outputs."""
        return [layer.outputs[0] for layer in self.exits]


def regions_of(network: Network) -> list[Region]:
    """Return the loops and conditionals of a network, with what is inside each.

    Raises:
        NetworkError: They overlap, or a tensor inside is used where one from outside must be.
    """
    regions: dict[int, Region] = {}
    for layer in network.layers:
        owner = None
        if isinstance(layer, LoopBoundaryLayer):
            owner = layer.loop
        elif isinstance(layer, ConditionalBoundaryLayer):
            owner = layer.conditional
        if owner is not None:
            regions.setdefault(id(owner), Region(owner)).boundaries.append(layer)
    return _nested(list(regions.values()))


def _nested(regions: list[Region]) -> list[Region]:
    """Find what is inside each region, and which region is inside which."""
    for region in regions:
        _reach(region, (output for layer in region.entries for output in layer.outputs))
    inner: dict[int, set[int]] = {id(region): set() for region in regions}
    by_identity = {id(region): region for region in regions}
    changed = True
    while changed:
        changed = False
        for region in regions:
            for other in regions:
                if other is region or id(other) in inner[id(region)]:
                    continue
                if any(id(layer) in region.inside for layer in other.boundaries):
                    inner[id(region)].add(id(other))
                    changed = True
        for region in regions:
            before = len(region.inside)
            for place in inner[id(region)]:
                other = by_identity[place]
                region.inside.update((id(layer), layer) for layer in other.layers)
                _reach(region, other.results)
            changed |= len(region.inside) != before
    for region in regions:
        around = [other for other in regions if id(region) in inner[id(other)]]
        overlapping = next((other for other in around if id(other) in inner[id(region)]), None)
        if overlapping is not None:
            raise NetworkError(
                "Loops and conditionals must not overlap",
                where=region.where,
                found=f"each depends on a tensor inside the other: {overlapping.where}",
                remedy="Connect them through loop outputs, or outputs of the conditional",
            )
        region.parent = max(around, key=lambda other: len(_around(other, regions, inner)), default=None)
        _check_border(region)
    return regions


def _around(region: Region, regions: Sequence[Region], inner: dict[int, set[int]]) -> list[Region]:
    return [other for other in regions if id(region) in inner[id(other)]]


def _reach(region: Region, tensors: Iterable[Tensor]) -> None:
    """Add what depends on tensors to the inside of a region, up to its own boundary layers."""
    own = {id(layer) for layer in region.boundaries}
    waiting = list(tensors)
    while waiting:
        for consumer, index in waiting.pop().consumers:
            if id(consumer) in own:
                _check_boundary(region, consumer, index)
            elif id(consumer) not in region.inside:
                region.inside[id(consumer)] = consumer
                waiting.extend(consumer.outputs)


def _check_boundary(region: Region, layer: Layer, index: int) -> None:
    """Refuse a tensor from inside where a boundary layer takes one from outside."""
    is_condition = isinstance(layer, TripLimitLayer) and layer.limit_kind is TripLimit.WHILE
    takes_inside: dict[type[Layer], tuple[int, ...]] = {
        RecurrenceLayer: (1,),
        LoopOutputLayer: (0,),
        IfConditionalOutputLayer: (0, 1),
    }
    if is_condition or index in takes_inside.get(type(layer), ()):
        return
    raise NetworkError(
        f"Input {index} must come from outside of {region.where}",
        where=layer.where,
        found=repr(layer.connected_input(index).name),
        remedy="Connect a tensor computed outside, or pass it out through an output layer",
    )


def _check_border(region: Region) -> None:
    """Refuse outputs of the network that come from inside, and assertions about what is inside."""
    for layer in (*region.entries, *region.inside.values()):
        if layer.kind == "assertion":
            raise NetworkError(
                f"An assertion must not depend on a tensor inside {region.where}",
                where=layer.where,
                found=repr(layer.connected_input(0).name),
                remedy="Pass the condition out through an output layer, and assert it outside",
            )
        for tensor in layer.outputs:
            if tensor.is_network_output:
                is_loop = isinstance(region.owner, Loop)
                method = "loop.add_loop_output" if is_loop else "conditional.add_output"
                raise NetworkError(
                    f"A tensor that depends on the inside of {region.where} must leave it through an output layer",
                    where=f"tensor {tensor.name!r}",
                    found="a network output",
                    remedy=f"Call `{method}` for the tensor inside, and use the output of that layer instead",
                )
