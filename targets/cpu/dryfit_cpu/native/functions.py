"""The activations that follow a sum, a maximum or an operation in the same pass."""

from __future__ import annotations

from typing import Any

from numba import float32

from dryfit_cpu.codes import CLIP, HARD_SIGMOID, LEAKY_RELU, NONE, RELU, SIGMOID, TANH
from dryfit_cpu.compiler.compilation import inlined
from dryfit_cpu.compiler.vectors import maximum, minimum, splat, where_negative
from dryfit_cpu.native.activations import rare_activation
from dryfit_cpu.native.exponentials import hyperbolic_tangent, sigmoid


@inlined
def activate(kind: int, x: Any, alpha: float, beta: float) -> Any:
    """One of the activations, as `dryfit.reference.activation` defines them."""
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
