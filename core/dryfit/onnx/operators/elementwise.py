"""Operators on pairs of elements, with NumPy's broadcasting: elementwise layers, and select."""

from __future__ import annotations

import functools

from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.select import Select
from dryfit.onnx.composition import add, cast, divide, elementwise, same_rank, scalar
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.registry import operator

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
def binary(node: Node) -> Operand:
    """Elementwise."""
    return elementwise(node, _BINARY[node.op_type], node[0], node[1])


@operator("Pow")
def power(node: Node) -> Operand:
    """Elementwise, in the wider type of base and exponent."""
    base, exponent = node[0], node[1]
    if base.dtype is exponent.dtype:
        return elementwise(node, _Op.POW, base, exponent)
    if base.dtype.is_floating_point or exponent.dtype.is_integer:
        return elementwise(node, _Op.POW, base, cast(node, exponent, base.dtype))
    result = elementwise(node, _Op.POW, cast(node, base, exponent.dtype), exponent)
    return cast(node, result, base.dtype)


@operator("Mod")
def modulo(node: Node) -> Operand:
    """Elementwise: Python's remainder, or C's with `fmod`."""
    op = _Op.FMOD if node.get_int("fmod", 0) else _Op.MOD
    return elementwise(node, op, node[0], node[1])


@operator("BitShift")
def bit_shift(node: Node) -> Operand:
    """Elementwise."""
    direction = node.choice("direction", "", ("LEFT", "RIGHT"))
    return elementwise(node, _Op.SHIFT_LEFT if direction == "LEFT" else _Op.SHIFT_RIGHT, node[0], node[1])


_VARIADIC = {"Max": _Op.MAX, "Min": _Op.MIN, "Sum": _Op.SUM}


@operator(*_VARIADIC)
def variadic(node: Node) -> Operand:
    """Elementwise, one layer fewer than there are inputs."""
    op = _VARIADIC[node.op_type]
    operands = [node[index] for index in range(len(node.inputs))]
    return functools.reduce(lambda a, b: elementwise(node, op, a, b), operands[1:], node[0])


@operator("Mean")
def mean(node: Node) -> Operand:
    """A sum, divided by the number of inputs."""
    operands = [node[index] for index in range(len(node.inputs))]
    total = functools.reduce(lambda a, b: add(node, a, b), operands[1:], node[0])
    return divide(node, total, scalar(node, len(operands), total)) if len(operands) > 1 else total


@operator("Where")
def where(node: Node) -> Operand:
    """Select."""
    return node.add(Select(), *same_rank(node, node[0], node[1], node[2]))
