"""Arithmetic element by element, written as scales, clips and products."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto

from dryfit.network.tensor import Array
from dryfit.onnx.editing.edit import edit
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import clip_node, is_floating, one_value, scale_node


@edit(
    "constant-scale",
    title="arithmetic with constants as a scale",
    cures=[
        "elementwise.broadcast",
        "elementwise.operation",
        "elementwise.operation_xavier",
        "elementwise.operation_8_6_11",
        "elementwise.div_types",
        "elementwise.div_constant",
        "unary.operation",
        "unary.operation_xavier",
        "unary.operation_8_6_11",
    ],
    changes="Add, Sub, Mul and Div of a tensor of rank 4 and a constant with one value, or one per channel, and Neg, "
    "become a batch normalization, which is a scale layer. A division becomes a product with the reciprocal",
    source="NVIDIA Deep-Learning-Accelerator-SW, operators: Neg = Mul(-1); TensorRT's scale layer: x * scale + shift",
)
def constant_scale(graph: ModelGraph, node: NodeProto) -> bool:
    """See `changes`."""
    if node.op_type not in ("Add", "Sub", "Mul", "Div", "Neg") or not is_floating(graph, node.output[0]):
        return False
    extents = graph.shape_behind_batch(node.output[0], rank=4)
    constants = [graph.constant(name) for name in node.input]
    index = next((i for i, values in enumerate(constants) if values is None), None)
    if extents is None or index is None or graph.shape(node.input[index]) != graph.shape(node.output[0]):
        return False
    scale, shift = np.ones(1), np.zeros(1)
    if node.op_type == "Neg":
        scale = -scale
    else:
        values = _by_channel(constants[1 - index], extents[0])
        if values is None or (node.op_type == "Div" and (index or not values.all())):
            return False
        if node.op_type in ("Add", "Sub"):
            scale = -scale if node.op_type == "Sub" and index else scale
            shift = -values if node.op_type == "Sub" and not index else values
        else:
            scale = values if node.op_type == "Mul" else 1 / values
    name = node.name or node.op_type.lower()
    graph.replace(
        node, [scale_node(graph, node.input[index], scale, shift, name=f"{name}_scale", output=node.output[0])]
    )
    return True


def _by_channel(values: Array | None, channels: int) -> Array | None:
    """`float64[C]` or `float64[1]` of a constant that differs along the channels at most."""
    if values is None or values.ndim > 4:
        return None
    shape = (1,) * (4 - values.ndim) + values.shape
    if values.size != 1 and shape != (1, channels, 1, 1):
        return None
    return values.reshape(-1).astype(np.float64)


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
