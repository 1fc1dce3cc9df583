"""Poolings: over a window, or over all of the spatial axes."""

from __future__ import annotations

from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.pooling import Pooling, PoolingType
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.onnx.composition import add_plugin, elementwise, reduce, scalar, unary
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.operators.convolution import window_of
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator


def _kernel(node: Node) -> tuple[int, ...]:
    kernel = node.get_ints("kernel_shape")
    if kernel is None:
        raise node.refusal("Attribute 'kernel_shape' is required", code=ErrorCode.INVALID_NODE)
    return kernel


@operator("MaxPool", "AveragePool")
def pooling(node: Node) -> list[Operand]:
    """Pooling; the indices of a maximum pooling are its second output."""
    window = window_of(node, _kernel(node))
    is_maximum = node.op_type == "MaxPool"
    wants_indices = is_maximum and len(node.proto.output) > 1 and bool(node.proto.output[1])
    layer = Pooling(
        pooling_type=PoolingType.MAX if is_maximum else PoolingType.AVERAGE,
        window_size_nd=window.kernel,
        stride_nd=window.strides,
        dilation_nd=window.dilations,
        pre_padding=window.before,
        post_padding=window.after,
        padding_mode=window.padding_mode,
        average_count_excludes_padding=not node.get_int("count_include_pad", 0),
        returns_indices=wants_indices,
        column_major_indices=wants_indices and bool(node.get_int("storage_order", 0)),
    )
    return node.add_all(layer, node[0])


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pooling(node: Node) -> Operand:
    """Reduce over the spatial axes."""
    x = node[0]
    op = ReduceOperation.AVG if node.op_type == "GlobalAveragePool" else ReduceOperation.MAX
    return reduce(node, op, x, range(2, x.rank), keep_dims=True) if x.rank > 2 else x


@operator("LpPool")
def lp_pooling(node: Node) -> Operand:
    """The layer plugin `LpPool`."""
    window = window_of(node, _kernel(node))
    fields = {
        "p": node.get_int("p", 2),
        "kernel": window.kernel,
        "strides": window.strides,
        "dilations": window.dilations,
        "before": window.before,
        "after": window.after,
        "padding_mode": window.padding_mode.value,
    }
    return add_plugin(node, "LpPool", fields, node[0])[0]


@operator("GlobalLpPool")
def global_lp_pooling(node: Node) -> Operand:
    """Absolute values to the power p, summed over the spatial axes, to the power 1 / p."""
    x, p = node[0], node.get_int("p", 2)
    powers = elementwise(node, ElementWiseOperation.POW, unary(node, UnaryOperation.ABS, x), scalar(node, p, x))
    total = reduce(node, ReduceOperation.SUM, powers, range(2, x.rank), keep_dims=True)
    return elementwise(node, ElementWiseOperation.POW, total, scalar(node, 1 / p, x))
