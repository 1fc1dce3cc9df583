"""The activations that follow a sum, a maximum or an operation in the same pass."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import (
    CLIP,
    ELU,
    GELU_ERF,
    GELU_TANH,
    HARD_SIGMOID,
    LEAKY_RELU,
    NONE,
    RELU,
    SCALED_TANH,
    SELU,
    SIGMOID,
    SOFTPLUS,
    SOFTSIGN,
    TANH,
)
from dryfit_cpu.compiler.compilation import inlined, outlined
from dryfit_cpu.compiler.vectors import magnitude, maximum, minimum, splat, where_less, where_negative
from dryfit_cpu.descriptors import Function
from dryfit_cpu.native.exponentials import (
    exponential_minus_one,
    gaussian_error_linear_unit,
    hyperbolic_tangent,
    sigmoid,
    soft_maximum,
)

_GELU_SCALE, _GELU_CUBE = float32(1.5957691216057308), float32(0.044715)
"""2 * sqrt(2 / pi), and the weight of the cube."""


@inlined
def activate(function: Function, x: Any) -> Any:
    """One of the activations, as `dryfit.reference.activation` defines them.

    The frequent ones become part of whatever calls this. The others are functions of their own: in each of the kernels
    that have an activation, and in each place of it, their polynomials would be most of the code.
    """
    kind, alpha, beta = function
    if kind == NONE:
        return x
    if kind == RELU:
        return maximum(splat(float32(0.0)), x)
    if kind == CLIP:
        return minimum(splat(beta), maximum(splat(alpha), x))
    if kind == LEAKY_RELU:
        return where_negative(x, splat(alpha) * x, x)
    if kind == SIGMOID:
        return sigmoid(x)
    if kind == TANH:
        return hyperbolic_tangent(x)
    if kind == HARD_SIGMOID:
        scaled = splat(alpha) * x + splat(beta)
        return minimum(splat(float32(1.0)), maximum(splat(float32(0.0)), scaled))
    return rare_activation(kind, x, alpha, beta)


@outlined
def rare_activation(kind: int, x: Any, alpha: float, beta: float) -> Any:
    """One of the activations, as `dryfit.reference.activation` defines them."""
    zero = splat(float32(0.0))
    if kind in (ELU, SELU):
        below = splat(alpha) * exponential_minus_one(where_negative(x, x, zero))
        y = where_negative(x, below, x)
        return y * splat(beta) if kind == SELU else y
    if kind == SOFTPLUS:
        return splat(alpha) * soft_maximum(splat(beta) * x)
    if kind == SOFTSIGN:
        return x / (splat(float32(1.0)) + magnitude(x))
    if kind == SCALED_TANH:
        return splat(alpha) * hyperbolic_tangent(splat(beta) * x)
    if kind == GELU_ERF:
        return gaussian_error_linear_unit(x)
    if kind == GELU_TANH:
        return _approximate_gelu(x)
    return where_less(splat(alpha), x, x, zero)


@inlined
def _approximate_gelu(x: Any) -> Any:
    """GELU by tanh: x * (1 + tanh(u)) / 2 is x * sigmoid(2u).

    Within 3 units in the last place above 0; below within 3e-7 and, above -5, 5e-6 of the value.
    """
    doubled = splat(_GELU_SCALE) * (x + splat(_GELU_CUBE) * (x * x * x))
    return x * sigmoid(doubled)
