"""The determinant of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Inputs
from dryfit.network.layers.plugin import Fields
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type

Array = np.ndarray[Any, Any]


class Determinant:
    """`det(x[..., n, n])`, of the input's type; FP16 and BF16 are computed in FP32. Source: ONNX `Det`."""

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:  # noqa: ARG002  has no fields
        """The input's shape without its last two axes."""
        x = inputs[0]
        if x is None or x.rank < 2 or not x.dtype.is_floating_point:
            raise ValueError("the input is a floating-point tensor whose last two axes are a matrix")
        rows, columns = x.shape[-2:]
        if rows != columns and -1 not in (rows, columns):
            raise ValueError(f"a matrix with a determinant is square, not {rows} x {columns}")
        return [TensorSpec(x.shape[:-2], x.dtype)]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:  # noqa: ARG002
        """The determinants, by LU decomposition."""
        x = inputs[0]
        assert x is not None  # noqa: S101  output_specs refused it
        return [np.asarray(np.linalg.det(x.astype(compute_type(x.dtype)))).astype(x.dtype)]


PLUGIN = Determinant()
