"""RNN, GRU and LSTM: one product of the whole sequence with the input weights, then a loop over its steps.

They are written out in ONNX's own operators, and imported as these. A loop over a short sequence is unrolled later.

Source: ONNX operators RNN, GRU and LSTM; where they leave something open, ONNX Runtime: `clip` bounds what goes into
the activations of gates, `activation_alpha` and `activation_beta` are for those activations only that have the
parameter, and steps behind the end of a sequence give zeros and keep the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from dryfit.attrs_classes import define, frozen
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.tensors import NodeInput

_OPSET = 18
"""Of the operators that these are written out in."""
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Value of the attribute to whether each direction begins at the end."""
_ACTIVATIONS = {
    "affine": ("", 1.0, 0.0),
    "elu": ("Elu", 1.0, None),
    "hardsigmoid": ("HardSigmoid", 0.2, 0.5),
    "leakyrelu": ("LeakyRelu", 0.01, None),
    "relu": ("Relu", None, None),
    "scaledtanh": ("", 1.0, 1.0),
    "sigmoid": ("Sigmoid", None, None),
    "softplus": ("Softplus", None, None),
    "softsign": ("Softsign", None, None),
    "tanh": ("Tanh", None, None),
    "thresholdedrelu": ("ThresholdedRelu", 1.0, None),
}
"""Name of an activation in lower case to its operator, if it is one, and the defaults of alpha and beta; None where it
has no such parameter."""


@define(eq=False)
class _Nodes:
    """ONNX nodes that are written one after another. What returns a text returns the name of a value.

    Attributes:
        prefix: begins each name, which no other graph around has.
        nodes: those written up to now.
    """

    prefix: str
    nodes: list[NodeProto]

    def __call__(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        return self.several(1, op_type, *inputs, **attributes)[0]

    def several(self, count: int, op_type: str, *inputs: str, **attributes: Any) -> list[str]:
        """Write a node with several outputs."""
        name = f"{self.prefix}{op_type}_{len(self.nodes)}"
        outputs = [f"{name}.{index}" for index in range(count)]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name, **attributes))
        return outputs

    def number(self, value: float) -> str:
        """Write a number of the type of the sequence."""
        return self("CastLike", self("Constant", value_float=value), "X")

    def integers(self, *values: int) -> str:
        """Write a list of integers."""
        return self("Constant", value_ints=values)

    def joined(self, parts: Sequence[str], axis: int) -> str:
        """Write one value of several, along a new axis."""
        return self("Concat", *(self("Unsqueeze", one, self.integers(axis)) for one in parts), axis=axis)


@frozen
class _Activation:
    """An activation with its parameters; `name` is in lower case."""

    name: str
    alpha: float | None
    beta: float | None

    def of(self, write: _Nodes, value: str) -> str:
        """Write the activation of a value."""
        if self.name == "affine":
            return write("Add", write("Mul", value, write.number(self.alpha or 0.0)), write.number(self.beta or 0.0))
        if self.name == "scaledtanh":
            inner = write("Tanh", write("Mul", value, write.number(self.beta or 0.0)))
            return write("Mul", inner, write.number(self.alpha or 0.0))
        given = {"alpha": self.alpha, "beta": self.beta}
        op_type, *_ = _ACTIVATIONS[self.name]
        return write(op_type, value, **{name: one for name, one in given.items() if one is not None})


@frozen
class _Direction:
    """What the steps of one direction read.

    Attributes:
        activations: in ONNX's order.
        recurrent: transposed weights of the state.
        bias: of the state, where it is not added to the input; "" where it is.
        peepholes: weights of the cell in the gates i, o and f; empty where there are none.
        clip: bound of what goes into the gates' activations; None for none.
    """

    activations: Sequence[_Activation]
    recurrent: str
    bias: str
    peepholes: Sequence[str]
    clip: float | None

    def gate(self, write: _Nodes, which: int, *parts: str) -> str:
        """Write a gate: an activation of a sum."""
        (total, *others) = parts
        for other in others:
            total = write("Add", total, other)
        if self.clip is not None:
            total = write("Clip", total, write.number(-self.clip), write.number(self.clip))
        return self.activations[which].of(write, total)


_Step = Callable[[Node, _Nodes, _Direction, str, Sequence[str]], Sequence[str]]
"""Writes the new states, of which the first is the output, from the input's share in the gates and the states."""


@operator("RNN", since=7)
def rnn(node: Node) -> Sequence[NodeInput]:
    """A product of the sequence, and a loop over its steps."""
    return _Recurrence(node, _rnn_step, gates=1, activations=("Tanh",), num_states=1).outputs()


@operator("GRU", since=7)
def gru(node: Node) -> Sequence[NodeInput]:
    """A product of the sequence, and a loop over its steps."""
    return _Recurrence(node, _gru_step, gates=3, activations=("Sigmoid", "Tanh"), num_states=1).outputs()


@operator("LSTM", since=7)
def lstm(node: Node) -> Sequence[NodeInput]:
    """A product of the sequence, and a loop over its steps."""
    return _Recurrence(node, _lstm_step, gates=4, activations=("Sigmoid", "Tanh", "Tanh"), num_states=2).outputs()


def _rnn_step(node: Node, write: _Nodes, direction: _Direction, x: str, states: Sequence[str]) -> Sequence[str]:
    del node
    return [direction.gate(write, 0, x, write("MatMul", states[0], direction.recurrent))]


def _gru_step(node: Node, write: _Nodes, direction: _Direction, x: str, states: Sequence[str]) -> Sequence[str]:
    (h,), r = states, direction.recurrent
    of_x = write.several(3, "Split", x, axis=-1, num_outputs=3)
    if node.get_int("linear_before_reset", 0):
        product = write("MatMul", h, r)
        biased = write("Add", product, direction.bias) if direction.bias else product
        of_h = write.several(3, "Split", biased, axis=-1, num_outputs=3)
        update, reset = (direction.gate(write, 0, of_x[gate], of_h[gate]) for gate in (0, 1))
        candidate = direction.gate(write, 1, of_x[2], write("Mul", reset, of_h[2]))
    else:
        weights = write.several(3, "Split", r, axis=-1, num_outputs=3)
        update, reset = (direction.gate(write, 0, of_x[gate], write("MatMul", h, weights[gate])) for gate in (0, 1))
        candidate = direction.gate(write, 1, of_x[2], write("MatMul", write("Mul", reset, h), weights[2]))
    kept = write("Mul", update, h)
    return [write("Add", write("Mul", write("Sub", write.number(1.0), update), candidate), kept)]


def _lstm_step(node: Node, write: _Nodes, direction: _Direction, x: str, states: Sequence[str]) -> Sequence[str]:
    h, c = states
    total = write("Add", x, write("MatMul", h, direction.recurrent))
    i, o, f, g = write.several(4, "Split", total, axis=-1, num_outputs=4)

    def seen(gate: int, cell: str) -> list[str]:
        return [write("Mul", direction.peepholes[gate], cell)] if direction.peepholes else []

    taken = direction.gate(write, 0, i, *seen(0, c))
    if node.get_int("input_forget", 0):
        kept = write("Sub", write.number(1.0), taken)
    else:
        kept = direction.gate(write, 0, f, *seen(2, c))
    cell = write("Add", write("Mul", kept, c), write("Mul", taken, direction.gate(write, 1, g)))
    given = direction.gate(write, 0, o, *seen(1, cell))
    return [write("Mul", given, direction.activations[2].of(write, cell)), cell]


class _Recurrence:
    """Writes one node in ONNX's other operators, and imports these.

    Args:
        node: the node.
        step: writes a step of a direction.
        gates: number of gates.
        activations: those of each direction if the node names none.
        num_states: 1, or 2 where there is a cell beside the output.
    """

    def __init__(self, node: Node, step: _Step, *, gates: int, activations: Sequence[str], num_states: int) -> None:
        self._node = node
        self._step = step
        self._is_batch_first = node.get_int("layout", 0) == 1
        self._reversals = _DIRECTIONS[node.choice("direction", "forward", list(_DIRECTIONS))]
        self._size = self._state_size(gates)
        self._activations = list(self._chosen([*activations] * len(self._reversals)))
        names = ("X", "W", "R", "B", "lengths", "h", "c", "P")
        self._given = {name: one for name, one in zip(names, node.inputs, strict=False) if one is not None}
        lengths, steps = self._given.get("lengths"), node[0].shape[int(self._is_batch_first)]
        if lengths is not None and lengths.value is not None and np.all(lengths.value == steps):
            del self._given["lengths"]
        self._write = write = _Nodes("", [])
        self._x = write("Transpose", "X", perm=[1, 0, 2]) if self._is_batch_first else "X"
        self._states = [self._first_states(name) for name in "hc"[:num_states]]
        self._lengths = write("Cast", "lengths", to=TensorProto.INT64) if "lengths" in self._given else ""
        self._alive = self._before_the_end() if self._lengths else ""

    def outputs(self) -> Sequence[NodeInput]:
        """Import the node."""
        write = self._write
        found = [self._direction(index, is_reversed) for index, is_reversed in enumerate(self._reversals)]
        sequences, *last = zip(*found, strict=True)
        outputs = [write.joined(sequences, 1), *(write.joined(one, 0) for one in last)]
        if self._is_batch_first:
            orders = [[2, 0, 1, 3], *[[1, 0, 2]] * len(last)]
            outputs = [write("Transpose", one, perm=order) for one, order in zip(outputs, orders, strict=True)]
        graph = helper.make_graph(write.nodes, "", [], [ValueInfoProto(name=one) for one in outputs])
        return self._node.bodies.inline(graph, self._given, _OPSET)

    def _state_size(self, gates: int) -> int:
        """The number of elements of a state, after the weights' shapes were checked."""
        node, directions = self._node, len(self._reversals)
        w, r = node.static_shape(node[1], "The weights"), node.static_shape(node[2], "The weights")
        size = r[-1] if r else 0
        if len(w) != 3 or r != (directions, gates * size, size) or w[:2] != r[:2]:
            raise node.refusal(
                "The shapes of the weights must match",
                code=ErrorCode.INVALID_NODE,
                found=f"W {w} and R {r}",
                allowed=f"({directions}, {gates} * hidden size, ...), with the hidden size as the last extent of R",
                remedy="Fix the weights, or the attribute `direction`",
            )
        return size

    def _chosen(self, default: Sequence[str]) -> Iterator[_Activation]:
        """The activations of all directions with their parameters."""
        node = self._node
        names = node.get_strings("activations") or default
        alphas, betas = (iter(node.get_floats(f"activation_{which}") or ()) for which in ("alpha", "beta"))
        if len(names) != len(default) or any(name.lower() not in _ACTIVATIONS for name in names):
            raise node.refusal(
                "These activations are not supported",
                code=ErrorCode.UNSUPPORTED_NODE_ATTR,
                found=", ".join(names),
                allowed=f"{len(default)} of {', '.join(_ACTIVATIONS)}",
                remedy="Export the model with supported activations",
            )
        for name in map(str.lower, names):
            _, alpha, beta = _ACTIVATIONS[name]
            yield _Activation(
                name,
                None if alpha is None else next(alphas, alpha),
                None if beta is None else next(betas, beta),
            )

    def _first_states(self, name: str) -> str:
        """Write the states before the first step, for all directions; zeros where none are given."""
        write = self._write
        if name in self._given:
            return write("Transpose", name, perm=[1, 0, 2]) if self._is_batch_first else name
        extents = [write.integers(len(self._reversals)), write("Shape", self._x, start=1, end=2)]
        shape = write("Concat", *extents, write.integers(self._size), axis=0)
        return write("Expand", write.number(0.0), shape)

    def _before_the_end(self) -> str:
        """Write whether each step of each sequence is before its end: BOOL (steps, batch, 1)."""
        write = self._write
        steps = write("Squeeze", write("Shape", self._x, start=0, end=1))
        numbers = write("Range", write("Constant", value_int=0), steps, write("Constant", value_int=1))
        columns = write("Unsqueeze", numbers, write.integers(1, 2))
        return write("Less", columns, write("Unsqueeze", self._lengths, write.integers(0, 2)))

    def _direction(self, index: int, is_reversed: bool) -> Sequence[str]:
        """Write one direction; returns its sequence of outputs (steps, batch, hidden size) and the last states."""
        node, write, given = self._node, self._write, self._given

        def own(name: str) -> str:
            return write("Gather", name, write("Constant", value_int=index), axis=0)

        def turned(sequence: str) -> str:
            """Write a sequence from its own end on, where it has one and the direction begins there."""
            if not (is_reversed and self._lengths):
                return sequence
            return write("ReverseSequence", sequence, self._lengths, batch_axis=1, time_axis=0)

        share = write("MatMul", turned(self._x), write("Transpose", own("W"), perm=[1, 0]))
        biases = write.several(2, "Split", own("B"), axis=0, num_outputs=2) if "B" in given else []
        is_bias_apart = bool(biases) and node.get_int("linear_before_reset", 0) != 0
        for bias in biases[:1] if is_bias_apart else biases:
            share = write("Add", share, bias)
        count = len(self._activations) // len(self._reversals)
        direction = _Direction(
            activations=self._activations[index * count : (index + 1) * count],
            recurrent=write("Transpose", own("R"), perm=[1, 0]),
            bias=biases[1] if is_bias_apart else "",
            peepholes=write.several(3, "Split", own("P"), axis=0, num_outputs=3) if "P" in given else (),
            clip=node.get_float("clip", 0.0) if node.has("clip") else None,
        )
        scanned = [share, *([self._alive] if self._alive else [])]
        order = [int(is_reversed and not self._lengths)]
        *last, sequence = write.several(
            len(self._states) + 1,
            "Scan",
            *map(own, self._states),
            *scanned,
            body=self._step_graph(direction),
            num_scan_inputs=len(scanned),
            scan_input_directions=order * len(scanned),
            scan_output_directions=order,
        )
        return [turned(sequence), *last]

    def _step_graph(self, direction: _Direction) -> GraphProto:
        """The body of the loop: states and the input's share in the gates to new states and the output."""
        write, states = _Nodes("step.", []), [f"state_{number}" for number in range(len(self._states))]
        new = list(self._step(self._node, write, direction, "share", states))
        output, scanned = new[0], ["share"]
        if self._alive:
            output = write("Where", "is_alive", output, write.number(0.0))
            new = [write("Where", "is_alive", one, old) for one, old in zip(new, states, strict=True)]
            scanned.append("is_alive")
        inputs = [ValueInfoProto(name=one) for one in (*states, *scanned)]
        outputs = [ValueInfoProto(name=one) for one in (*new, write("Identity", output))]
        return helper.make_graph(write.nodes, "step", inputs, outputs)
