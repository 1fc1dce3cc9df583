"""The kernels of interpolation, shared by resize and grid sample."""

from __future__ import annotations

import numpy as np

from dryfit.reference.registry import Array


def linear_kernel(distance: Array) -> Array:
    """The weight of an element at this distance: a triangle of half width 1."""
    weight: Array = np.maximum(1 - np.abs(distance), 0)
    return weight


def cubic_kernel(distance: Array, a: float) -> Array:
    """The weight of an element at this distance: Keys' cubic convolution of half width 2.

    Source: R. Keys, "Cubic convolution interpolation for digital image processing", 1981; ONNX `Resize`.
    """
    d = np.abs(distance)
    inner = ((a + 2) * d - (a + 3)) * d * d + 1
    outer = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, inner, np.where(d < 2, outer, 0))
