"""Changes of the element type."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.network.layers.cast import Cast, CastRounding
from dryfit.onnx.composition import add_plugin
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.registry import operator
from dryfit.onnx.tensors import data_type


def _cast(node: Node, to_type: DataType) -> Operand:
    rounding = CastRounding(node.choice("round_mode", "up", [member.value for member in CastRounding]))
    layer = Cast(to_type=to_type, saturate=bool(node.get_int("saturate", 1)), e8m0_rounding=rounding)
    return node.add(layer, node[0])


@operator("Cast")
def cast_operator(node: Node) -> Operand:
    """Cast."""
    return _cast(node, data_type(node.get_int("to", 0), "attribute 'to'"))


@operator("CastLike")
def cast_like(node: Node) -> Operand:
    """Cast."""
    return _cast(node, node[1].dtype)


@operator("BitCast")
def bit_cast(node: Node) -> Operand:
    """The layer plugin `BitCast`."""
    to_type = data_type(node.get_int("to", 0), "attribute 'to'")
    return add_plugin(node, "BitCast", {"to_type": to_type.name}, node[0])[0]
