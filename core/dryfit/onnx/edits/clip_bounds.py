"""Bounds as a ReLU or as a clip from 0 to a bound between 1 and 127."""

from __future__ import annotations

import math

from onnx import NodeProto

from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import clip_node, is_floating, one_value, scale_node

LEAST_BOUND, LARGEST_BOUND = 1.0, 127.0
_NO_BOUND = 3.4e38


@edit(
    "clip-bounds",
    title="bounds as ReLU or ReLU6-like clips",
    cures=[
        "activation.clip_lower",
        "activation.clip_upper",
        "elementwise.broadcast",
        "elementwise.rank",
        "elementwise.operation",
    ],
    changes="Max(x, 0) and Clip from 0 become Relu; Min and Max that bound x by 0 and a constant become one Clip; a "
    "Clip with other bounds becomes a Clip from 0 to at most 127 (a Relu where it has one bound), between batch "
    "normalizations that move the bounds there and back: those have to know the number of channels",
    source="clip(x, a, b) = clip(x - a, 0, b - a) + a, and the same for a factor that is a power of two; TensorRT 10 "
    "developer guide, Working with DLA: the clipped ReLU's bound is 1 to 127",
)
def clip_bounds(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type in ("Min", "Max"):
        return _from_extremes(graph, node)
    bounds = clip_range(graph, node)
    if bounds is None or not is_floating(graph, node.input[0]):
        return False
    lower, upper = bounds
    x, name, output = node.input[0], node.name or "clip", node.output[0]
    if lower == 0 and upper == math.inf:
        graph.replace(node, [graph.new_node("Relu", [x], name=name, output=output)])
        return True
    if lower == 0 and LEAST_BOUND <= upper <= LARGEST_BOUND:
        return False
    if lower >= upper or graph.shape_behind_batch(x, rank=4) is None or (lower, upper) == (-math.inf, math.inf):
        return False
    origin = upper if lower == -math.inf else lower
    factor = -1.0 if lower == -math.inf else 1.0
    if math.isfinite(upper - lower):
        factor = _power_of_two(upper - lower)
    new = [scale_node(graph, x, factor, -origin * factor, name=f"{name}_moved")]
    if math.isfinite(upper - lower):
        new.append(clip_node(graph, new[0].output[0], (upper - lower) * factor, name=name, like=x))
    else:
        new.append(graph.new_node("Relu", [new[0].output[0]], name=name))
    # The value behind the clip is not in the graph yet; it has the shape and type of the input.
    back = scale_node(graph, x, 1 / factor, origin, name=f"{name}_back", output=output)
    back.input[0] = new[-1].output[0]
    graph.replace(node, [*new, back])
    return True


def clip_range(graph: ModelGraph, node: NodeProto) -> tuple[float, float] | None:
    """The bounds of a Clip, infinite where it has none; None where they are computed, or for other nodes."""
    if node.op_type != "Clip":
        return None
    bounds = [-math.inf, math.inf]
    for index, name in enumerate(("min", "max")):
        if graph.opset < 11:
            bounds[index] = attribute(node, name, bounds[index])
        elif len(node.input) > index + 1 and node.input[index + 1]:
            value = one_value(graph.constant(node.input[index + 1]))
            if value is None:
                return None
            bounds[index] = value
    # The largest finite number stands for no bound, as exporters write it.
    lower, upper = (math.copysign(math.inf, one) if abs(one) > _NO_BOUND else one for one in bounds)
    return lower, upper


def _power_of_two(width: float) -> float:
    """A factor that brings a width into the bounds, 1 where it is there already."""
    if width < LEAST_BOUND:
        return 2.0 ** math.ceil(math.log2(LEAST_BOUND / width))
    return 2.0 ** -max(0, math.ceil(math.log2(width / LARGEST_BOUND)))


def _from_extremes(graph: ModelGraph, node: NodeProto) -> bool:
    """Max(x, 0), Min(Relu(x), c), Min(Max(x, 0), c), Max(Min(x, c), 0)."""
    found = _bounded(graph, node)
    if found is None or not is_floating(graph, node.output[0]):
        return False
    x, bound = found
    name, output = node.name or "clip", node.output[0]
    inner = graph.producer(x)
    inner_found = None if inner is None or not graph.has_one_use(x) else _bounded(graph, inner)
    if inner is not None and inner_found is not None and _are_both_bounds(node, bound, inner, inner_found[1]):
        graph.replace(node, [clip_node(graph, inner_found[0], bound, name=name, like=x, output=output)])
        return True
    if node.op_type != "Max" or bound != 0:
        return False
    if inner is not None and inner.op_type == "Min" and inner_found is not None and inner_found[1] > 0:
        new = clip_node(graph, inner_found[0], inner_found[1], name=name, like=x, output=output)
    else:
        new = graph.new_node("Relu", [x], name=name, output=output)
    graph.replace(node, [new])
    return True


def _are_both_bounds(node: NodeProto, bound: float, inner: NodeProto, inner_bound: float) -> bool:
    """Whether a node bounds from above what is bounded by 0 from below."""
    return node.op_type == "Min" and bound > 0 and inner.op_type in ("Relu", "Max") and inner_bound == 0


def _bounded(graph: ModelGraph, node: NodeProto) -> tuple[str, float] | None:
    """(what is bounded, the bound) of a Relu, or of a Min or Max with a constant that does not widen its shape."""
    if node.op_type == "Relu":
        return node.input[0], 0.0
    if node.op_type not in ("Min", "Max") or len(node.input) != 2:
        return None
    bounds = [one_value(graph.constant(name)) for name in node.input]
    for index, bound in enumerate(bounds):
        x = node.input[1 - index]
        if bound is not None and bounds[1 - index] is None and graph.shape(x) == graph.shape(node.output[0]):
            return x, bound
    return None
