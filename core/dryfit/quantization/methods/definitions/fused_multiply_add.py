"""A product and a sum in FP32 with one rounding, as processors have it and numpy does not."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Numbers = Array | np.floating[Any]


def fused_multiply_add(a: Numbers, b: Numbers, c: Numbers) -> Array:
    """`f32(a * b + c)` of FP32 numbers, rounded once, ties to even; they broadcast.

    The product is exact in FP64. Its sum with c is rounded to odd there: to the neighbour whose last bit is 1 wherever
    it is not exact. FP64 has more than two bits beyond FP32, so that the second rounding sees what the first one left.

    Source: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    a, b, c = (np.asarray(number, np.float32).astype(np.float64) for number in (a, b, c))
    product = a * b
    with np.errstate(invalid="ignore"):  # infinities have no remainder
        total = np.asarray(product + c)
        back = total - product
        lost = (product - (total - back)) + (c - back)  # the sum's rounding error, exactly (Knuth)
        is_even = (total.view(np.int64) & 1) == 0
        towards = np.where(lost > 0, np.inf, -np.inf)
        is_moved = np.isfinite(total) & (lost != 0) & is_even
    with np.errstate(over="ignore"):
        return np.where(is_moved, np.nextafter(total, towards), total).astype(np.float32)
