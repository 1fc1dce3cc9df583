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

from dryfit.errors import NetworkError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, LayerT, define_layer
from dryfit.network.layers.control_flow import check_condition, in_common, may_be_single
from dryfit.network.tensor import Tensor, TensorSpec


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
                remedy="Set `axis`",
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
                remedy="Set `axis`",
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


class Loop(KnownAttributes):
    """A loop of a network; TensorRT's `ILoop`.

    Attributes:
        name: name of the layer that runs the loop; "" for the name of its first output layer.

    Example:
        >>> network = Network("example")
        >>> x = network.add_input("x", DataType.FLOAT, (2,))
        >>> count = network.add_constant((), np.array(3, np.int32)).get_output(0)
        >>> loop = network.add_loop()
        >>> limit = loop.add_trip_limit(count, TripLimit.COUNT)
        >>> state = loop.add_recurrence(x)
        >>> doubled = network.add_elementwise(state.get_output(0), state.get_output(0), ElementWiseOperation.SUM)
        >>> state.set_input(1, doubled.get_output(0))
        >>> network.mark_output(loop.add_loop_output(state.get_output(0), LoopOutput.LAST_VALUE).get_output(0))
    """

    name: str

    def __init__(self, network: LayerOwner) -> None:
        self.name = ""
        self._network = network
        self._limits: set[TripLimit] = set()

    def __repr__(self) -> str:
        return f"<Loop {self.name!r}>"

    def add_recurrence(self, initial_value: Tensor) -> RecurrenceLayer:
        """Add a value that iterations pass on; TensorRT's `add_recurrence`. Connect input 1 to the next value."""
        return self._network.add_layer(RecurrenceLayer(loop=self), [initial_value])

    def add_trip_limit(self, tensor: Tensor, kind: TripLimit) -> TripLimitLayer:
        """Add what ends the loop; TensorRT's `add_trip_limit`.

        Raises:
            NetworkError: The loop has a limit of this kind, or the tensor is not one integer or truth value.
        """
        if kind in self._limits:
            raise NetworkError(
                "A loop must have at most one trip limit of each kind",
                where=f"loop {self.name!r}",
                found=f"a second TripLimit.{kind.name}",
                remedy="Combine both limits to one tensor",
            )
        layer = self._network.add_layer(TripLimitLayer(loop=self, limit_kind=kind), [tensor])
        self._limits.add(kind)
        return layer

    def add_iterator(self, tensor: Tensor, axis: int = 0, reverse: bool = False) -> IteratorLayer:
        """Add a tensor that the loop reads slice by slice; TensorRT's `add_iterator`."""
        layer = IteratorLayer(loop=self, axis=axis, reverse=reverse)
        return self._network.add_layer(layer, [tensor], is_finished=False)

    def add_loop_output(self, tensor: Tensor, kind: LoopOutput, axis: int = 0) -> LoopOutputLayer:
        """Add a result of the loop; TensorRT's `add_loop_output`. Connect input 1 of a concatenation to its length."""
        layer = LoopOutputLayer(loop=self, output_kind=kind, axis=axis)
        return self._network.add_layer(layer, [tensor], is_finished=False)


class IfConditional(KnownAttributes):
    """A conditional of a network; TensorRT's `IIfConditional`.

    Attributes:
        name: name of the layer that runs the branches; "" for the name of its first output layer.

    Example:
        >>> network = Network("example")
        >>> flag = network.add_input("flag", DataType.BOOL, ())
        >>> x = network.add_input("x", DataType.FLOAT, (2,))
        >>> conditional = network.add_if_conditional()
        >>> condition = conditional.set_condition(flag)
        >>> inside = conditional.add_input(x).get_output(0)
        >>> negated = network.add_unary(inside, UnaryOperation.NEG).get_output(0)
        >>> network.mark_output(conditional.add_output(inside, negated).get_output(0))
    """

    name: str

    def __init__(self, network: LayerOwner) -> None:
        self.name = ""
        self._network = network
        self._has_condition = False

    def __repr__(self) -> str:
        return f"<IfConditional {self.name!r}>"

    def set_condition(self, condition: Tensor) -> ConditionLayer:
        """Add the condition; TensorRT's `set_condition`.

        Raises:
            NetworkError: The conditional has a condition, or the tensor is not one truth value.
        """
        if self._has_condition:
            raise NetworkError(
                "A conditional must have one condition",
                where=f"conditional {self.name!r}",
                remedy="Combine both conditions with `add_elementwise`",
            )
        layer = self._network.add_layer(ConditionLayer(conditional=self), [condition])
        self._has_condition = True
        return layer

    def add_input(self, input: Tensor) -> IfConditionalInputLayer:
        """Add a tensor that branches read; TensorRT's `add_input`."""
        return self._network.add_layer(IfConditionalInputLayer(conditional=self), [input])

    def add_output(self, true_subgraph_output: Tensor, false_subgraph_output: Tensor) -> IfConditionalOutputLayer:
        """Add a result: one tensor of each branch; TensorRT's `add_output`.

        Raises:
            NetworkError: The tensors have different ranks or types.
        """
        layer = IfConditionalOutputLayer(conditional=self)
        return self._network.add_layer(layer, [true_subgraph_output, false_subgraph_output])


class AddControlFlow:
    """The builder methods of loops and conditionals."""

    def add_loop(self: LayerOwner) -> Loop:
        """Add a loop; TensorRT's `add_loop`. The returned object adds its boundary layers."""
        return Loop(self)

    def add_if_conditional(self: LayerOwner) -> IfConditional:
        """Add a conditional; TensorRT's `add_if_conditional`. The returned object adds its boundary layers."""
        return IfConditional(self)
