"""Layers that run other networks: a conditional, which runs one of two, and a loop, which runs one repeatedly.

The networks are parameters of these layers and are called their bodies. A body is complete: whatever it reads from
outside is an input of the layer, at the same place among the body's inputs. The layers that TensorRT writes around a
loop or a conditional in one flat network are in `dryfit.network.layers.boundaries`; a build turns them into these.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Graph, Inputs, Layer, Specs, layer_kind
from dryfit.network.layers.bodies import (
    body_multiply_accumulates,
    body_specs,
    check_body_inputs,
    check_condition,
    check_depth,
    host_only_part,
    in_common,
    may_be_single,
)
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Array, TensorSpec

_COUNT_TYPES = (DataType.INT32, DataType.INT64)


@layer_kind("conditional", "CONDITIONAL_OUTPUT")
class ConditionalLayer(Layer):
    """The outputs of one of two networks; only the selected network runs.

    Inputs: the condition (BOOL, one element), then the inputs of the branches. Both branches have the same inputs, in
    this order, and may ignore some.

    Attributes:
        then_body: network that runs if the condition is true.
        else_body: network that runs otherwise; its outputs have the ranks and types of the other's.

    Source: TensorRT `IIfConditional`; ONNX `If`.
    """

    has_fixed_types = True

    then_body: Graph
    else_body: Graph

    @property
    def bodies(self) -> Sequence[Graph]:
        """The two branches."""
        return (self.then_body, self.else_body)

    @property
    def output_count(self) -> int:
        """Number of outputs: those of each branch."""
        return len(self.then_body.outputs)

    @property
    def is_host_only(self) -> bool:
        """Whether a layer of a branch is."""
        return bool(self.host_only_reason)

    @property
    def host_only_reason(self) -> str:
        """Name of the layer of a branch that TensorRT does not support."""
        return host_only_part(self.bodies)

    def branch(self, condition: Array) -> Graph:
        """Return the branch that a condition selects."""
        return self.then_body if bool(condition.reshape(-1)[0]) else self.else_body

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the outputs of the selected branch if the condition is known, else what both branches have in common.

        Extents in which the branches differ are -1.
        """
        condition, given = self._checked(inputs)
        if condition.value is not None:
            return body_specs(self.branch(condition.value), given)
        return self._joined(*(body_specs(body, given) for body in self.bodies))

    def stated_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the outputs for the shapes that the branches state, without inferring their layers."""
        self._checked(inputs)
        return self._joined(*([tensor.spec for tensor in body.outputs] for body in self.bodies))

    def _checked(self, inputs: Inputs) -> tuple[TensorSpec, Sequence[TensorSpec]]:
        """Return the condition and the inputs of the branches."""
        check_depth(self)
        condition = self.required(inputs, 0)
        check_condition(self, condition, "The condition")
        given = [self.required(inputs, index) for index in range(1, len(inputs))]
        for body in self.bodies:
            check_body_inputs(self, body, given)
        return condition, given

    def _joined(self, ours: Sequence[TensorSpec], theirs: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
        if len(ours) != len(theirs):
            raise self.problem(
                "Both branches must have the same number of outputs",
                found=f"{len(ours)} and {len(theirs)}",
                remedy="Mark the missing outputs in the other branch",
            )
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if (one.rank, one.dtype) != (other.rank, other.dtype):
                raise self.problem(
                    f"Output {index} must have the same rank and type in both branches",
                    found=f"{one.dtype.text} {one.shape} and {other.dtype.text} {other.shape}",
                    remedy="Reshape or cast it in one branch, or make the condition a constant",
                )
        return [in_common(one, other) for one, other in zip(ours, theirs, strict=True)]

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return those of the branch that has more."""
        del specs
        return max(map(body_multiply_accumulates, self.bodies))


@frozen
class LoopInputs:
    """The inputs of a loop, or their specs, by what they are to it.

    Attributes:
        trip_limit: greatest number of iterations; None for no limit.
        states: values before the first iteration.
        scanned: tensors that are read slice by slice.
        lengths: extent of the axis along which each scanned output is concatenated; None for the number of iterations.
        captured: tensors that are the same in every iteration.
    """

    trip_limit: Any
    states: Sequence[Any]
    scanned: Sequence[Any]
    lengths: Sequence[Any]
    captured: Sequence[Any]


@layer_kind("loop", "LOOP_OUTPUT")
class LoopLayer(Layer):
    """A network that runs repeatedly, with states that each iteration passes on to the next.

    Inputs: the trip limit (INT32 or INT64, one element; optional), the initial states, the scanned inputs, for each
    scanned output its length (INT32 or INT64, one element; optional), and the captured tensors, which are the same in
    every iteration.

    Inputs of the body: the number of the iteration (INT64, one element), the states, one slice of each scanned input,
    and the captured tensors. Outputs of the body: the condition if `is_while`, the next states, and one slice of each
    scanned output.

    Outputs: the final states, then the scanned outputs, concatenated along a new axis. If an output has a length that
    is greater than the number of iterations, the rest is 0.

    The loop ends when it reaches its trip limit, or when the condition is false. The condition is computed before the
    rest of an iteration, from the inputs of the body. A loop with neither runs once for each slice of its scanned
    inputs.

    Attributes:
        body: network of one iteration.
        num_states: number of states.
        is_while: whether the first output of the body is the condition (BOOL, one element).
        input_axes: axis of each scanned input along which it is sliced; the slices do not have it.
        input_reverse: whether each scanned input is read from its last slice to its first.
        output_axes: position of the new axis in each scanned output.
        output_reverse: whether each scanned output begins with the slice of the last iteration.

    Source: TensorRT `ILoop`; ONNX `Loop` and `Scan`.
    """

    has_fixed_types = True

    body: Graph
    num_states: int = 0
    is_while: bool = False
    input_axes: tuple[int, ...] = attrs.field(default=(), converter=ints)
    input_reverse: tuple[bool, ...] = ()
    output_axes: tuple[int, ...] = attrs.field(default=(), converter=ints)
    output_reverse: tuple[bool, ...] = ()

    @property
    def bodies(self) -> Sequence[Graph]:
        """The network of one iteration."""
        return (self.body,)

    @property
    def output_count(self) -> int:
        """Number of outputs: final states and scanned outputs."""
        return self.num_states + len(self.output_axes)

    @property
    def is_host_only(self) -> bool:
        """Whether a layer of the body is."""
        return bool(self.host_only_reason)

    @property
    def host_only_reason(self) -> str:
        """Name of the layer of the body that TensorRT does not support."""
        return host_only_part(self.bodies)

    def parts(self, inputs: Sequence[Any]) -> LoopInputs:
        """Return inputs, or their specs or arrays, by what they are to the loop."""
        counts = (1, self.num_states, len(self.input_axes), len(self.output_axes))
        given = [*inputs, *[None] * max(sum(counts) - len(inputs), 0)]
        (limit,), states, scanned, lengths, captured = (
            given[sum(counts[:place]) : sum(counts[: place + 1]) if place < len(counts) else None]
            for place in range(len(counts) + 1)
        )
        return LoopInputs(limit, states, scanned, lengths, captured)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the specs of final states and scanned outputs.

        An extent of a state that changes from one iteration to the next is -1, as is the number of iterations where it
        depends on data.
        """
        parts = self._checked(inputs)
        slices = [self._slice(index, spec) for index, spec in enumerate(parts.scanned)]
        states = [attrs.evolve(spec, value=None) for spec in parts.states]
        first = TensorSpec(self.body.inputs[0].spec.shape, DataType.INT64)
        for attempt in itertools.count():
            given = [first, *states, *slices, *parts.captured]
            check_body_inputs(self, self.body, given)
            found = body_specs(self.body, given)
            if self.is_while:
                check_condition(self, found[0], "The condition")
                found = found[1:]
            merged = [self._next(index, old, found[index]) for index, old in enumerate(states)]
            if merged == states:
                break
            # Where one extent after the other changes, all are dynamic: a body is not inferred once per extent.
            states = [
                TensorSpec((-1,) * new.rank, new.dtype) if attempt and old != new else new
                for old, new in zip(states, merged, strict=True)
            ]
        return [*states, *self._scanned(parts, found[self.num_states :])]

    def stated_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the outputs for the shapes that the body states, without inferring its layers."""
        parts = self._checked(inputs)
        slices = [self._slice(index, spec) for index, spec in enumerate(parts.scanned)]
        check_body_inputs(self, self.body, [self.body.inputs[0].spec, *parts.states, *slices, *parts.captured])
        found = [tensor.spec for tensor in self.body.outputs]
        if self.is_while:
            check_condition(self, found[0], "The condition")
        found = found[int(self.is_while) :]
        states = [self._next(index, spec, found[index]) for index, spec in enumerate(parts.states)]
        return [*states, *self._scanned(parts, found[self.num_states :])]

    def known_trips(self, parts: LoopInputs) -> int:
        """Return the number of iterations, or -1 if it is known only at run time.

        Args:
            parts: specs of the inputs.
        """
        if self.is_while:
            return -1
        if parts.trip_limit is not None:
            value = parts.trip_limit.value
            return -1 if value is None else max(int(value.reshape(-1)[0]), 0)
        extents = [spec.shape[axis] for spec, axis in zip(parts.scanned, self.input_axes, strict=True)]
        return max(extents, default=-1)

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return those of all iterations; of one if their number is known only at run time."""
        trips = self.known_trips(self.parts([None if tensor is None else specs[tensor.name] for tensor in self.inputs]))
        return body_multiply_accumulates(self.body) * (1 if trips < 0 else trips)

    def _checked(self, inputs: Inputs) -> LoopInputs:
        """Return the specs of the inputs, once their number and types are right."""
        check_depth(self)
        self._check_counts(inputs)
        parts = self.parts(inputs)
        for index, spec in enumerate((parts.trip_limit, *parts.lengths)):
            if spec is not None and (spec.dtype not in _COUNT_TYPES or not may_be_single(spec.shape)):
                raise self.problem(
                    "The length of a scanned output must be one integer"
                    if index
                    else "The trip limit must be one integer",
                    found=f"{spec.dtype.text} {spec.shape}",
                    allowed="INT32 or INT64 with one element",
                    remedy="Cast or reshape it",
                )
        return parts

    def _scanned(self, parts: LoopInputs, slices: Sequence[TensorSpec]) -> list[TensorSpec]:
        """Return the scanned outputs for their slices."""
        trips = self.known_trips(parts)
        scanned = []
        for spec, axis, length in zip(slices, self.output_axes, parts.lengths, strict=True):
            if not 0 <= axis <= spec.rank:
                raise self.problem(
                    "`output_axes` must be axes of the outputs",
                    found=axis,
                    allowed=f"0 to {spec.rank}",
                    remedy="Set `output_axes`",
                )
            known = trips if length is None else -1 if length.value is None else int(length.value.reshape(-1)[0])
            scanned.append(TensorSpec((*spec.shape[:axis], max(known, -1), *spec.shape[axis:]), spec.dtype))
        return scanned

    def _check_counts(self, inputs: Inputs) -> None:
        scans = (("input", self.input_axes, self.input_reverse), ("output", self.output_axes, self.output_reverse))
        for side, axes, reverse in scans:
            if len(axes) != len(reverse):
                raise self.problem(
                    f"`{side}_axes` and `{side}_reverse` must have the same length",
                    found=f"{len(axes)} and {len(reverse)}",
                    remedy=f"Set one value for each scanned {side}",
                )
        # A file may state any number of states: it is compared before anything is made of that size.
        parts = self.parts(inputs) if 0 <= self.num_states < len(inputs) + 1 else None
        if parts is None or any(one is None for one in (*parts.states, *parts.scanned, *parts.captured)):
            raise self.problem(
                "States, scanned inputs and captured tensors must be connected",
                found=f"{len(inputs)} inputs",
                remedy="Connect them with `set_input`",
            )
        if parts.trip_limit is None and not self.is_while and not parts.scanned:
            raise self.problem(
                "A loop must have a trip limit, a condition or a scanned input",
                remedy="Connect input 0, or set `is_while`",
            )
        taken = 1 + len(parts.states) + len(parts.scanned) + len(parts.captured)
        made = int(self.is_while) + self.output_count
        if (len(self.body.inputs), len(self.body.outputs)) != (taken, made):
            raise self.problem(
                "The inputs and outputs of the body must match those of the loop",
                found=f"{len(self.body.inputs)} inputs and {len(self.body.outputs)} outputs",
                allowed=f"{taken} inputs and {made} outputs",
                remedy="Change the body, or the inputs of the loop",
            )
        first = self.body.inputs[0].spec
        if first.dtype is not DataType.INT64 or first.shape not in ((), (1,)):
            raise self.problem(
                "The first input of the body is the number of the iteration",
                found=f"{first.dtype.text} {first.shape}",
                allowed="INT64 with one element",
                remedy="Change this input of the body",
            )

    def _slice(self, index: int, spec: TensorSpec) -> TensorSpec:
        axis = self.input_axes[index]
        if not 0 <= axis < spec.rank:
            raise self.problem(
                "`input_axes` must be axes of the scanned inputs",
                found=f"axis {axis} of {spec.shape}",
                allowed=f"0 to {spec.rank - 1}" if spec.rank else "none, as the input is a scalar",
                remedy="Set `input_axes`",
            )
        return TensorSpec((*spec.shape[:axis], *spec.shape[axis + 1 :]), spec.dtype)

    def _next(self, index: int, old: TensorSpec, new: TensorSpec) -> TensorSpec:
        if (old.rank, old.dtype) != (new.rank, new.dtype):
            raise self.problem(
                f"State {index} must have the same rank and type in every iteration",
                found=f"{old.dtype.text} {old.shape}, then {new.dtype.text} {new.shape}",
                remedy="Reshape or cast it at the end of the body",
            )
        return in_common(old, new)
