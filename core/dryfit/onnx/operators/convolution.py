"""Convolutions, and the attributes of a sliding window that they share with poolings.

Weights that are known become the layer's parameters; quantized or computed ones stay inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.attrs_classes import frozen
from dryfit.network.layers.convolution import Convolution, Deconvolution
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.window_layer import PaddingMode, Pooling, PoolingType
from dryfit.network.tensor import Array
from dryfit.onnx.composition import add_plugin, elementwise, reduce, scalar, unary
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.tensors import NodeInput


@frozen
class WindowAttributes:
    """Kernel, strides, dilations and paddings of a node, one value a spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    padding_mode: PaddingMode


def window_of(node: Node, kernel: Sequence[int]) -> WindowAttributes:
    """The window of a node whose kernel has these extents.

    Raises:
        NodeRefusedError: an attribute has a wrong number of values, or `auto_pad` a value that does not exist.
    """
    axes = len(kernel)
    auto_pad = node.choice("auto_pad", "NOTSET", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    pads = _list(node, "pads", 2 * axes, 0)
    ceil = bool(node.get_int("ceil_mode", 0))
    mode = PaddingMode.EXPLICIT_ROUND_UP if ceil else PaddingMode.EXPLICIT_ROUND_DOWN
    if auto_pad.startswith("SAME"):
        mode = PaddingMode[auto_pad]
    if auto_pad != "NOTSET":
        pads = (0,) * (2 * axes)
    return WindowAttributes(
        tuple(kernel),
        _list(node, "strides", axes, 1),
        _list(node, "dilations", axes, 1),
        pads[:axes],
        pads[axes:],
        mode,
    )


def _list(node: Node, name: str, count: int, default: int) -> tuple[int, ...]:
    values = node.get_ints(name)
    if not values:
        return (default,) * count
    if len(values) != count:
        raise node.refusal(
            f"Attribute {name!r} has the wrong number of values",
            code=ErrorCode.INVALID_NODE,
            found=values,
            allowed=f"{count} values",
            remedy="Specify one value per spatial axis, two for pads",
        )
    return values


def _weights(node: Node, least_rank: int = 3) -> tuple[NodeInput, Array | None, Array | None, list[NodeInput | None]]:
    """(weight operand, kernel parameter, bias parameter, inputs of the layer): each weight is in one of two places."""
    weights, bias = node[1], node.input(2)
    node.static_shape(weights, "The kernel")
    if weights.rank < least_rank:
        raise node.refusal(
            "The kernel has too few axes",
            code=ErrorCode.INVALID_NODE,
            found=weights.shape,
            remedy="Export the model with a kernel of rank 3 or more",
        )
    inputs: list[NodeInput | None] = [node[0]]
    inputs.append(None if weights.is_known else weights)
    inputs.append(None if bias is None or bias.is_known else bias)
    return weights, weights.value, None if bias is None else bias.value, inputs


@operator("Conv")
def convolution(node: Node) -> NodeInput:
    """Convolution."""
    weights, kernel, bias, inputs = _weights(node)
    window = window_of(node, node.get_ints("kernel_shape") or weights.shape[2:])
    layer = Convolution(
        num_output_maps=weights.shape[0],
        kernel_size_nd=window.kernel,
        stride_nd=window.strides,
        dilation_nd=window.dilations,
        pre_padding=window.before,
        post_padding=window.after,
        padding_mode=window.padding_mode,
        num_groups=node.get_int("group", 1),
        kernel=kernel,
        bias=bias,
    )
    return node.add(layer, *inputs)


@operator("ConvTranspose")
def deconvolution(node: Node) -> NodeInput:
    """Deconvolution; `output_padding` and `output_shape` become its paddings."""
    weights, kernel, bias, inputs = _weights(node)
    window = window_of(node, node.get_ints("kernel_shape") or weights.shape[2:])
    axes = len(window.kernel)
    groups = node.get_int("group", 1)
    extra = node.get_ints("output_padding") or (0,) * axes
    before, after, mode = window.before, window.after, window.padding_mode
    wanted = node.get_ints("output_shape")
    if wanted or mode in (PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER):
        before, after = _paddings_for(node, window.kernel, window.strides, window.dilations, extra, wanted)
        mode = PaddingMode.EXPLICIT_ROUND_DOWN
    layer = Deconvolution(
        num_output_maps=weights.shape[1] * groups,
        kernel_size_nd=window.kernel,
        stride_nd=window.strides,
        dilation_nd=window.dilations,
        pre_padding=before,
        post_padding=tuple(a - e for a, e in zip(after, extra, strict=True)),
        padding_mode=mode,
        num_groups=groups,
        kernel=kernel,
        bias=bias,
    )
    return node.add(layer, *inputs)


def _paddings_for(
    node: Node,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    extra: tuple[int, ...],
    wanted: tuple[int, ...] | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(before, after) such that the output has the wanted extents, or the input's times the strides.

    Source: ONNX ConvTranspose, the formulas for `output_shape` and `auto_pad`.
    """
    spatial = node[0].shape[2:]
    if wanted is not None and any(extent < 0 for extent in spatial):
        node.static_shape(node[0], "The input of a ConvTranspose with `output_shape`")
    wanted = wanted[-len(kernel) :] if wanted else tuple(e * s for e, s in zip(spatial, strides, strict=True))
    before, after = [], []
    upper = node.get_string("auto_pad", "NOTSET") == "SAME_UPPER"
    for extent, window, stride, dilation, more, want in zip(
        spatial, kernel, strides, dilations, extra, wanted, strict=True
    ):
        total = stride * (max(extent, 1) - 1) + more + (window - 1) * dilation + 1
        total -= want if extent >= 0 else stride
        small, large = total // 2, total - total // 2
        before.append(small if upper else large)
        after.append(large if upper else small)
    return tuple(before), tuple(after)


@operator("DeformConv")
def deformable_convolution(node: Node) -> NodeInput:
    """The layer plugin `DeformConv`."""
    fields = {"offset_group": 1, "group": 1, **node.fields()}
    return add_plugin(node, "DeformConv", fields, *node.inputs)[0]


# Pooling --------------------------------------------------------------------------------------------------------------


def _kernel(node: Node) -> tuple[int, ...]:
    kernel = node.get_ints("kernel_shape")
    if kernel is None:
        raise node.refusal(
            "Attribute 'kernel_shape' is required",
            code=ErrorCode.INVALID_NODE,
            remedy="Export the model with the attribute",
        )
    return kernel


@operator("MaxPool", "AveragePool")
def pooling(node: Node) -> list[NodeInput]:
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
def global_pooling(node: Node) -> NodeInput:
    """Reduce over the spatial axes."""
    x = node[0]
    op = ReduceOperation.AVG if node.op_type == "GlobalAveragePool" else ReduceOperation.MAX
    return reduce(node, op, x, range(2, x.rank), keep_dims=True) if x.rank > 2 else x


@operator("LpPool")
def lp_pooling(node: Node) -> NodeInput:
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
def global_lp_pooling(node: Node) -> NodeInput:
    """Absolute values to the power p, summed over the spatial axes, to the power 1 / p."""
    x, p = node[0], node.get_int("p", 2)
    powers = elementwise(node, ElementWiseOperation.POW, unary(node, UnaryOperation.ABS, x), scalar(node, p, x))
    total = reduce(node, ReduceOperation.SUM, powers, range(2, x.rank), keep_dims=True)
    return elementwise(node, ElementWiseOperation.POW, total, scalar(node, 1 / p, x))
