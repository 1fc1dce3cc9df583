"""Select."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.select import Select
from dryfit.reference.registry import Array, reference


@reference(Select)
def select(layer: Select, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001
    """`condition ? then_input : else_input`; the values' bits are copied."""
    condition, then_input, else_input = inputs
    return [np.where(condition, then_input, else_input)]
