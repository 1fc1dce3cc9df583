"""Parametric ReLU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.parametric_relu import ParametricRelu
from dryfit.reference.precision import rounded, widened
from dryfit.reference.registry import Array, reference


@reference(ParametricRelu)
def parametric_relu(layer: ParametricRelu, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001  it has no parameter
    """`x` where it is at least 0, else `x * slopes`."""
    x, slopes = inputs[0], widened(inputs[1])
    wide = widened(x)
    return [np.where(wide >= 0, x, rounded(wide * slopes, x.dtype))]
