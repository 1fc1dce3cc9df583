"""Where the references round: once, at the end.

Weighted sums and functions are never computed in an integer type, which would cut weights to 0 and wrap around: FP32
serves the types that it holds, FP64 the wider integers. What needs no fraction (sums, products, maxima, comparisons)
is computed in the integer type itself: see `registry.compute_type`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.reference.registry import Array


def computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The floating-point type in which a layer on elements of `dtype` computes weighted sums and functions.

    FP64 holds integers of more than 16 bits exactly up to 2^53. BOOL stays as it is.
    """
    kind = DataType.from_numpy(dtype)
    if kind.is_integer:
        return np.dtype(np.float32 if kind.bits <= 16 else np.float64)
    is_narrow = kind.is_floating_point and kind.bits < np.dtype(np.float32).itemsize * 8
    return np.dtype(np.float32) if is_narrow else np.dtype(dtype)


def widened(x: Array) -> Array:
    """The array in the type that is computed in; the array itself where that is its own."""
    return x.astype(computed_in(x.dtype), copy=False)


def rounded(y: Array, dtype: np.dtype[Any]) -> Array:
    """The result in a layer's output type.

    Rounding: to nearest, ties to even. Integers saturate, and so do FP8 E4M3 and FP4, which have no infinity; wider
    floating-point types overflow to infinity.
    """
    if y.dtype == dtype:
        return y
    kind = DataType.from_numpy(dtype)
    if kind.is_integer:
        if np.issubdtype(y.dtype, np.integer):
            return y.astype(dtype)
        low, high = _integer_limits(kind)
        result = np.asarray(np.clip(np.rint(y), low, high).astype(dtype))
        # The largest INT32 is no FP32 number, the largest INT64 no FP64 number: the cast alone would wrap around.
        result[y >= high] = high
        return result
    if kind in (DataType.FP8, DataType.FP4):
        largest = _LARGEST[kind]
        y = np.clip(y, -largest, largest)
    with np.errstate(over="ignore"):
        return y.astype(dtype)


def cut_off(y: Array, dtype: np.dtype[Any]) -> Array:
    """The result in a layer's output type; of integers the fraction is dropped, not rounded."""
    return rounded(np.trunc(y) if DataType.from_numpy(dtype).is_integer else y, dtype)


def _integer_limits(kind: DataType) -> tuple[int, int]:
    if kind.numpy_name.startswith("u"):
        return 0, 2**kind.bits - 1
    return -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1


_LARGEST = {DataType.FP8: 448.0, DataType.FP4: 6.0}
"""Largest finite values of the types that saturate."""


def weights_for(x: Array, weights: Array) -> Array:
    """Weights as a layer on `x` multiplies with them: rounded to FP16 or BF16 where x is that, then widened.

    Biases are not: a device keeps them in the type of its accumulator. They are only brought to the type that is
    computed in.
    """
    if x.dtype.itemsize == np.dtype(np.float16).itemsize and DataType.from_numpy(x.dtype).is_floating_point:
        weights = weights.astype(x.dtype)
    return weights.astype(computed_in(x.dtype))
