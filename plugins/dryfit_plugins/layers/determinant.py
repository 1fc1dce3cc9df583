"""The determinant of matrices."""

from __future__ import annotations

import numpy as np

from dryfit.network.layer_plugin import Array
from dryfit.network.plugin_function import layer_plugin
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type


def _without_matrix(x: TensorSpec) -> TensorSpec:
    """The input's shape without its last two axes."""
    if x.rank < 2 or not x.dtype.is_floating_point:
        raise ValueError("the input is a floating-point tensor whose last two axes are a matrix")
    rows, columns = x.shape[-2:]
    if rows != columns and -1 not in (rows, columns):
        raise ValueError(f"a matrix with a determinant is square, not {rows} x {columns}")
    return TensorSpec(x.shape[:-2], x.dtype)


@layer_plugin("Det", outputs=_without_matrix)
def determinant(x: Array) -> Array:
    """`det(x[..., n, n])` by LU decomposition, of the input's type; FP16 and BF16 are computed in FP32.

    Source: ONNX `Det`.
    """
    return np.asarray(np.linalg.det(x.astype(compute_type(x.dtype)))).astype(x.dtype)


PLUGIN = determinant
