"""A concatenation of one tensor, removed."""

from __future__ import annotations

from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph


@edit(
    "concatenation-single",
    title="concatenation of one tensor removed",
    cures=["concatenation.inputs"],
    changes="Concat of one input goes; what used its output uses the input. Outputs of the model are left alone",
    source="it is its input",
)
def concatenation_single(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Concat" or len(node.input) != 1 or graph.is_output(node.output[0]):
        return False
    graph.replace(node, [])
    graph.redirect(node.output[0], node.input[0])
    return True
