"""Loops and conditionals under construction: the objects that add boundary layers to a network."""

from __future__ import annotations

from dryfit.errors import NetworkError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.layer import LayerOwner
from dryfit.network.layers.boundaries import (
    ConditionLayer,
    IfConditionalInputLayer,
    IfConditionalOutputLayer,
    IteratorLayer,
    LoopOutput,
    LoopOutputLayer,
    RecurrenceLayer,
    TripLimit,
    TripLimitLayer,
)
from dryfit.network.tensor import Tensor


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
