"""Kernels and biases of convolution, deconvolution and fully connected layers.

FP16 and BF16: a kernel is rounded to the input's type, a bias is not (devices keep it in their accumulator's type);
sums are FP32, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.reference.precision import computed_in, rounded, weights_for
from dryfit.reference.registry import Array

WeightedSum = Convolution | Deconvolution | FullyConnected


def input_and_kernel(layer: WeightedSum, inputs: Sequence[Array | None]) -> tuple[Array, Array]:
    """The input as it is, and the kernel (input 1, or the parameter) in the type that is computed in.

    Raises:
        NetworkError: there is no input or no kernel.
    """
    x = inputs[0] if inputs else None
    kernel = inputs[1] if len(inputs) > 1 and inputs[1] is not None else layer.kernel
    if x is None or kernel is None:
        raise layer.problem(
            "There is no input" if x is None else "There is no kernel",
            remedy="Connect input 0" if x is None else "Give it as `kernel`, or connect it as input 1",
        )
    return x, weights_for(x, kernel)


def finished(layer: WeightedSum, inputs: Sequence[Array | None], sums: Array, x: Array) -> Array:
    """Sums `[N, K, *spatial]` plus the bias (input 2, or the parameter), rounded to the input's type."""
    bias = inputs[2] if len(inputs) > 2 and inputs[2] is not None else layer.bias
    if bias is not None:
        sums = sums + bias.astype(computed_in(x.dtype)).reshape(-1, *(1,) * (sums.ndim - 2))
    return rounded(sums, x.dtype)
