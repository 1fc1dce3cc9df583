"""Small whole powers as products."""

from __future__ import annotations

from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph
from dryfit.onnx.editing.parts import is_floating, one_value


@edit(
    "power-products",
    title="squares, cubes and fourth powers as products",
    cures=[
        "elementwise.pow_operands",
        "elementwise.operation",
        "elementwise.operation_xavier",
        "elementwise.operation_8_6_11",
    ],
    changes="Pow with the constant exponent 2, 3 or 4 becomes one or two Mul",
    source="x^2 = x * x, x^3 = x^2 * x, x^4 = x^2 * x^2",
)
def power_products(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type != "Pow" or not is_floating(graph, node.input[0]):
        return False
    x, exponent = node.input[0], one_value(graph.constant(node.input[1]))
    if exponent not in (2, 3, 4) or graph.shape(x) != graph.shape(node.output[0]):
        return False
    name = node.name or "power"
    square = graph.new_node("Mul", [x, x], name=f"{name}_square")
    if exponent == 2:
        square.output[0] = node.output[0]
        graph.replace(node, [square])
        return True
    factors = [square.output[0], x if exponent == 3 else square.output[0]]
    last = graph.new_node("Mul", factors, name=f"{name}_product", output=node.output[0])
    graph.replace(node, [square, last])
    return True
