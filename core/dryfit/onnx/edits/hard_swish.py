"""Hard sigmoid and hard swish from a scale, a clip and a product."""

from __future__ import annotations

from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import clip_node, is_floating, scale_node


@edit(
    "hard-swish",
    title="hard sigmoid and hard swish as scale, clip and product",
    cures=["activation.type"],
    changes="HardSigmoid becomes a batch normalization and a Clip from 0 to 1; HardSwish the same, times its input. "
    "The input has rank 4 and a known number of channels",
    source="ONNX HardSigmoid: max(0, min(1, alpha * x + beta)); HardSwish: x * HardSigmoid(x; 1/6, 0.5)",
)
def hard_swish(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    x = node.input[0] if node.input else ""
    if node.op_type not in ("HardSigmoid", "HardSwish") or not is_floating(graph, x):
        return False
    if graph.shape_behind_batch(x, rank=4) is None:
        return False
    name, is_swish = node.name or node.op_type, node.op_type == "HardSwish"
    alpha = 1 / 6 if is_swish else attribute(node, "alpha", 0.2)
    beta = 0.5 if is_swish else attribute(node, "beta", 0.5)
    new = [scale_node(graph, x, alpha, beta, name=f"{name}_scale")]
    output = None if is_swish else node.output[0]
    new.append(clip_node(graph, new[0].output[0], 1.0, name=f"{name}_clip", like=x, output=output))
    if is_swish:
        new.append(graph.new_node("Mul", [x, new[1].output[0]], name=f"{name}_product", output=node.output[0]))
    graph.replace(node, new)
    return True
