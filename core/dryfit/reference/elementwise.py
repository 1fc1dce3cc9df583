"""Elementwise operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.reference.precision import rounded
from dryfit.reference.registry import Array, compute_type, reference


def _is_integer(x: Array) -> bool:
    return np.issubdtype(x.dtype, np.integer)


def _divide(x: Array, y: Array) -> Array:
    """Division; of integers, truncated toward zero (0 where the divisor is 0)."""
    if not _is_integer(x):
        ratio: Array = x / y
        return ratio
    quotient: Array = np.floor_divide(x, y)
    # Floor division is one less where something was left over and the signs differ.
    quotient += ((x % y != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return quotient


def _floor_divide(x: Array, y: Array) -> Array:
    return np.floor_divide(x, y) if _is_integer(x) else np.floor(x / y)


def _power(x: Array, y: Array) -> Array:
    """`x ^ y`; of integers exact where exponents are not negative, else by FP64, truncated toward zero."""
    if not _is_integer(x):
        power: Array = np.power(x, y.astype(x.dtype))
    elif _is_integer(y) and (y >= 0).all():
        power = np.power(x, y.astype(x.dtype))
    else:
        power = np.power(x.astype(np.float64), y.astype(np.float64))
    return power.astype(x.dtype)


_Op = ElementWiseOperation
_FUNCTIONS: dict[ElementWiseOperation, Callable[[Array, Array], Array]] = {
    _Op.SUM: np.add,
    _Op.PROD: np.multiply,
    _Op.MAX: np.maximum,
    _Op.MIN: np.minimum,
    _Op.SUB: np.subtract,
    _Op.DIV: _divide,
    _Op.POW: _power,
    _Op.FLOOR_DIV: _floor_divide,
    _Op.AND: np.logical_and,
    _Op.OR: np.logical_or,
    _Op.XOR: np.logical_xor,
    _Op.EQUAL: np.equal,
    _Op.GREATER: np.greater,
    _Op.LESS: np.less,
    _Op.MOD: np.mod,
    _Op.FMOD: np.fmod,
    _Op.GREATER_EQUAL: np.greater_equal,
    _Op.LESS_EQUAL: np.less_equal,
    _Op.BITWISE_AND: np.bitwise_and,
    _Op.BITWISE_OR: np.bitwise_or,
    _Op.BITWISE_XOR: np.bitwise_xor,
    _Op.SHIFT_LEFT: np.left_shift,
    _Op.SHIFT_RIGHT: np.right_shift,
}


@reference(Elementwise)
def elementwise(layer: Elementwise, inputs: Sequence[Array]) -> list[Array]:
    """`op` of each pair of elements.

    Integers are computed in their own type and wrap around. MOD has the sign of the divisor, FMOD of the dividend.
    """
    dtype = inputs[0].dtype
    y = _FUNCTIONS[layer.op](_operand(inputs[0]), _operand(inputs[1]))
    return [y if layer.op.is_comparison else rounded(y, dtype)]


def _operand(x: Array) -> Array:
    """The array in a type that numpy computes in; 2-bit and 4-bit integers in a byte, from which they wrap around."""
    kind = DataType.from_numpy(x.dtype)
    if kind.is_integer and kind.bits < 8:
        return x.astype(np.uint8 if kind.numpy_name.startswith("u") else np.int8)
    return x.astype(compute_type(x.dtype), copy=False)
