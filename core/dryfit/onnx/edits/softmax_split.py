"""A softmax over a long axis as one softmax a position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import slice_node

SHORTEST_AXIS = 1025
LONGEST_AXIS = 8192
"""Below, the DLA's optimized mode takes all positions at once; above, its accurate mode takes none. Source: TensorRT
developer guide, Working with DLA: Layer Support and Restrictions: Softmax layer."""
MOST_POSITIONS = 16
"""Our choice: a position costs two layers, a slice and a softmax; with what joins them, one becomes at most 43."""


@edit(
    "softmax-split",
    title="softmax over a long axis as one softmax a position",
    cures=["softmax.optimized_axis", "softmax.accurate_8_4"],
    changes="Softmax of rank 4 over 1025 to 8192 elements of C, H or W at 2 to 16 positions of the other two becomes a "
    "Slice and a Softmax for each position, joined along C, with transposes where the order needs them. All extents "
    "but the batch have to be known",
    source="positions of a softmax do not depend on each other; the DLA's accurate mode takes 8192 elements at one",
)
def softmax_split(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Softmax":
        return False
    extents = graph.shape_behind_batch(node.input[0], rank=4)
    axis = None if extents is None else _axis(graph, node, (0, *extents))
    if extents is None or axis is None or not SHORTEST_AXIS <= extents[axis - 1] <= LONGEST_AXIS:
        return False
    shape = (0, *extents)
    first, second = sorted({1, 2, 3} - {axis}, key=lambda other: -shape[other])
    if not 1 < shape[first] * shape[second] <= MOST_POSITIONS:
        return False
    _split(graph, node, shape, (first, second, axis))
    return True


def _split(graph: ModelGraph, node: NodeProto, shape: tuple[int, ...], axes: tuple[int, int, int]) -> None:
    """Rewrite: slices [N, 1, 1, axis], joined along C to [N, first, 1, axis], and those to [N, second, first, axis].

    No reshape is made: beside a concatenation, the DLA's software before 10 takes none.
    """
    first, second, axis = axes
    name, x, taken = node.name or "softmax", node.input[0], (first, second)
    new: list[NodeProto] = []

    def add(operator: str, inputs: Sequence[str], part: str, **attributes: Any) -> str:
        new.append(graph.new_node(operator, inputs, name=f"{name}_{part}", **attributes))
        output: str = new[-1].output[0]
        return output

    if axis != 3:
        x, taken = add("Transpose", [x], "turned", perm=[0, first, second, axis]), (1, 2)
    rows = []
    for row in range(shape[second]):
        parts = []
        for column in range(shape[first]):
            new.append(_slice(graph, x, taken, (column, row), (shape[first], shape[second]), name))
            # Along the last axis the softmax up to opset 12 means the same.
            parts.append(add("Softmax", [new[-1].output[0]], "part", axis=3))
        rows.append(add("Concat", parts, "row", axis=1))
    order = [0, first, second, axis]
    if len(rows) > 1:
        rows = [add("Transpose", [row], "row_turned", perm=[0, 2, 1, 3]) for row in rows]
        add("Concat", rows, "joined", axis=1)
        order = [0, second, first, axis]
    if order != [0, 1, 2, 3]:
        add("Transpose", [new[-1].output[0]], "back", perm=[order.index(one) for one in range(4)])
    new[-1].output[0] = node.output[0]
    graph.replace(node, new)


def _axis(graph: ModelGraph, node: NodeProto, shape: tuple[int, ...]) -> int | None:
    """The only axis that a softmax runs over, 1 to 3; None where there is none, or it is the batch.

    Source: ONNX Softmax: up to opset 12 it runs over all axes from its own on, which may all but one have extent 1.
    """
    if graph.opset >= 13:
        return int(attribute(node, "axis", -1)) % 4 or None
    start = int(attribute(node, "axis", 1)) % 4
    long = [axis for axis in range(start, 4) if shape[axis] != 1]
    return long[0] if start and len(long) == 1 else None


def _slice(
    graph: ModelGraph, x: str, axes: tuple[int, int], position: tuple[int, int], extents: tuple[int, int], name: str
) -> NodeProto:
    """One position of `x`; an axis of extent 1 is not mentioned."""
    cuts = [(start, axis) for start, axis, extent in zip(position, axes, extents, strict=True) if extent > 1]
    starts, cut_axes = [start for start, _ in cuts], [axis for _, axis in cuts]
    ends = [start + 1 for start in starts]
    output = graph.fresh_name(f"{name}_position_out")
    return slice_node(graph, x, starts, ends, cut_axes, name=f"{name}_position", output=output)
