"""Conditionals and loops: the bodies run layer by layer, by the references of their layers.

A body is prepared once. What depends on constants only is computed then, and what does not change between iterations is
computed once per run of the loop, before its first iteration, so that an iteration costs little more than its layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import attrs
import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.layer import Graph, Layer
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer, first_element
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor, TensorSpec
from dryfit.reference.executor import needed_layers
from dryfit.reference.quantization import check_run_time_scale, run_time_scale
from dryfit.reference.registry import reference, reference_of

Slots = list[Array | None]
"""The tensors of a body while it runs; None for what is not computed yet, or no longer needed."""


@reference(ConditionalLayer)
def conditional(layer: ConditionalLayer, inputs: Sequence[Array]) -> list[Array]:
    """Only the selected branch runs."""
    condition = np.asarray(inputs[0])
    if condition.size != 1:
        raise _problem(layer, "The condition must have exactly one element", found=condition.shape)
    body = layer.branch(condition)
    program = _program(body, range(len(body.inputs)))
    slots = program.start(inputs[1:])
    program.run(Phase.FIXED, slots)
    program.run(Phase.VARYING, slots)
    return program.outputs(slots)


@reference(LoopLayer)
def loop(layer: LoopLayer, inputs: Sequence[Array | None]) -> list[Array]:
    """The iterations run one after the other."""
    return _LoopRun(layer, inputs).run()


class _LoopRun:
    """One run of a loop."""

    def __init__(self, layer: LoopLayer, inputs: Sequence[Array | None]) -> None:
        self._layer = layer
        self._parts = layer.parts(inputs)
        self._inputs = inputs
        self._limit = self._trip_limit()
        self._scanned: list[list[Array]] = [[] for _ in layer.output_axes]
        passed = range(1, 1 + layer.num_states)
        outputs = layer.body.outputs[int(layer.is_while) :]
        # A state that the body hands on as it is has the same value in every iteration.
        constant = {place for place in passed if outputs[place - 1] is layer.body.inputs[place]}
        varying = [place for place in range(1 + layer.num_states + len(layer.input_axes)) if place not in constant]
        self._program = _program(layer.body, varying, int(layer.is_while))
        self._number_shape = layer.body.inputs[0].spec.shape

    def run(self) -> list[Array]:
        """The final states and the scanned outputs."""
        layer, program = self._layer, self._program
        states: list[Array] = list(self._parts.states)
        trip, slots, is_first = 0, program.start(()), True
        while self._limit is None or trip < self._limit:
            slices = self._slices(trip)
            number = np.full(self._number_shape, trip, np.int64)
            slots = program.restart(slots, [number, *states, *slices, *self._parts.captured])
            if is_first:
                program.run(Phase.FIXED, slots)
                is_first = False
            if layer.is_while and not self._continues(slots, trip):
                break
            program.run(Phase.VARYING, slots)
            results = program.outputs(slots)[int(layer.is_while) :]
            states = results[: layer.num_states]
            for found, one in zip(self._scanned, results[layer.num_states :], strict=True):
                found.append(one)
            trip += 1
        return [*states, *self._joined(trip)]

    def _trip_limit(self) -> int | None:
        """The greatest number of iterations, from the trip limit and the scanned inputs."""
        layer, parts = self._layer, self._parts
        extents: set[int] = {x.shape[axis] for x, axis in zip(parts.scanned, layer.input_axes, strict=True)}
        if parts.trip_limit is not None:
            limit = max(first_element(parts.trip_limit), 0)
            if extents and min(extents) < limit and not layer.is_while:
                raise _problem(
                    layer,
                    "The trip limit must not be greater than the extent of the scanned inputs",
                    found=f"{limit} iterations for {min(extents)} slices",
                    remedy="Lower the trip limit, or pass longer inputs",
                )
            return limit
        if layer.is_while or not extents:
            return None
        if len(extents) > 1:
            raise _problem(
                layer,
                "The scanned inputs must have the same number of slices",
                found=", ".join(map(str, sorted(extents))),
                remedy="Pass inputs whose extents are equal along the scanned axes",
            )
        return extents.pop()

    def _slices(self, trip: int) -> list[Array | None]:
        """The slice of each scanned input; None where there are no more."""
        layer = self._layer
        slices: list[Array | None] = []
        for x, axis, is_reverse in zip(self._parts.scanned, layer.input_axes, layer.input_reverse, strict=True):
            extent = x.shape[axis]
            place = extent - 1 - trip if is_reverse else trip
            slices.append(x[(slice(None),) * axis + (place,)] if 0 <= place < extent else None)
        return slices

    def _continues(self, slots: Slots, trip: int) -> bool:
        layer, program = self._layer, self._program
        at_end = any(slots[place] is None for place in program.scanned_places(layer))
        if not (at_end and program.condition_reads_slices(layer)):
            program.run(Phase.CONDITION, slots)
            condition = np.asarray(program.outputs(slots, 1)[0])
            if condition.size != 1:
                raise _problem(layer, "The condition must have exactly one element", found=condition.shape)
            if not bool(condition.reshape(-1)[0]) or not at_end:
                return bool(condition.reshape(-1)[0])
        raise _problem(
            layer,
            "The loop continues after the last slice of a scanned input",
            found=f"iteration {trip}",
            remedy="Add a trip limit, or a condition that ends the loop before that",
        )

    def _joined(self, trips: int) -> list[Array]:
        """The scanned outputs, each concatenated along its axis."""
        layer = self._layer
        joined: list[Array] = []
        specs: Sequence[TensorSpec] = ()
        for index, slices in enumerate(self._scanned):
            axis, length = layer.output_axes[index], self._parts.lengths[index]
            extent = trips if length is None else max(first_element(length), 0)
            if extent < trips:
                raise _problem(
                    layer,
                    f"The length of scanned output {index} must not be less than the number of iterations",
                    found=f"{extent} for {trips} iterations",
                    remedy="Raise the length, or lower the trip limit",
                )
            if len({one.shape for one in slices}) > 1:
                raise _problem(
                    layer,
                    f"The slices of scanned output {index} must have the same shape in every iteration",
                    found=", ".join(map(str, dict.fromkeys(one.shape for one in slices))),
                    remedy="Change the body, or pass the tensor on as a state",
                )
            if not slices:
                specs = specs or layer.infer_outputs([None if x is None else TensorSpec.of(x) for x in self._inputs])
                spec = specs[layer.num_states + index]
                shape = [max(one, 0) for one in spec.shape]
                shape[axis] = extent
                joined.append(np.zeros(shape, spec.dtype.numpy))
                continue
            filling = [np.zeros_like(slices[0])] * (extent - trips)
            ordered = slices[::-1] if layer.output_reverse[index] else slices
            joined.append(np.stack([*ordered, *filling], axis))
        return joined


def _problem(layer: Layer, message: str, *, found: object = None, remedy: str | None = None) -> ExecutionError:
    return ExecutionError(message, where=layer.where, found=found, remedy=remedy or "Change the input data")


# Bodies ---------------------------------------------------------------------------------------------------------------


class Phase:
    """When a step of a body runs."""

    FIXED = 0
    """Once: it reads nothing that changes between iterations."""
    CONDITION = 1
    """In each iteration, as the condition depends on it."""
    VARYING = 2
    """In each iteration that the condition allows."""


@attrs.frozen(eq=False)
class _Step:
    """One layer of a body.

    Attributes:
        layer: the layer.
        run: its reference.
        inputs: slots that it reads; None for an absent optional input.
        outputs: slots that it writes.
        dropped: slots that no later step needs.
        checks_scale: whether it reads a scale that is known only now.
    """

    layer: Layer
    run: Callable[[Any, Sequence[Array | None]], Sequence[Array]]
    inputs: Sequence[int | None]
    outputs: Sequence[int]
    dropped: Sequence[int]
    checks_scale: bool


class Program:
    """A body that is ready to run.

    Args:
        body: the network.
        varying: positions of the inputs that change between iterations.
        num_conditions: number of outputs at the front that decide whether the rest is computed: 0 or 1.
    """

    def __init__(self, body: Graph, varying: Sequence[int], num_conditions: int = 0) -> None:
        body.refresh_shapes()
        tensors: list[Tensor] = [*body.inputs, *(tensor for layer in body.layers for tensor in layer.outputs)]
        self._slots = {id(tensor): slot for slot, tensor in enumerate(tensors)}
        self._varying = frozenset(varying)
        self._results = [self._slots[id(tensor)] for tensor in body.outputs]
        layers = needed_layers(cast("Network", body))
        conditional = _sources(tensor for tensor in body.outputs[:num_conditions])
        changing = {id(body.inputs[place]) for place in varying}
        phases: dict[int, int] = {}
        for layer in layers:
            if any(id(tensor) in changing for tensor in layer.connected_inputs) or layer.kind == "plugin":
                changing.update(id(tensor) for tensor in layer.outputs)
                phases[id(layer)] = Phase.CONDITION if id(layer) in conditional else Phase.VARYING
            else:
                phases[id(layer)] = Phase.FIXED
        self._reads_for_condition = {
            self._slots[id(tensor)] for layer in layers if id(layer) in conditional for tensor in layer.connected_inputs
        } | set(self._results[:num_conditions])
        self._steps: list[list[_Step]] = [[], [], []]
        self._known: Slots = [None] * len(tensors)
        self._add_steps(layers, phases)

    def _add_steps(self, layers: Sequence[Layer], phases: dict[int, int]) -> None:
        last_use: dict[int, int] = {}
        ordered = sorted(layers, key=lambda layer: phases[id(layer)])
        for place, layer in enumerate(ordered):
            last_use.update((self._slots[id(tensor)], place) for tensor in layer.connected_inputs)
        kept = {*self._results, *(self._slots[id(t)] for one in ordered for t in _fixed_outputs(one, phases))}
        for place, layer in enumerate(ordered):
            inputs = [None if tensor is None else self._slots[id(tensor)] for tensor in layer.inputs]
            outputs = [self._slots[id(tensor)] for tensor in layer.outputs]
            checks_scale = run_time_scale(layer) is not None
            dropped = [slot for slot in {*inputs} - {None} if last_use[cast("int", slot)] == place]
            free = [slot for slot in dropped if slot is not None and slot not in kept]
            step = _Step(layer, reference_of(layer), inputs, outputs, free, checks_scale)
            is_known = all(slot is None or self._known[slot] is not None for slot in inputs)
            if phases[id(layer)] == Phase.FIXED and is_known and not layer.bodies and not checks_scale:
                self._run_step(step, self._known, drops=False)
            else:
                self._steps[phases[id(layer)]].append(step)

    def start(self, inputs: Sequence[Array | None]) -> Slots:
        """Slots that hold what is known, and the inputs."""
        return self.restart(list(self._known), inputs)

    def restart(self, slots: Slots, inputs: Sequence[Array | None]) -> Slots:
        """The slots with the inputs of the next iteration. What is computed once stays."""
        slots[: len(inputs)] = inputs
        return slots

    def run(self, phase: int, slots: Slots) -> None:
        """Run the steps of a phase."""
        for step in self._steps[phase]:
            self._run_step(step, slots)

    def outputs(self, slots: Slots, count: int | None = None) -> list[Array]:
        """The outputs of the body, or the first of them, once their steps ran."""
        return [cast("Array", slots[slot]) for slot in self._results[:count]]

    def scanned_places(self, layer: LoopLayer) -> range:
        """The slots of the slices."""
        first = 1 + layer.num_states
        return range(first, first + len(layer.input_axes))

    def condition_reads_slices(self, layer: LoopLayer) -> bool:
        """Whether the condition depends on slices of scanned inputs."""
        return not self._reads_for_condition.isdisjoint(self.scanned_places(layer))

    def _run_step(self, step: _Step, slots: Slots, *, drops: bool = True) -> None:
        inputs = [None if slot is None else slots[slot] for slot in step.inputs]
        if step.checks_scale:
            names = {t.name: array for t, array in zip(step.layer.inputs, inputs, strict=True) if t is not None}
            check_run_time_scale(step.layer, cast("dict[str, Array]", names))
        for slot, output in zip(step.outputs, step.run(step.layer, inputs), strict=True):
            slots[slot] = np.asarray(output)
        if drops:
            for slot in step.dropped:
                slots[slot] = None


def _fixed_outputs(layer: Layer, phases: dict[int, int]) -> Sequence[Tensor]:
    """What a layer gives, and what it reads, if it runs once: iterations after the first need it again."""
    return [*layer.outputs, *layer.connected_inputs] if phases[id(layer)] == Phase.FIXED else ()


def _sources(tensors: Iterable[Tensor]) -> set[int]:
    """The layers that tensors depend on, by identity."""
    found: set[int] = set()
    waiting = [tensor.producer for tensor in tensors]
    while waiting:
        layer = waiting.pop()
        if layer is not None and id(layer) not in found:
            found.add(id(layer))
            waiting.extend(tensor.producer for tensor in layer.connected_inputs)
    return found


def _program(body: Graph, varying: Sequence[int], num_conditions: int = 0) -> Program:
    """The program of a body, kept with the body as long as it does not change."""
    network = cast("Network", body)
    network.refresh_shapes()
    key = (network.revision, tuple(varying), num_conditions)
    kept = vars(network).get("_program")
    if kept is None or kept[0] != key:
        kept = vars(network)["_program"] = (key, Program(body, varying, num_conditions))
    program: Program = kept[1]
    return program
