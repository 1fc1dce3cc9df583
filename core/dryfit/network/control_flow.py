"""Loops and conditionals that are written with boundary layers, collected to the layers that run them.

What a body reads from outside is captured: it becomes an input of the body. Constants are copied into the body, since
shapes may depend on them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.control_regions import Region, regions_of
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer, copy_tensor_notes, note_origin
from dryfit.network.layers.boundaries import (
    BOUNDARY_KINDS,
    ConditionLayer,
    IfConditionalInputLayer,
    IteratorLayer,
    LoopOutput,
    LoopOutputLayer,
    RecurrenceLayer,
    TripLimit,
    TripLimitLayer,
)
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.loops_and_conditionals import Loop
from dryfit.network.layers.movement import Identity
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


def has_boundaries(network: Network) -> bool:
    """Return whether loops or conditionals of a network are written with boundary layers."""
    return any(layer.kind in BOUNDARY_KINDS for layer in network.layers)


def collected(network: Network) -> Network:
    """Return a network whose loops and conditionals are one layer each; the network itself if it has no boundaries.

    Names and notes stay, and weights are shared.

    Raises:
        NetworkError: A tensor inside a loop or conditional is used outside without an output layer, boundary layers
            are missing or connected wrongly, or loops and conditionals overlap.
    """
    if not has_boundaries(network):
        return network
    network.refresh_shapes()
    regions = regions_of(network)
    copy = Network(network.name, network.flags)
    copy.metadata.update(network.metadata)
    copy.quantize_method = network.quantize_method
    copy.copy_weights_names(network)
    level = _Level(copy, None, regions)
    for tensor in network.inputs:
        new = level.tensors[id(tensor)] = copy.add_input(tensor.name, tensor.spec.dtype, tensor.shape)
        new.io_dtype = tensor.io_dtype
        copy_tensor_notes(tensor, new)
    inside = {place for region in regions for place in region.places}
    outside = [layer for layer in network.layers if id(layer) not in inside]
    level.emit([*outside, *(region for region in regions if region.parent is None)])
    for tensor in network.outputs:
        new = level.resolve(tensor)
        copy.mark_output(new)
        new.io_dtype = tensor.io_dtype
    for tensor in network.debug_tensors:
        copy.mark_debug(level.resolve(tensor))
    if network.has_unfused_debug_tensors:
        copy.mark_unfused_tensors_as_debug_tensors()
    return copy


def mark_body_output(network: Network, tensor: Tensor) -> None:
    """Make a tensor the next output of a body. It is copied if it is an output already, as it can be one only once."""
    if tensor.is_network_output:
        copied = network.add_layer(Identity(name=f"output {len(network.outputs)}"), [tensor]).outputs[0]
        network.rename_tensor(copied, network.free_tensor_name(tensor.name))
        tensor = copied
    network.mark_output(tensor)


# Levels ---------------------------------------------------------------------------------------------------------------

_Unit = Layer | Region


class _Level:
    """A network under construction: the outermost one, or a body.

    Args:
        network: the network.
        region: the region whose body it is; None for the outermost network.
        regions: all regions.

    Attributes:
        tensors: identity of a tensor of the flat network to its counterpart.
        captured: tensors of the flat network that became inputs of the body.
    """

    def __init__(self, network: Network, region: Region | None, regions: Sequence[Region]) -> None:
        self.network = network
        self.tensors: dict[int, Tensor] = {}
        self.captured: list[Tensor] = []
        self._region = region
        self._regions = regions
        self._child_of = {place: one for one in regions if one.parent is region for place in one.places}
        self._claimed: set[int] = set()

    def resolve(self, tensor: Tensor) -> Tensor:
        """Return the counterpart of a tensor; one from outside of the body is captured."""
        if id(tensor) not in self.tensors:
            if isinstance(tensor.producer, Constant):
                self._copy(tensor.producer)
            elif self._region is None:
                raise NetworkError(
                    "The tensor is inside a loop or conditional and is used outside",
                    where=f"tensor {tensor.name!r}",
                    remedy="Pass it out through a loop output, or an output of the conditional",
                )
            else:
                self.capture(tensor)
        return self.tensors[id(tensor)]

    def capture(self, tensor: Tensor) -> None:
        """Add an input for a tensor from outside."""
        self.captured.append(tensor)
        self.tensors[id(tensor)] = self.add_input(tensor)

    def add_input(self, tensor: Tensor) -> Tensor:
        """Add an input like a tensor."""
        name = self.network.free_tensor_name(tensor.name)
        return self.network.add_input(name, tensor.spec.dtype, tensor.shape)

    def emit_for(self, tensors: Iterable[Tensor]) -> None:
        """Add the layers of the region that tensors depend on."""
        region = cast("Region", self._region)
        own_inputs = {id(layer) for layer in region.boundaries if isinstance(layer, IfConditionalInputLayer)}
        needed: dict[int, _Unit] = {}
        waiting = list(tensors)
        while waiting:
            producer = waiting.pop().producer
            if producer is None:
                continue
            if id(producer) in own_inputs:
                self.tensors[id(producer.outputs[0])] = self.resolve(producer.connected_input(0))
            elif id(producer) in region.inside:
                unit = self._unit(producer)
                if id(unit) not in needed:
                    needed[id(unit)] = unit
                    waiting.extend(_read_by(unit))
        self.emit([unit for unit in needed.values() if id(unit) not in self._claimed])

    def emit(self, units: Sequence[_Unit]) -> None:
        """Add layers and regions, each after those whose outputs it reads."""
        for unit in _in_order(units):
            self._claimed.add(id(unit))
            if isinstance(unit, Layer):
                self._copy(unit)
            elif isinstance(unit.owner, Loop):
                _LoopBuilder(self, unit).add()
            else:
                _add_conditional(self, unit)

    def _unit(self, layer: Layer) -> _Unit:
        return self._child_of.get(id(layer), layer)

    def _copy(self, layer: Layer) -> None:
        if layer.outputs and all(id(tensor) in self.tensors for tensor in layer.outputs):
            return
        inputs = [None if tensor is None else self.resolve(tensor) for tensor in layer.inputs]
        new = self.network.add_layer(copy_layer(layer), inputs)
        for old, output in zip(layer.outputs, new.outputs, strict=True):
            self.take(old, output)

    def take(self, old: Tensor, new: Tensor) -> None:
        """Let a tensor be the counterpart of one of the flat network, under its name."""
        if id(new) in self._claimed:
            new = self.network.add_layer(Identity(), [new]).outputs[0]
        self._claimed.add(id(new))
        self.tensors[id(old)] = new
        holder = self.network.find_tensor(old.name)
        if holder is not None and holder is not new:  # it has the name by chance: names of the user's are unique
            self.network.rename_tensor(holder, self.network.free_tensor_name(old.name))
        self.network.rename_tensor(new, old.name)
        copy_tensor_notes(old, new)

    def body(self, region: Region) -> _Level:
        """Return the level of a region inside."""
        return _Level(Network(region.name, self.network.flags), region, self._regions)


def _read_by(unit: _Unit) -> Sequence[Tensor]:
    if isinstance(unit, Layer):
        return [tensor for tensor in unit.ordering_inputs if tensor is not None]
    return unit.sources


def _in_order(units: Sequence[_Unit]) -> Iterator[_Unit]:
    """Units in an order in which each comes after those that it reads from, the network's where it can be."""
    producers = {id(tensor): place for place, unit in enumerate(units) for tensor in _made_by(unit)}
    consumers: dict[int, list[int]] = {}
    waiting = []
    for place, unit in enumerate(units):
        sources = {producers[id(tensor)] for tensor in _read_by(unit) if id(tensor) in producers} - {place}
        waiting.append(len(sources))
        for source in sources:
            consumers.setdefault(source, []).append(place)
    index = [unit.index if isinstance(unit, Layer) else unit.boundaries[0].index for unit in units]
    ready = [(index[place], place) for place, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    done = 0
    while ready:
        _, place = heapq.heappop(ready)
        done += 1
        yield units[place]
        for consumer in consumers.get(place, ()):
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heapq.heappush(ready, (index[consumer], consumer))
    if done < len(units):
        cyclic = [units[place] for place, count in enumerate(waiting) if count]
        raise NetworkError(
            "Loops and conditionals must not depend on themselves",
            found=", ".join(unit.where for unit in cyclic[:10]),
            remedy="Connect their outputs only to layers that they do not read",
        )


def _made_by(unit: _Unit) -> Sequence[Tensor]:
    return unit.outputs if isinstance(unit, Layer) else unit.results


def _add_conditional(level: _Level, region: Region) -> None:
    """Add the layer of a conditional."""
    conditions = [one for one in region.boundaries if isinstance(one, ConditionLayer)]
    if not region.exits:
        return
    if not conditions:
        raise NetworkError(
            "The conditional has no condition", where=region.where, remedy="Call `conditional.set_condition`"
        )
    bodies = [level.body(region), level.body(region)]
    captured: list[Tensor] = []
    for index, (body, word) in enumerate(zip(bodies, ("then", "else"), strict=True)):
        body.network.name = f"{region.name} {word}"
        for tensor in captured:
            body.capture(tensor)
        roots = [layer.connected_input(index) for layer in region.exits]
        body.emit_for(roots)
        for root in roots:
            mark_body_output(body.network, body.resolve(root))
        captured = body.captured
    for tensor in captured[len(bodies[0].captured) :]:
        bodies[0].capture(tensor)
    layer = ConditionalLayer(name=region.name, then_body=bodies[0].network, else_body=bodies[1].network)
    condition = level.resolve(conditions[0].connected_input(0))
    level.network.add_layer(layer, [condition, *map(level.resolve, captured)])
    note_origin(layer, *region.inside.values())
    for exit_layer, output in zip(region.exits, layer.outputs, strict=True):
        level.take(exit_layer.outputs[0], output)


class _LoopBuilder:
    """Adds the layer of a loop.

    Args:
        level: the network that gets the layer.
        region: the loop.
    """

    def __init__(self, level: _Level, region: Region) -> None:
        self._level = level
        self._region = region
        self._body = level.body(region)
        self._recurrences = [one for one in region.boundaries if isinstance(one, RecurrenceLayer)]
        self._iterators = [one for one in region.boundaries if isinstance(one, IteratorLayer)]
        exits = [one for one in region.boundaries if isinstance(one, LoopOutputLayer)]
        self._finals = [one for one in exits if one.output_kind is LoopOutput.LAST_VALUE]
        self._joined = [one for one in exits if one.output_kind is not LoopOutput.LAST_VALUE]
        self._limits: dict[Any, Layer] = {
            one.limit_kind: one for one in region.boundaries if isinstance(one, TripLimitLayer)
        }

    def add(self) -> None:
        """Add the layer, unless the loop has no outputs."""
        if not self._finals and not self._joined:
            return
        level, body = self._level, self._body
        body.network.name = f"{self._region.name} body"
        body.network.add_input(body.network.free_tensor_name("iteration"), DataType.INT64, ())
        following = [self._following(one) for one in self._recurrences]
        initial = [level.resolve(one.connected_input(0)) for one in self._recurrences]
        for entry in self._recurrences:
            body.tensors[id(entry.outputs[0])] = body.add_input(entry.outputs[0])
        state_of = self._states(following, initial)
        for iterator in self._iterators:
            body.tensors[id(iterator.outputs[0])] = body.add_input(iterator.outputs[0])
        condition = self._limits.get(TripLimit.WHILE)
        roots = [] if condition is None else [condition.connected_input(0)]
        roots += [*following, *(one.connected_input(0) for one in self._joined)]
        body.emit_for(roots)
        for root in roots:
            mark_body_output(body.network, body.resolve(root))
        layer = LoopLayer(
            name=self._region.name,
            body=body.network,
            num_states=len(following),
            is_while=condition is not None,
            input_axes=tuple(one.axis for one in self._iterators),
            input_reverse=tuple(one.reverse for one in self._iterators),
            output_axes=tuple(one.axis for one in self._joined),
            output_reverse=tuple(one.output_kind is LoopOutput.REVERSE for one in self._joined),
        )
        count = self._limits.get(TripLimit.COUNT)
        inputs = [
            None if count is None else level.resolve(count.connected_input(0)),
            *initial,
            *(level.resolve(one.connected_input(0)) for one in self._iterators),
            *(self._length(one) for one in self._joined),
            *map(level.resolve, body.captured),
        ]
        level.network.add_layer(layer, inputs)
        note_origin(layer, *self._region.inside.values())
        for one in self._finals:
            level.take(one.outputs[0], layer.outputs[state_of[id(one)]])
        for index, one in enumerate(self._joined):
            level.take(one.outputs[0], layer.outputs[len(following) + index])

    def _following(self, recurrence: RecurrenceLayer) -> Tensor:
        tensor = recurrence.get_input(1)
        if tensor is None:
            raise recurrence.problem(
                "Input 1, the value for the next iteration, is not connected",
                remedy="Connect it with `set_input(1, tensor)`",
            )
        initial = recurrence.connected_input(0)
        if (tensor.spec.rank, tensor.spec.dtype) != (initial.spec.rank, initial.spec.dtype):
            raise recurrence.problem(
                "Both inputs of a recurrence must have the same rank and type",
                found=f"{initial.spec.dtype.text} {initial.shape}, then {tensor.spec.dtype.text} {tensor.shape}",
                remedy="Reshape or cast one of them",
            )
        return tensor

    def _states(self, following: list[Tensor], initial: list[Tensor]) -> dict[int, int]:
        """Identity of each output layer of a last value to its state. A value that no recurrence passes on gets one."""
        state_of: dict[int, int] = {}
        places = {id(one.outputs[0]): place for place, one in enumerate(self._recurrences)}
        for output in self._finals:
            value = output.connected_input(0)
            if id(value) not in places:
                same = [place for place, tensor in enumerate(following) if tensor is value]
                places[id(value)] = same[0] if same else self._new_state(output, value, following, initial)
            state_of[id(output)] = places[id(value)]
        return state_of

    def _new_state(self, output: LoopOutputLayer, value: Tensor, following: list[Tensor], initial: list[Tensor]) -> int:
        if not value.spec.is_static:
            raise output.problem(
                "The last value of a tensor with dynamic dimensions must be that of a recurrence",
                found=f"{value.name!r} {value.shape}",
                remedy="Add a recurrence, connect the tensor to its input 1, and pass the output of the recurrence",
            )
        zeros = np.zeros(value.shape, value.spec.dtype.numpy)
        constant = Constant(name=f"{output.name} before the first iteration", shape=value.shape, weights=zeros)
        initial.append(self._level.network.add_layer(constant, []).outputs[0])
        self._body.add_input(value)
        following.append(value)
        return len(following) - 1

    def _length(self, output: LoopOutputLayer) -> Tensor:
        length = output.get_input(1)
        if length is None:
            raise output.problem(
                "Input 1, the length of the concatenation, is not connected",
                remedy="Connect it with `set_input(1, tensor)`, such as to the trip limit",
            )
        return self._level.resolve(length)
