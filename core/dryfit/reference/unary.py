"""Unary operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dryfit.network.layers.unary import Unary, UnaryOperation
from dryfit.reference.error_function import erf
from dryfit.reference.precision import rounded, widened
from dryfit.reference.registry import Array, reference

_Op = UnaryOperation
_FUNCTIONS: dict[UnaryOperation, Callable[[Array], Array]] = {
    _Op.EXP: np.exp,
    _Op.LOG: np.log,
    _Op.SQRT: np.sqrt,
    _Op.RECIP: lambda x: 1 / x,
    _Op.ABS: np.abs,
    _Op.NEG: np.negative,
    _Op.SIN: np.sin,
    _Op.COS: np.cos,
    _Op.TAN: np.tan,
    _Op.SINH: np.sinh,
    _Op.COSH: np.cosh,
    _Op.ASIN: np.arcsin,
    _Op.ACOS: np.arccos,
    _Op.ATAN: np.arctan,
    _Op.ASINH: np.arcsinh,
    _Op.ACOSH: np.arccosh,
    _Op.ATANH: np.arctanh,
    _Op.CEIL: np.ceil,
    _Op.FLOOR: np.floor,
    _Op.ERF: erf,
    _Op.NOT: np.logical_not,
    _Op.SIGN: np.sign,
    _Op.ROUND: np.rint,
    _Op.ISINF: np.isinf,
    _Op.ISNAN: np.isnan,
    _Op.BITWISE_NOT: np.invert,
}
_IN_THE_TYPE_ITSELF = frozenset({_Op.ABS, _Op.NEG, _Op.SIGN, _Op.BITWISE_NOT})


@reference(Unary)
def unary(layer: Unary, inputs: Sequence[Array]) -> list[Array]:
    """`op` of each element. Integers under ABS, NEG, SIGN and BITWISE_NOT are computed in their own type."""
    x = inputs[0]
    is_integer = np.issubdtype(x.dtype, np.integer) and layer.op in _IN_THE_TYPE_ITSELF
    y = _FUNCTIONS[layer.op](x if is_integer or x.dtype == np.bool_ else widened(x))
    return [y if y.dtype == np.bool_ else rounded(y, x.dtype)]
