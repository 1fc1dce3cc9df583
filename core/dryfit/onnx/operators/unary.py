"""Operators on single elements that are no activation functions: unary layers."""

from __future__ import annotations

from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.unary import UnaryOperation
from dryfit.onnx.composition import elementwise, scalar, unary
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.registry import operator

_Op = ElementWiseOperation

_UNARY = {
    "Abs": UnaryOperation.ABS,
    "Neg": UnaryOperation.NEG,
    "Exp": UnaryOperation.EXP,
    "Log": UnaryOperation.LOG,
    "Sqrt": UnaryOperation.SQRT,
    "Reciprocal": UnaryOperation.RECIP,
    "Sin": UnaryOperation.SIN,
    "Cos": UnaryOperation.COS,
    "Tan": UnaryOperation.TAN,
    "Asin": UnaryOperation.ASIN,
    "Acos": UnaryOperation.ACOS,
    "Atan": UnaryOperation.ATAN,
    "Sinh": UnaryOperation.SINH,
    "Cosh": UnaryOperation.COSH,
    "Asinh": UnaryOperation.ASINH,
    "Acosh": UnaryOperation.ACOSH,
    "Atanh": UnaryOperation.ATANH,
    "Erf": UnaryOperation.ERF,
    "Floor": UnaryOperation.FLOOR,
    "Ceil": UnaryOperation.CEIL,
    "Round": UnaryOperation.ROUND,
    "Sign": UnaryOperation.SIGN,
    "IsNaN": UnaryOperation.ISNAN,
    "Not": UnaryOperation.NOT,
    "BitwiseNot": UnaryOperation.BITWISE_NOT,
}


@operator(*_UNARY)
def unary_operator(node: Node) -> Operand:
    """Unary."""
    return unary(node, _UNARY[node.op_type], node[0])


@operator("IsInf")
def is_infinite(node: Node) -> Operand:
    """Unary; a comparison with infinity where only one sign counts."""
    x = node[0]
    positive, negative = bool(node.get_int("detect_positive", 1)), bool(node.get_int("detect_negative", 1))
    infinite = unary(node, UnaryOperation.ISINF, x)
    if positive and negative:
        return infinite
    if not positive and not negative:
        return elementwise(node, _Op.XOR, infinite, infinite)
    sign = elementwise(node, _Op.GREATER if positive else _Op.LESS, x, scalar(node, 0, x))
    return elementwise(node, _Op.AND, infinite, sign)
