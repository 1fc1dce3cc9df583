"""Operators on single elements and on pairs of them, which are no activation functions; and changes of the type."""

from __future__ import annotations

import functools

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation, Select, UnaryOperation
from dryfit.network.layers.quantization import Cast, CastRounding
from dryfit.onnx.composition import add, add_plugin, cast, divide, elementwise, same_rank, scalar, unary
from dryfit.onnx.node import Node
from dryfit.onnx.registry import operator
from dryfit.onnx.tensors import NodeInput, data_type

_Op = ElementWiseOperation

_BINARY = {
    "Add": _Op.SUM,
    "Sub": _Op.SUB,
    "Mul": _Op.PROD,
    "Div": _Op.DIV,
    "And": _Op.AND,
    "Or": _Op.OR,
    "Xor": _Op.XOR,
    "Greater": _Op.GREATER,
    "Less": _Op.LESS,
    "GreaterOrEqual": _Op.GREATER_EQUAL,
    "LessOrEqual": _Op.LESS_EQUAL,
    "BitwiseAnd": _Op.BITWISE_AND,
    "BitwiseOr": _Op.BITWISE_OR,
    "BitwiseXor": _Op.BITWISE_XOR,
    "Equal": _Op.EQUAL,
}


@operator(*_BINARY)
def binary(node: Node) -> NodeInput:
    """Elementwise."""
    return elementwise(node, _BINARY[node.op_type], node[0], node[1])


@operator("Pow")
def power(node: Node) -> NodeInput:
    """Elementwise, in the wider type of base and exponent."""
    base, exponent = node[0], node[1]
    if base.dtype is exponent.dtype:
        return elementwise(node, _Op.POW, base, exponent)
    if base.dtype.is_floating_point or exponent.dtype.is_integer:
        return elementwise(node, _Op.POW, base, cast(node, exponent, base.dtype))
    result = elementwise(node, _Op.POW, cast(node, base, exponent.dtype), exponent)
    return cast(node, result, base.dtype)


@operator("Mod")
def modulo(node: Node) -> NodeInput:
    """Elementwise: Python's remainder, or C's with `fmod`."""
    op = _Op.FMOD if node.get_int("fmod", 0) else _Op.MOD
    return elementwise(node, op, node[0], node[1])


@operator("BitShift")
def bit_shift(node: Node) -> NodeInput:
    """Elementwise."""
    direction = node.choice("direction", "", ("LEFT", "RIGHT"))
    return elementwise(node, _Op.SHIFT_LEFT if direction == "LEFT" else _Op.SHIFT_RIGHT, node[0], node[1])


_VARIADIC = {"Max": _Op.MAX, "Min": _Op.MIN, "Sum": _Op.SUM}


@operator(*_VARIADIC)
def variadic(node: Node) -> NodeInput:
    """Elementwise, one layer fewer than there are inputs."""
    op = _VARIADIC[node.op_type]
    operands = [node[index] for index in range(len(node.inputs))]
    return functools.reduce(lambda a, b: elementwise(node, op, a, b), operands[1:], node[0])


@operator("Mean")
def mean(node: Node) -> NodeInput:
    """A sum, divided by the number of inputs."""
    operands = [node[index] for index in range(len(node.inputs))]
    total = functools.reduce(lambda a, b: add(node, a, b), operands[1:], node[0])
    return divide(node, total, scalar(node, len(operands), total)) if len(operands) > 1 else total


@operator("Where")
def where(node: Node) -> NodeInput:
    """Select."""
    return node.add(Select(), *same_rank(node, node[0], node[1], node[2]))


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
def unary_operator(node: Node) -> NodeInput:
    """Unary."""
    return unary(node, _UNARY[node.op_type], node[0])


@operator("IsInf")
def is_infinite(node: Node) -> NodeInput:
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


def _cast(node: Node, to_type: DataType) -> NodeInput:
    rounding = CastRounding(node.choice("round_mode", "up", [member.value for member in CastRounding]))
    layer = Cast(to_type=to_type, saturate=bool(node.get_int("saturate", 1)), e8m0_rounding=rounding)
    return node.add(layer, node[0])


@operator("Cast")
def cast_operator(node: Node) -> NodeInput:
    """Cast."""
    return _cast(node, data_type(node.get_int("to", 0), "attribute 'to'"))


@operator("CastLike")
def cast_like(node: Node) -> NodeInput:
    """Cast."""
    return _cast(node, node[1].dtype)


@operator("BitCast")
def bit_cast(node: Node) -> NodeInput:
    """The layer plugin `BitCast`."""
    to_type = data_type(node.get_int("to", 0), "attribute 'to'")
    return add_plugin(node, "BitCast", {"to_type": to_type.name}, node[0])[0]
