"""Conditionals and loops: what they compute, and what their inputs must be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.layer import Layer
from dryfit.network.layers.bodies import first_element
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.tensor import Array, TensorSpec
from dryfit.reference.body_program import Phase, Slots, program_of
from dryfit.reference.registry import reference


@reference(ConditionalLayer)
def conditional(layer: ConditionalLayer, inputs: Sequence[Array]) -> list[Array]:
    """Only the selected branch runs."""
    condition = np.asarray(inputs[0])
    if condition.size != 1:
        raise _problem(layer, "The condition must have exactly one element", found=condition.shape)
    body = layer.branch(condition)
    program = program_of(body, range(len(body.inputs)))
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
        self._program = program_of(layer.body, varying, int(layer.is_while))
        first = 1 + layer.num_states
        self._sliced = range(first, first + len(layer.input_axes))
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
        at_end = any(slots[place] is None for place in self._sliced)
        if not (at_end and program.condition_reads(self._sliced)):
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
