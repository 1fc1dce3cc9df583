"""Functions of one value that a model writes as several layers: SiLU, hard swish, and both forms of GELU.

Exporters write them with the operators of their opset: `x * sigmoid(x)`, `x * clip(x + 3, 0, 6) / 6`, or
`0.5 * x * (1 + erf(x / sqrt(2)))` with its factors in any order. What layers compute is therefore followed as a
formula, and compared with the formulas of the functions that have a vector form. One pass over memory, or none where a
kernel ends with the function, takes the place of up to eight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.tensor import Tensor
from dryfit.target.forks import MOST_LAYERS
from dryfit.target.kernels import Array
from dryfit_cpu import codes
from dryfit_cpu.descriptors import Function

_DEGREE = 3
_TOLERANCE = 2e-6
"""How far a model's numbers may be from the function's, relatively: those of FP32 constants are up to 1e-7."""
_CUBE = 0.044715
"""Of GELU by tanh, which is `x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x**3))`."""
_NOTHING = np.zeros(_DEGREE + 1)

_INNER = {
    ActivationType.SIGMOID: codes.SIGMOID,
    ActivationType.TANH: codes.TANH,
    ActivationType.CLIP: codes.CLIP,
    ActivationType.HARD_SIGMOID: codes.HARD_SIGMOID,
}


@frozen(eq=False)
class _Formula:
    """`plain(x) + factor(x) * function(argument(x))`: polynomials by their coefficients, and one function at most."""

    plain: Array
    factor: Array = _NOTHING
    function: Function | None = None
    argument: Array = _NOTHING

    def times(self, other: Array) -> _Formula | None:
        plain, factor = _product(self.plain, other), _product(self.factor, other)
        return None if plain is None or factor is None else attrs.evolve(self, plain=plain, factor=factor)

    def plus(self, other: Array) -> _Formula:
        return attrs.evolve(self, plain=self.plain + other)

    def known(self) -> Function | None:
        """The function that this is, where it has a vector form."""
        if self.function is None:
            return None
        kind, half = self.function.kind, _line(0.5)
        if kind in (codes.TANH, codes.ERF) and _are_close(self.plain, half) and _are_close(self.factor, half):
            # tanh(u) is 2 * sigmoid(2 * u) - 1.
            doubled = 2 * self.argument
            if kind == codes.TANH:
                return _sigmoid_times_x(doubled)
            return Function(codes.GELU_ERF, 0.0, 0.0) if _are_close(doubled, _line(math.sqrt(2))) else None
        if self.plain.any():
            return None
        if kind == codes.SIGMOID and _are_close(self.factor, _line(1.0)):
            return _sigmoid_times_x(self.argument)
        return _hard_swish(self) if kind == codes.CLIP else None


def _line(slope: float) -> Array:
    return np.array([0.0, slope, 0.0, 0.0])


def _are_close(found: Array, wanted: Array) -> bool:
    return bool((np.abs(found - wanted) <= _TOLERANCE * np.abs(wanted)).all())


def _product(a: Array, b: Array) -> Array | None:
    """The product of two polynomials; None where its degree is higher than what functions have."""
    whole = np.convolve(a, b)
    return None if whole[_DEGREE + 1 :].any() else whole[: _DEGREE + 1]


def _sigmoid_times_x(argument: Array) -> Function | None:
    """The function that is x times the sigmoid of a polynomial."""
    if not argument[[0, 2, 3]].any():
        return _with_line(codes.SWISH, argument)
    cubic = 2 * math.sqrt(2 / math.pi) * np.array([0.0, 1.0, 0.0, _CUBE])
    return Function(codes.GELU_TANH, 0.0, 0.0) if _are_close(argument, cubic) else None


def _hard_swish(formula: _Formula) -> Function | None:
    """The function that is x times a line cut off at 0 and 1."""
    _, low, high = formula.function or (0, 0.0, 0.0)
    scale, line = float(formula.factor[1]), formula.argument
    is_line = not formula.factor[[0, 2, 3]].any() and not line[2:].any()
    if not is_line or low != 0.0 or high <= 0.0 or not math.isclose(scale * high, 1.0, rel_tol=_TOLERANCE):
        return None
    return _with_line(codes.HARD_SWISH, scale * line)


def _with_line(kind: int, line: Array) -> Function | None:
    """A function of `slope * x + shift`; None where these are no FP32 numbers, or x has no part in it."""
    shift, slope = line[:2].astype(np.float32)
    return Function(kind, float(slope), float(shift)) if np.isfinite([slope, shift]).all() and slope else None


def written_function(layers: Sequence[Layer], value: Tensor) -> tuple[Function, int] | None:
    """The function of `value` that the first of these layers compute, and how many they are; None where there is none.

    No other of the layers reads what these compute on the way, or the value.
    """
    readers = [index for index, layer in enumerate(layers[:MOST_LAYERS]) if value in layer.inputs]
    if len(readers) < 2 or readers[0] != 0:
        return None
    with np.errstate(all="ignore"):  # constants may be infinite
        return _followed(layers[:MOST_LAYERS], value, readers[-1])


def _followed(layers: Sequence[Layer], value: Tensor, last_reader: int) -> tuple[Function, int] | None:
    formulas: dict[str, _Formula] = {value.name: _Formula(_line(1.0))}
    for index, layer in enumerate(layers):
        formula = _formula(layer, formulas)
        if formula is None:
            return None
        output = layer.outputs[0]
        formulas[output.name] = formula
        known = formula.known() if index >= last_reader else None
        is_alike = output.shape == value.shape and output.dtype is value.dtype
        inner = {name for name in formulas if name != output.name}
        if known is not None and is_alike and not any(_reads(one, inner) for one in layers[index + 1 :]):
            return known, index + 1
    return None


def _reads(layer: Layer, names: set[str]) -> bool:
    return any(tensor.name in names for tensor in layer.connected_inputs)


def _formula(layer: Layer, formulas: dict[str, _Formula]) -> _Formula | None:
    """What a layer computes of x; None where that has no such formula."""
    operands: list[Any] = [formulas.get(tensor.name) or _constant(tensor) for tensor in layer.connected_inputs]
    if not operands or any(one is None for one in operands):
        return None
    if isinstance(layer, (Activation, Unary)):
        return _of_function(layer, operands[0])
    if not isinstance(layer, Elementwise) or len(operands) != 2:
        return None
    return _combined(layer.op, *operands)


def _constant(tensor: Tensor) -> _Formula | None:
    """A known number, as a formula."""
    known = tensor.spec.value
    if known is None or known.size != 1 or known.dtype.kind == "b":
        return None
    return _Formula(np.array([float(known.reshape(-1)[0]), 0.0, 0.0, 0.0]))


def _of_function(layer: Activation | Unary, argument: _Formula) -> _Formula | None:
    if argument.function is not None:
        return None
    one, line = np.array([1.0, 0.0, 0.0, 0.0]), argument.plain
    if isinstance(layer, Unary):
        if layer.op is not UnaryOperation.ERF:
            return None
        return _Formula(_NOTHING, one, Function(codes.ERF, 0.0, 0.0), line)
    kind = _INNER.get(layer.activation_type)
    if kind is None:
        return None
    if kind == codes.HARD_SIGMOID:
        return _Formula(_NOTHING, one, Function(codes.CLIP, 0.0, 1.0), layer.alpha * line + layer.beta * one)
    return _Formula(_NOTHING, one, Function(kind, layer.alpha, layer.beta), line)


def _combined(operation: ElementWiseOperation, a: _Formula, b: _Formula) -> _Formula | None:
    """An operation of two formulas, of which one has a function at most."""
    is_constant = b.function is None and not b.plain[1:].any()
    if operation is ElementWiseOperation.POW:
        exponent = b.plain[0]
        if a.function is not None or not is_constant or exponent not in (2.0, 3.0):
            return None
        square = a.times(a.plain)
        return square if square is None or exponent == 2.0 else square.times(a.plain)
    if operation is ElementWiseOperation.DIV:
        return a.times(np.array([1.0 / b.plain[0]])) if is_constant and b.plain[0] != 0.0 else None
    if operation is ElementWiseOperation.SUB:
        return a.plus(-b.plain) if b.function is None else None
    if a.function is None:
        a, b = b, a
    if b.function is not None or operation not in (ElementWiseOperation.SUM, ElementWiseOperation.PROD):
        return None
    return a.plus(b.plain) if operation is ElementWiseOperation.SUM else a.times(b.plain)
