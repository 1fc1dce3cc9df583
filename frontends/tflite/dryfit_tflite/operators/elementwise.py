"""Operators that compute element by element: arithmetic, comparisons, functions of one number, selection."""

from __future__ import annotations

import math

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Select, Unary, UnaryOperation
from dryfit.network.tensor import Tensor
from dryfit_tflite.operator_view import Operator
from dryfit_tflite.registry import operator

_Binary = ElementWiseOperation
_BINARY = {
    "ADD": _Binary.SUM,
    "SUB": _Binary.SUB,
    "MUL": _Binary.PROD,
    "DIV": _Binary.DIV,
    "MAXIMUM": _Binary.MAX,
    "MINIMUM": _Binary.MIN,
    "POW": _Binary.POW,
    "FLOOR_DIV": _Binary.FLOOR_DIV,
    "FLOOR_MOD": _Binary.MOD,
    "LOGICAL_AND": _Binary.AND,
    "LOGICAL_OR": _Binary.OR,
    "EQUAL": _Binary.EQUAL,
    "GREATER": _Binary.GREATER,
    "GREATER_EQUAL": _Binary.GREATER_EQUAL,
    "LESS": _Binary.LESS,
    "LESS_EQUAL": _Binary.LESS_EQUAL,
}


def _operands(op: Operator, *indices: int) -> tuple[list[Tensor], bool]:
    """Operands of one rank, and whether they have channels first."""
    first = any(op.value(index).is_only_channels_first for index in indices)
    rank = max(op.rank(index) for index in indices)
    first &= rank == 4
    return [op.real_of_rank(index, rank, first=first) for index in indices], first


@operator(*_BINARY)
def binary(op: Operator) -> None:
    """Elementwise, with a fused activation."""
    _require_general_scales(op)
    (x, y), first = _operands(op, 0, 1)
    result = op.add(Elementwise(op=_BINARY[op.record.name]), x, y)
    fused = op.option("FusedActivationFunction") if op.record.name in ("ADD", "SUB", "MUL", "DIV") else 0
    op.give(op.activated(result, fused), first=first)


def _require_general_scales(op: Operator) -> None:
    """Refuse sums of INT16 that are computed by shifts alone, as old converters ask for.

    Raises:
        OperatorRefusedError: all scales are powers of two, and the operands' differ.
    """
    if op.record.name not in ("ADD", "SUB") or not op.output().is_quantized or not op.option("PotScaleInt16", False):
        return
    grids = [op.value(0).grid, op.value(1).grid, op.output().grid]
    scales = [float(one.scale[0]) for one in grids]
    is_power = all(math.frexp(scale)[0] == _HALF for scale in scales)
    if op.output().tensor.dtype is DataType.INT16 and is_power and len(set(scales)) > 1:
        raise op.refusal(
            "A sum of INT16 by powers of two (`pot_scale_int16`) is not supported",
            found=", ".join(map(str, scales)),
            allowed="equal scales, or `pot_scale_int16` off, as converters write it since TensorFlow 2.3",
            remedy="Convert the model again",
        )


_HALF = 0.5


@operator("NOT_EQUAL")
def not_equal(op: Operator) -> None:
    """Not of EQUAL."""
    (x, y), first = _operands(op, 0, 1)
    equal = op.add(Elementwise(op=_Binary.EQUAL), x, y)
    op.give(op.add(Unary(op=UnaryOperation.NOT), equal), first=first)


@operator("SQUARED_DIFFERENCE")
def squared_difference(op: Operator) -> None:
    """The difference times itself; on codes one layer."""
    (x, y), first = _operands(op, 0, 1)
    if op.is_one_on_codes:
        op.give(op.add(Elementwise(op=_Binary.SQUARED_DIFFERENCE), x, y), first=first)
        return
    difference = op.add(Elementwise(op=_Binary.SUB), x, y)
    op.give(op.add(Elementwise(op=_Binary.PROD), difference, difference), first=first)


@operator("ADD_N")
def sum_of_several(op: Operator) -> None:
    """Sums, one after the other."""
    operands, first = _operands(op, *range(op.input_count))
    result = operands[0]
    for operand in operands[1:]:
        result = op.add(Elementwise(op=_Binary.SUM), result, operand)
    op.give(result, first=first)


_UNARY = {
    "EXP": UnaryOperation.EXP,
    "LOG": UnaryOperation.LOG,
    "SQRT": UnaryOperation.SQRT,
    "ABS": UnaryOperation.ABS,
    "NEG": UnaryOperation.NEG,
    "SIN": UnaryOperation.SIN,
    "COS": UnaryOperation.COS,
    "CEIL": UnaryOperation.CEIL,
    "FLOOR": UnaryOperation.FLOOR,
    "ROUND": UnaryOperation.ROUND,
    "SIGN": UnaryOperation.SIGN,
    "LOGICAL_NOT": UnaryOperation.NOT,
}


@operator(*_UNARY)
def unary(op: Operator) -> None:
    """Unary."""
    first = op.works_channels_first(0)
    op.give(op.add(Unary(op=_UNARY[op.record.name]), op.real(0, first=first)), first=first)


@operator("RSQRT")
def reciprocal_root(op: Operator) -> None:
    """Reciprocal of the square root; on codes one layer."""
    first = op.works_channels_first(0)
    if op.is_one_on_codes:
        op.give(op.add(Unary(op=UnaryOperation.RSQRT), op.real(0, first=first)), first=first)
        return
    root = op.add(Unary(op=UnaryOperation.SQRT), op.real(0, first=first))
    op.give(op.add(Unary(op=UnaryOperation.RECIP), root), first=first)


@operator("SQUARE")
def square(op: Operator) -> None:
    """The input times itself."""
    first = op.works_channels_first(0)
    x = op.real(0, first=first)
    op.give(op.add(Elementwise(op=_Binary.PROD), x, x), first=first)


@operator("SELECT", "SELECT_V2")
def select(op: Operator) -> None:
    """Select; the older operator's condition may be a vector that chooses rows."""
    rank = max(op.rank(index) for index in range(3))
    operands = [op.real_of_rank(index, rank) for index in (1, 2)]
    is_of_rows = op.record.name == "SELECT" and op.rank(0) == 1 and rank > 1
    condition = op.codes_of_shape(0, (-1, *(1,) * (rank - 1))) if is_of_rows else op.codes_of_rank(0, rank)
    op.give(op.add(Select(), condition, *operands))
