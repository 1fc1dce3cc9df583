"""Matrix products and sums of products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.matrix import Einsum, MatrixMultiply, MatrixOperation
from dryfit.reference.precision import rounded
from dryfit.reference.registry import Array, compute_type, reference


@reference(MatrixMultiply)
def matrix_multiply(layer: MatrixMultiply, inputs: Sequence[Array]) -> list[Array]:
    """`op0(x) @ op1(y)` over broadcast batch axes; sums are FP32 for narrower floating-point types."""
    dtype = inputs[0].dtype
    x, y = (operand.astype(compute_type(dtype), copy=False) for operand in inputs)
    if layer.op0 is not MatrixOperation.NONE:
        x = x[..., None, :] if layer.op0 is MatrixOperation.VECTOR else x.swapaxes(-1, -2)
    if layer.op1 is not MatrixOperation.NONE:
        y = y[..., :, None] if layer.op1 is MatrixOperation.VECTOR else y.swapaxes(-1, -2)
    product = np.matmul(x, y)
    if layer.op0 is MatrixOperation.VECTOR:
        product = product[..., 0, :]
    if layer.op1 is MatrixOperation.VECTOR:
        product = product[..., 0]
    return [rounded(product, dtype)]


@reference(Einsum)
def einsum(layer: Einsum, inputs: Sequence[Array]) -> list[Array]:
    """The equation, by numpy; sums are FP32 for narrower floating-point types."""
    dtype = inputs[0].dtype
    terms, output = layer.terms()
    operands = [operand.astype(compute_type(dtype), copy=False) for operand in inputs]
    y = np.einsum(f"{','.join(terms)}->{output}", *operands, optimize=True)
    return [rounded(np.asarray(y), dtype)]
