"""From the inputs and attributes of a Q or DQ node to its layer: what the operators of all domains share."""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.scale_granularity import wrong_scales
from dryfit.onnx.composition import positive_axis
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.tensors import NodeInput, data_type


def add_quantize(node: Node, x: NodeInput, scale: NodeInput, to_type: DataType) -> NodeInput:
    """The node's quantize layer.

    Raises:
        NodeRefusedError: scales or zero points do not fit, or a scale is not finite or not positive.
    """
    axis, block_shape = _granularity(node, x, scale)
    check_scales(node, scale)
    saturate = bool(node.get_int("saturate", 1))
    layer = Quantize(axis=axis, to_type=to_type, block_shape=block_shape, saturate=saturate)
    return node.add(layer, x, scale, _zero_point(node, scale), fold=False)


def add_dequantize(node: Node, x: NodeInput, scale: NodeInput) -> NodeInput:
    """The node's dequantize layer; the real numbers themselves where it dequantizes an INT32 constant.

    Such a constant is the bias of a quantized layer. In a network with a quantize method it stays as it is: the method
    adds integers.

    The result has the type that `output_dtype` says, or else the scale's; FLOAT where the scale is a power of two.

    Raises:
        NodeRefusedError: scales or zero points do not fit, or a scale is not finite or not positive.
    """
    axis, block_shape = _granularity(node, x, scale)
    check_scales(node, scale)
    default = DataType.FLOAT if scale.dtype is DataType.E8M0 else scale.dtype
    to_type = _stated_type(node, "output_dtype") or default
    layer = Dequantize(axis=axis, to_type=to_type, block_shape=block_shape)
    return node.add(
        layer, x, scale, _zero_point(node, scale), fold=x.dtype is DataType.INT32 and not node.quantize_method
    )


def quantized_type(node: Node, default: DataType) -> DataType:
    """The type that a node quantizes to: its zero point's, or what `output_dtype` says, or the default.

    Raises:
        NodeRefusedError: zero point and `output_dtype` contradict each other.
    """
    zero_point, stated = node.input(2), _stated_type(node, "output_dtype")
    if zero_point is None:
        return stated or default
    if stated not in (None, zero_point.dtype):
        raise node.refusal(
            "`output_dtype` must be the type of the zero point",
            code=ErrorCode.INVALID_NODE,
            found=stated.name,
            allowed=f"{zero_point.dtype.text}, as {zero_point.name!r} has it",
            remedy="Remove `output_dtype`, or correct it",
        )
    return zero_point.dtype


def _stated_type(node: Node, attribute: str) -> DataType | None:
    number = node.get_int(attribute, 0)
    return data_type(number, f"attribute {attribute!r}") if number else None


def _granularity(node: Node, x: NodeInput, scale: NodeInput) -> tuple[int, tuple[int, ...]]:
    """(axis, block shape) as the layers have them: axis -1 and no block for one scale.

    Scales of the data's rank without a `block_size` divide the data evenly: so TensorRT reads them, and so Model
    Optimizer wrote INT4 before ONNX had blocks. Without an `axis` it is 1, and 0 before opset 13, as in TensorRT.
    """
    block_size = node.get_int("block_size", 0)
    if scale.rank == 0 or scale.shape == (1,):
        return -1, ()
    default = 0 if x.rank == 1 or (not node.domain and node.opset < 13) else 1
    axis = positive_axis(node, node.get_int("axis", default), x.rank)
    if scale.rank == 1 and not block_size:
        return axis, ()
    if block_size < 0 or scale.rank != x.rank:
        raise node.refusal(
            "The scale must be a scalar, a vector along `axis`, or one value per block",
            code=ErrorCode.UNSUPPORTED_NODE_SHAPE,
            found=f"scale {scale.name!r} {scale.shape} for {x.name!r} {x.shape}, block size {block_size}",
            remedy="Quantize the model again",
        )
    return axis, tuple(block_size if index == axis else 1 for index in range(x.rank)) if block_size else ()


def check_scales(node: Node, scale: NodeInput) -> None:
    """Refuse a scale that is known and that no quantization can have.

    Raises:
        NodeRefusedError: it is not finite, or not positive.
    """
    wrong = None if scale.value is None else wrong_scales(scale.value)
    if wrong is not None:
        raise node.refusal(
            "Scales must be finite and positive",
            code=ErrorCode.INVALID_VALUE,
            found=f"{wrong}, in tensor {scale.name!r}",
            remedy="Use any positive scale, such as 1, for a channel or block of zeros",
        )


def _zero_point(node: Node, scale: NodeInput) -> NodeInput | None:
    """The zero point, or None where there is none or where it is known to be 0, which is all that devices have."""
    operand = node.input(2)
    if operand is None or operand.value is None or np.any(operand.value.astype(np.float32)):
        return operand
    sizes = [np.prod(one.shape) for one in (operand, scale) if one.spec.is_static]
    if len(set(sizes)) > 1:
        raise node.refusal(
            "There must be as many zero points as scales",
            code=ErrorCode.INVALID_NODE,
            found=f"{operand.name!r} {operand.shape}",
            allowed=f"as {scale.name!r} {scale.shape}",
            remedy="Quantize the model again",
        )
    return None
