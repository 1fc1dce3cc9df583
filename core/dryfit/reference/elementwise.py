"""Element by element: operations on one and two operands, selection, and scaling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Scale
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Select, Unary, UnaryOperation
from dryfit.network.tensor import Array
from dryfit.reference.activation import erf
from dryfit.reference.precision import rounded, weights_for, widened
from dryfit.reference.registry import compute_type, reference


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


_Binary = ElementWiseOperation
_BINARY_FUNCTIONS: dict[ElementWiseOperation, Callable[[Array, Array], Array]] = {
    _Binary.SUM: np.add,
    _Binary.PROD: np.multiply,
    _Binary.MAX: np.maximum,
    _Binary.MIN: np.minimum,
    _Binary.SUB: np.subtract,
    _Binary.DIV: _divide,
    _Binary.POW: _power,
    _Binary.FLOOR_DIV: _floor_divide,
    _Binary.AND: np.logical_and,
    _Binary.OR: np.logical_or,
    _Binary.XOR: np.logical_xor,
    _Binary.EQUAL: np.equal,
    _Binary.GREATER: np.greater,
    _Binary.LESS: np.less,
    _Binary.MOD: np.mod,
    _Binary.FMOD: np.fmod,
    _Binary.GREATER_EQUAL: np.greater_equal,
    _Binary.LESS_EQUAL: np.less_equal,
    _Binary.BITWISE_AND: np.bitwise_and,
    _Binary.BITWISE_OR: np.bitwise_or,
    _Binary.BITWISE_XOR: np.bitwise_xor,
    _Binary.SHIFT_LEFT: np.left_shift,
    _Binary.SHIFT_RIGHT: np.right_shift,
    _Binary.SQUARED_DIFFERENCE: lambda x, y: np.square(x - y),
}


@reference(Elementwise)
def elementwise(layer: Elementwise, inputs: Sequence[Array]) -> list[Array]:
    """`op` of each pair of elements.

    Integers are computed in their own type and wrap around. MOD has the sign of the divisor, FMOD of the dividend.
    """
    dtype = inputs[0].dtype
    y = _BINARY_FUNCTIONS[layer.op](_operand(inputs[0]), _operand(inputs[1]))
    return [y if layer.op.is_comparison else rounded(y, dtype)]


def _operand(x: Array) -> Array:
    """The array in a type that numpy computes in; 2-bit and 4-bit integers in a byte, from which they wrap around."""
    kind = DataType.from_numpy(x.dtype)
    if kind.is_integer and kind.bits < 8:
        return x.astype(np.uint8 if kind.numpy_name.startswith("u") else np.int8)
    return x.astype(compute_type(x.dtype), copy=False)


_Unary = UnaryOperation
_UNARY_FUNCTIONS: dict[UnaryOperation, Callable[[Array], Array]] = {
    _Unary.EXP: np.exp,
    _Unary.LOG: np.log,
    _Unary.SQRT: np.sqrt,
    _Unary.RECIP: lambda x: 1 / x,
    _Unary.ABS: np.abs,
    _Unary.NEG: np.negative,
    _Unary.SIN: np.sin,
    _Unary.COS: np.cos,
    _Unary.TAN: np.tan,
    _Unary.SINH: np.sinh,
    _Unary.COSH: np.cosh,
    _Unary.ASIN: np.arcsin,
    _Unary.ACOS: np.arccos,
    _Unary.ATAN: np.arctan,
    _Unary.ASINH: np.arcsinh,
    _Unary.ACOSH: np.arccosh,
    _Unary.ATANH: np.arctanh,
    _Unary.CEIL: np.ceil,
    _Unary.FLOOR: np.floor,
    _Unary.ERF: erf,
    _Unary.NOT: np.logical_not,
    _Unary.SIGN: np.sign,
    _Unary.ROUND: np.rint,
    _Unary.ISINF: np.isinf,
    _Unary.ISNAN: np.isnan,
    _Unary.BITWISE_NOT: np.invert,
    _Unary.RSQRT: lambda x: 1 / np.sqrt(x),
}
_IN_THE_TYPE_ITSELF = frozenset({_Unary.ABS, _Unary.NEG, _Unary.SIGN, _Unary.BITWISE_NOT})


@reference(Unary)
def unary(layer: Unary, inputs: Sequence[Array]) -> list[Array]:
    """`op` of each element. Integers under ABS, NEG, SIGN and BITWISE_NOT are computed in their own type."""
    x = inputs[0]
    is_integer = np.issubdtype(x.dtype, np.integer) and layer.op in _IN_THE_TYPE_ITSELF
    y = _UNARY_FUNCTIONS[layer.op](x if is_integer or x.dtype == np.bool_ else widened(x))
    return [y if y.dtype == np.bool_ else rounded(y, x.dtype)]


@reference(Select)
def select(layer: Select, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """`condition ? then_input : else_input`; the values' bits are copied."""
    condition, then_input, else_input = inputs
    return [np.where(condition, then_input, else_input)]


@reference(Scale)
def scale(layer: Scale, inputs: Sequence[Array]) -> list[Array]:
    """`(x * scale + shift) ^ power`.

    FP16 and BF16: the scale is rounded to the input's type; shift and power are not, as a bias is not.
    """
    x = inputs[0]
    y = widened(x)
    shape = layer.coefficient_shape(x.shape)
    if layer.scale is not None and layer.scale.size:
        y = y * weights_for(x, layer.scale).reshape(shape)
    if layer.shift is not None and layer.shift.size:
        y = y + layer.shift.astype(y.dtype).reshape(shape)
    if layer.power is not None and layer.power.size and (layer.power != 1).any():
        y = y ** layer.power.astype(y.dtype).reshape(shape)
    return [rounded(y, x.dtype)]
