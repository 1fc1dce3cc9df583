"""Nodes that give the values of their first input in another order or shape, and nothing else."""

from __future__ import annotations

from onnx import NodeProto

from dryfit.onnx.editing.model_graph import ModelGraph

MOVING_OPERATORS = frozenset({"Identity", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "Dropout"})
"""Their data is input 0. Dropout moves everything when it is not training, which devices do not."""


def carried_value(graph: ModelGraph, node: NodeProto, origin: str) -> str | None:
    """The input by which a node reads a value, or what was only moved of it; None where it reads neither."""
    for value in node.input:
        current = value
        while current:
            if current == origin:
                return str(value)
            producer = graph.producer(current)
            if producer is None or producer.op_type not in MOVING_OPERATORS:
                break
            current = producer.input[0]
    return None
