"""If, Loop and Scan: their subgraphs become the bodies of conditional and loop layers.

An If whose condition is known is replaced by the nodes of its branch. Source: ONNX operators; where ONNX
Runtime differs, ONNX Runtime: a Loop without a condition input still ends when its body says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from onnx import GraphProto

from dryfit.network.data_types import DataType
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.layers.generators import ShapeLayer
from dryfit.network.layers.movement import Identity
from dryfit.network.layers.slice import Shuffle, Slice
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.onnx.bodies import ImportedBody
from dryfit.onnx.composition import positive_axis
from dryfit.onnx.graph_borders import remove_unused_layers
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import reshape
from dryfit.onnx.tensors import NodeInput

_TRUE = TensorSpec.of(np.array(True))
_COUNT = TensorSpec((), DataType.INT64)


@operator("If")
def conditional(node: Node) -> Sequence[NodeInput]:
    """A conditional layer; the nodes of the branch where the condition is known."""
    condition = node[0]
    branches = [node.get_graph("then_branch"), node.get_graph("else_branch")]
    if condition.value is not None:
        return node.bodies.inline(branches[0 if condition.value.reshape(-1)[0] else 1])
    ours, theirs = (node.bodies.body(graph, []) for graph in branches)
    for index, (one, other) in enumerate(zip(ours.specs, theirs.specs, strict=False)):
        if (one.rank, one.dtype) != (other.rank, other.dtype):
            raise node.refusal(
                f"Output {index} must have the same rank and type in both branches",
                code=ErrorCode.UNSUPPORTED_NODE,
                found=f"{one.dtype.text} {one.shape} and {other.dtype.text} {other.shape}, as the condition "
                f"{condition.name!r} is computed at run time",
                remedy="Make the inputs that decide it static, such as with --shape, or reshape one output",
                needs_constants=[condition.name],
            )
    captured = list({id(operand): operand for operand in (*ours.captured, *theirs.captured)}.values())
    ours.capture_also(captured)
    theirs.capture_also(captured)
    layer = ConditionalLayer(then_body=ours.network, else_body=theirs.network)
    return node.add_all(layer, condition, *captured, fold=False)


@operator("Loop")
def loop(node: Node) -> Sequence[NodeInput]:
    """A loop layer. The condition is one more state, unless it is always true."""
    graph = node.get_graph("body")
    limit, condition, states = node.input(0), node.input(1), _connected(node, node.inputs[2:])
    _require_inputs(node, graph, 2 + len(states))
    number = _of_stated_rank(_COUNT, graph, 0)
    if condition is None or (condition.value is not None and condition.value.all()):
        body = _settled(node, graph, [number, _TRUE], states)
        if body.outputs[0].value is not None and body.outputs[0].value.all():
            body.network.unmark_output(body.network.outputs[0])
            remove_unused_layers(body.network, 0)
            return _loop_layer(node, body, limit, states, is_while=False)
    given = node.array(True) if condition is None else reshape(node, condition, ())
    flag = _of_stated_rank(TensorSpec((), DataType.BOOL), graph, 1)
    body = _settled(node, graph, [number, flag], states)
    _put_condition_first(body.network)
    first = given if not flag.rank else reshape(node, given, (1,))
    return _loop_layer(node, body, limit, [first, *states], is_while=True)[1:]


def _loop_layer(
    node: Node, body: ImportedBody, limit: NodeInput | None, states: Sequence[NodeInput], *, is_while: bool
) -> list[NodeInput]:
    if limit is None and not is_while:
        raise node.refusal(
            "The loop never ends: it has neither a trip count nor a condition that can be false",
            code=ErrorCode.INVALID_NODE,
            remedy="Connect the trip count",
        )
    count = len(body.network.outputs) - int(is_while) - len(states)
    layer = LoopLayer(
        body=body.network,
        num_states=len(states),
        is_while=is_while,
        output_axes=(0,) * count,
        output_reverse=(False,) * count,
    )
    return node.add_all(layer, limit, *states, *[None] * count, *body.captured, fold=False)


def _put_condition_first(network: Network) -> None:
    """Make the condition that an iteration begins with, the state after its number, the first output.

    The condition of the next iteration, which comes then, gets the same shape.
    """
    condition, following = network.inputs[1], network.outputs[0]
    if following is condition:  # it is passed on as it is, and an output only once
        copied = network.add_layer(Identity(), [condition]).outputs[0]
    elif following.shape != condition.shape:
        copied = network.add_layer(Shuffle(reshape_dims=condition.shape), [following]).outputs[0]
    else:
        copied = following
    network.outputs = [condition, copied, *network.outputs[1:]]


def _settled(
    node: Node,
    graph: GraphProto,
    first: Sequence[TensorSpec],
    states: Sequence[NodeInput],
    scanned: Sequence[TensorSpec] = (),
) -> ImportedBody:
    """The body for shapes of the states that hold in every iteration.

    It is imported for the shapes of the first iteration. If a state has another shape after it, the extents that differ
    are dynamic, and it is imported once more.

    Args:
        node: the loop or scan.
        graph: its body.
        first: specs of the number and the condition of a loop, the latter of which the body returns first.
        states: initial states.
        scanned: specs of slices.
    """
    specs = [TensorSpec(state.spec.shape, state.spec.dtype) for state in states]
    begin = max(len(first) - 1, 0)
    is_first = True
    while True:
        body = node.bodies.body(graph, [*first, *specs, *scanned])
        found = body.specs[begin : begin + len(specs)]
        for index, (old, new) in enumerate(zip(specs, found, strict=False)):
            if (old.rank, old.dtype) != (new.rank, new.dtype):
                raise node.refusal(
                    "A state must have the same rank and type in every iteration",
                    found=f"{states[index].name!r}: {old.dtype.text} {old.shape}, then {new.dtype.text} {new.shape}",
                    remedy="Reshape or cast it at the end of the body",
                )
        merged = [
            TensorSpec(tuple(a if a == b else -1 for a, b in zip(old.shape, new.shape, strict=True)), old.dtype)
            for old, new in zip(specs, found, strict=False)
        ]
        if len(found) != len(specs):
            raise node.refusal(
                "The body must have an output for each state",
                code=ErrorCode.INVALID_NODE,
                found=f"{len(body.specs)} outputs for {len(specs)} states",
                remedy="Fix the body",
            )
        if merged == specs:
            return body
        specs = [
            TensorSpec((-1,) * new.rank, new.dtype) if not is_first and old != new else new
            for old, new in zip(specs, merged, strict=True)
        ]
        is_first = False


def _connected(node: Node, operands: Sequence[NodeInput | None]) -> list[NodeInput]:
    states = [operand for operand in operands if operand is not None]
    if len(states) != len(operands):
        raise node.refusal(
            "States and scanned inputs must be connected", code=ErrorCode.INVALID_NODE, remedy="Connect the input"
        )
    return states


def _require_inputs(node: Node, graph: GraphProto, count: int) -> None:
    if len(graph.input) != count:
        raise node.refusal(
            "The inputs of the body must match those of the node",
            code=ErrorCode.INVALID_NODE,
            found=f"{len(graph.input)} inputs",
            allowed=count,
            remedy="Fix the body",
        )


def _of_stated_rank(spec: TensorSpec, graph: GraphProto, index: int) -> TensorSpec:
    """A number, as a vector of one element where the body states it so."""
    kind = graph.input[index].type.tensor_type
    return attrs.evolve(spec, shape=(1,)) if kind.HasField("shape") and len(kind.shape.dim) == 1 else spec


# Scan -----------------------------------------------------------------------------------------------------------------


@operator("Scan", since=9)
def scan(node: Node) -> Sequence[NodeInput]:
    """A loop layer that runs once for each slice."""
    graph, states, scanned = _scan_parts(node, node.inputs)
    axes = node.get_ints("scan_input_axes") or (0,) * len(scanned)
    axes = tuple(positive_axis(node, axis, one.rank) for axis, one in zip(axes, scanned, strict=True))
    slices = [TensorSpec(_without(one.shape, axis), one.dtype) for axis, one in zip(axes, scanned, strict=True)]
    body = _settled(node, graph, [], states, slices)
    outputs = body.specs[len(states) :]
    output_axes = node.get_ints("scan_output_axes") or (0,) * len(outputs)
    layer = LoopLayer(
        body=_with_number(body),
        num_states=len(states),
        input_axes=axes,
        input_reverse=_directions(node, "scan_input_directions", len(scanned)),
        output_axes=tuple(positive_axis(node, a, spec.rank + 1) for a, spec in zip(output_axes, outputs, strict=True)),
        output_reverse=_directions(node, "scan_output_directions", len(outputs)),
    )
    return node.add_all(layer, None, *states, *scanned, *[None] * len(outputs), *body.captured, fold=False)


@operator("Scan", since=8)
def scan_of_batches(node: Node) -> Sequence[NodeInput]:
    """A loop over the batch, whose body is the loop over the sequence; sequences may have lengths of their own."""
    lengths = node.input(0)
    graph, states, scanned = _scan_parts(node, node.inputs[1:])
    rows = [NodeInput(one.name, TensorSpec(one.shape[1:], one.dtype)) for one in states]
    slices = [TensorSpec(one.shape[2:], one.dtype) for one in scanned]
    body = _settled(node, graph, [], rows, slices)
    count = len(body.specs) - len(states)
    inner = LoopLayer(
        name=f"{node.name}/sequence",
        onnx_nodes=(node.name,),
        body=_with_number(body),
        num_states=len(states),
        input_axes=(0,) * len(scanned),
        input_reverse=_directions(node, "directions", len(scanned)),
        output_axes=(0,) * count,
        output_reverse=(False,) * count,
    )
    batch = Network(f"{node.name}/batch")
    batch.add_input("batch", DataType.INT64, ())
    given = [TensorSpec(one.shape[1:], one.dtype) for one in (*states, *scanned)]
    inputs = [batch.add_input(batch.free_tensor_name("x"), spec.dtype, spec.shape) for spec in given]
    limit = None if lengths is None else batch.add_input("length", lengths.dtype, ())
    captured = [batch.add_input(batch.free_tensor_name(one.name), one.dtype, one.shape) for one in body.captured]
    extents: list[Tensor | None] = [None] * count
    if limit is not None and count:
        extents = [_extent(batch, inputs[len(states)])] * count
    batch.add_layer(inner, [limit, *inputs, *extents, *captured])
    for output in inner.outputs:
        batch.mark_output(output)
    sources = [*states, *scanned, *([] if lengths is None else [lengths])]
    layer = LoopLayer(
        body=batch,
        input_axes=(0,) * len(sources),
        input_reverse=(False,) * len(sources),
        output_axes=(0,) * len(inner.outputs),
        output_reverse=(False,) * len(inner.outputs),
    )
    return node.add_all(layer, None, *sources, *[None] * len(inner.outputs), *body.captured, fold=False)


def _extent(network: Network, sequence: Tensor) -> Tensor:
    """The number of slices of a sequence, as a tensor of one element."""
    shape = network.add_layer(ShapeLayer(), [sequence]).outputs[0]
    return network.add_layer(Slice(start=(0,), shape=(1,), stride=(1,)), [shape]).outputs[0]


def _scan_parts(
    node: Node, operands: Sequence[NodeInput | None]
) -> tuple[GraphProto, Sequence[NodeInput], Sequence[NodeInput]]:
    graph, given = node.get_graph("body"), _connected(node, operands)
    _require_inputs(node, graph, len(given))
    count = node.get_int("num_scan_inputs", 0)
    if not 0 < count <= len(given):
        raise node.refusal(
            "`num_scan_inputs` must be between 1 and the number of inputs",
            code=ErrorCode.INVALID_NODE,
            found=count,
            allowed=f"1 to {len(given)}",
            remedy="Fix the attribute",
        )
    return graph, given[: len(given) - count], given[len(given) - count :]


def _with_number(body: ImportedBody) -> Network:
    body.add_first_input("iteration", DataType.INT64)
    return body.network


def _directions(node: Node, name: str, count: int) -> tuple[bool, ...]:
    """Whether each scanned tensor is read, or written, from its end."""
    directions = node.get_ints(name) or (0,) * count
    if len(directions) != count or any(one not in (0, 1) for one in directions):
        raise node.refusal(
            f"`{name}` must have one direction, 0 or 1, for each scanned tensor",
            code=ErrorCode.INVALID_NODE,
            found=directions,
            allowed=f"{count} directions",
            remedy="Fix the attribute",
        )
    return tuple(bool(one) for one in directions)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
