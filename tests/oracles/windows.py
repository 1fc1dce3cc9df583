"""What libraries' layouts and windows need of a case: transposed and padded arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.oracles.oracle import NoCounterpartError

from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.window_layer import WindowLayer
from dryfit.quantization.methods.call import OperatorCall

Array = np.ndarray[Any, Any]


def channels_last(values: Array) -> Array:
    """[N, C, *spatial] as [N, *spatial, C]; also kernels: the second axis becomes the last."""
    return np.ascontiguousarray(np.moveaxis(values, 1, -1))


def channels_second(values: Array) -> Array:
    """The way back."""
    return np.ascontiguousarray(np.moveaxis(values, -1, 1))


def require(holds: bool, reason: str) -> None:
    """Refuse a case unless something holds.

    Raises:
        NoCounterpartError: it does not.
    """
    if not holds:
        raise NoCounterpartError(reason)


def window_layer(call: OperatorCall) -> WindowLayer:
    """The layer of an operator with a window over two axes.

    Raises:
        NoCounterpartError: it has another number of axes.
    """
    layer = call.layer
    require(isinstance(layer, WindowLayer) and len(layer.window) == 2, "only windows over two axes")
    return layer  # type: ignore[return-value]  # the line before


def kernel_layer(call: OperatorCall) -> KernelLayer:
    """The layer of a convolution or deconvolution over two axes."""
    layer = window_layer(call)
    require(isinstance(layer, KernelLayer), "only layers with a kernel")
    return layer  # type: ignore[return-value]  # the line before


def padded(call: OperatorCall) -> Array:
    """The input with its padding written out as zero points."""
    layer, x = window_layer(call), call.operand(0)
    paddings = [(0, 0), (0, 0), *layer.paddings(x.values.shape[2:])]
    return np.pad(x.values, paddings, constant_values=x.one_zero_point)


def matrices(call: OperatorCall) -> tuple[Array, Array]:
    """The operands of a matrix product as [..., rows, sums] and [..., sums, columns].

    Raises:
        NoCounterpartError: one of them is a vector.
    """
    ops = [call.layer.op0.name, call.layer.op1.name]  # type: ignore[attr-defined]  # a matrix product has them
    require("VECTOR" not in ops, "only products of matrices")
    first, second = (
        np.swapaxes(call.operand(index).values, -1, -2) if op == "TRANSPOSE" else call.operand(index).values
        for index, op in enumerate(ops)
    )
    return first, second


def two_axes(call: OperatorCall) -> tuple[Array, Array]:
    """The operands of a fully connected layer or matrix product as [batch, sums] and [outputs, sums].

    Raises:
        NoCounterpartError: it is a product of more than two matrices, or of vectors.
    """
    x, w = call.operand(0).values, call.operand(1).values
    if call.layer.kind == "fully_connected":
        return x.reshape(-1, int(np.prod(x.shape[-3:]))), w.reshape(w.shape[0], -1)
    require(x.ndim == 2 and w.ndim == 2, "only products of two matrices")
    first, second = matrices(call)
    return first, second.T
