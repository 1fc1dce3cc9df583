"""Boundary layers: how TensorRT writes loops and conditionals in one flat network.

The layers of a body stand among all others. They belong to a loop because they depend on its recurrences and iterators,
and to a conditional because they depend on its inputs. `Network.add_loop` and `Network.add_if_conditional` return an
object that adds the boundary layers. A build collects what is between them to the layers that run it, see
`dryfit.network.control_flow`; boundary layers are never in an engine.

Source: TensorRT `ILoop` and `IIfConditional`; TensorRT Developer Guide, "Working with Loops", "Working with
Conditionals".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, dataclass_transform

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerT, define_layer
from dryfit.network.layers.bodies import check_condition, in_common, may_be_single
from dryfit.network.tensor import TensorSpec


class LoopOutput(enum.Enum):
    """What a loop output gives; TensorRT's `LoopOutput`."""

    LAST_VALUE = "last_value"
    """The value after the last iteration."""
    CONCATENATE = "concatenate"
    """The values of all iterations, concatenated along a new axis."""
    REVERSE = "reverse"
    """The same, beginning with the last iteration."""


class TripLimit(enum.Enum):
    """What ends a loop; TensorRT's `TripLimit`."""

    COUNT = "count"
    """The number of iterations."""
    WHILE = "while"
    """A condition that is computed before each iteration."""


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(attrs.field,))
def boundary_layer(kind: str) -> Callable[[type[LayerT]], type[LayerT]]:
    """Return a decorator for a layer that a build replaces, so that it is not among the kinds of engines."""

    def named(cls: type[LayerT]) -> type[LayerT]:
        cls = define_layer(cls)
        cls.kind = kind
        cls.layer_type = kind.upper()
        return cls

    return named


@define_layer
class LoopBoundaryLayer(Layer):
    """A layer at the boundary of a loop; TensorRT's `ILoopBoundaryLayer`.

    Attributes:
        loop: the loop that added the layer.
    """

    has_fixed_types = True

    loop: Any = attrs.field(default=None)


@boundary_layer("trip_limit")
class TripLimitLayer(LoopBoundaryLayer):
    """The limit of a loop. It has no output.

    Attributes:
        limit_kind: whether the input is a number of iterations from outside, or a condition computed inside the loop.

    Source: TensorRT `ITripLimitLayer`, where `limit_kind` is `kind`.
    """

    limit_kind: TripLimit

    @property
    def output_count(self) -> int:
        """Number of outputs: 0."""
        return 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Check the type of the limit."""
        spec = self.required(inputs, 0)
        if self.limit_kind is TripLimit.WHILE:
            check_condition(self, spec, "The condition of a loop")
        elif spec.dtype not in (DataType.INT32, DataType.INT64) or not may_be_single(spec.shape):
            raise self.problem(
                "The trip limit must be one integer",
                found=f"{spec.dtype.text} {spec.shape}",
                allowed="INT32 or INT64 with one element",
                remedy="Cast or reshape it",
            )
        return []


@boundary_layer("recurrence")
class RecurrenceLayer(LoopBoundaryLayer):
    """A value that each iteration passes on to the next.

    Input 0 is the value in the first iteration, from outside the loop. Input 1, connected with `set_input`, is the
    value for the next iteration, from inside.

    Source: TensorRT `IRecurrenceLayer`.
    """

    late_inputs = (1,)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape and type of the initial value."""
        spec = self.required(inputs, 0)
        return [TensorSpec(spec.shape, spec.dtype)]


@boundary_layer("iterator")
class IteratorLayer(LoopBoundaryLayer):
    """One slice of a tensor per iteration.

    Attributes:
        axis: axis along which the tensor is sliced; the slices do not have it.
        reverse: whether the first iteration gets the last slice.

    Source: TensorRT `IIteratorLayer`.
    """

    axis: int = 0
    reverse: bool = False

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape without the axis."""
        spec = self.required(inputs, 0)
        if not 0 <= self.axis < spec.rank:
            raise self.problem(
                "`axis` must be an axis of the input",
                found=self.axis,
                allowed=f"0 to {spec.rank - 1}" if spec.rank else "none, as the input is a scalar",
                remedy="Set `axis` to one of these",
                is_mendable=True,
            )
        return [TensorSpec((*spec.shape[: self.axis], *spec.shape[self.axis + 1 :]), spec.dtype)]


@boundary_layer("loop_output")
class LoopOutputLayer(LoopBoundaryLayer):
    """A result of a loop.

    Input 0 comes from inside the loop. A concatenation also needs input 1, connected with `set_input`: the extent of
    the new axis, one integer from outside. If the loop runs for fewer iterations, the rest is 0.

    Attributes:
        output_kind: what the output is.
        axis: position of the new axis of a concatenation.

    Source: TensorRT `ILoopOutputLayer`, where `output_kind` is `kind`.
    """

    output_kind: LoopOutput
    axis: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape of input 0, with the new axis for concatenations."""
        spec = self.required(inputs, 0)
        if self.output_kind is LoopOutput.LAST_VALUE:
            return [TensorSpec(spec.shape, spec.dtype)]
        if not 0 <= self.axis <= spec.rank:
            raise self.problem(
                "`axis` must be an axis of the output",
                found=self.axis,
                allowed=f"0 to {spec.rank}",
                remedy="Set `axis` to one of these",
                is_mendable=True,
            )
        length = inputs[1] if len(inputs) > 1 else None
        extent = -1 if length is None or length.value is None else int(length.value.reshape(-1)[0])
        return [TensorSpec((*spec.shape[: self.axis], max(extent, -1), *spec.shape[self.axis :]), spec.dtype)]


@define_layer
class ConditionalBoundaryLayer(Layer):
    """A layer at the boundary of a conditional; TensorRT's `IIfConditionalBoundaryLayer`.

    Attributes:
        conditional: the conditional that added the layer.
    """

    has_fixed_types = True

    conditional: Any = attrs.field(default=None)


@boundary_layer("condition")
class ConditionLayer(ConditionalBoundaryLayer):
    """The condition of a conditional. It has no output.

    Source: TensorRT `IConditionLayer`.
    """

    @property
    def output_count(self) -> int:
        """Number of outputs: 0."""
        return 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Check the type of the condition."""
        check_condition(self, self.required(inputs, 0), "The condition of a conditional")
        return []


@boundary_layer("conditional_input")
class IfConditionalInputLayer(ConditionalBoundaryLayer):
    """A tensor from outside, for the branches of a conditional.

    Source: TensorRT `IIfConditionalInputLayer`.
    """

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape and type of the input."""
        spec = self.required(inputs, 0)
        return [TensorSpec(spec.shape, spec.dtype)]


@boundary_layer("conditional_output")
class IfConditionalOutputLayer(ConditionalBoundaryLayer):
    """A result of a conditional: input 0 if the condition is true, otherwise input 1.

    Source: TensorRT `IIfConditionalOutputLayer`.
    """

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return what the inputs have in common; extents in which they differ are -1."""
        one, other = self.required(inputs, 0), self.required(inputs, 1)
        if (one.rank, one.dtype) != (other.rank, other.dtype):
            raise self.problem(
                "Both branches must give the same rank and type",
                found=f"{one.dtype.text} {one.shape} and {other.dtype.text} {other.shape}",
                remedy="Reshape or cast one of them inside its branch",
            )
        return [in_common(one, other)]


BOUNDARY_KINDS = frozenset(
    cls.kind
    for cls in (
        *(TripLimitLayer, RecurrenceLayer, IteratorLayer, LoopOutputLayer),
        *(ConditionLayer, IfConditionalInputLayer, IfConditionalOutputLayer),
    )
)
