"""Bodies of loops and conditionals, prepared to run layer by layer, by the references of their layers.

What depends on constants only is computed when a body is prepared, and what does not change between iterations once per
run of a loop, before its first iteration, so that an iteration costs little more than its layers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.layer import Graph, Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.reference.executor import needed_layers
from dryfit.reference.quantization import check_run_time_scale, run_time_scale
from dryfit.reference.registry import reference_of

Slots = list[Array | None]
"""The tensors of a body while it runs; None for what is not computed yet, or no longer needed."""


class Phase(enum.IntEnum):
    """When a step of a body runs."""

    FIXED = 0
    """Once: it reads nothing that changes between iterations."""
    CONDITION = 1
    """In each iteration, as the condition depends on it."""
    VARYING = 2
    """In each iteration that the condition allows."""


@frozen(eq=False)
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
        self._read_for_condition = {
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

    def condition_reads(self, inputs: range) -> bool:
        """Whether the condition depends on some of these inputs of the body."""
        return not self._read_for_condition.isdisjoint(inputs)

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


def program_of(body: Graph, varying: Sequence[int], num_conditions: int = 0) -> Program:
    """The program of a body, kept with the body as long as it does not change."""
    network = cast("Network", body)
    network.refresh_shapes()
    key = (network.revision, tuple(varying), num_conditions)
    kept = vars(network).get("_program")
    if kept is None or kept[0] != key:
        kept = vars(network)["_program"] = (key, Program(body, varying, num_conditions))
    program: Program = kept[1]
    return program
