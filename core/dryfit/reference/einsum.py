"""Einsum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.einsum import Einsum
from dryfit.reference.precision import rounded
from dryfit.reference.registry import Array, compute_type, reference


@reference(Einsum)
def einsum(layer: Einsum, inputs: Sequence[Array]) -> list[Array]:
    """The equation, by numpy; sums are FP32 for narrower floating-point types."""
    dtype = inputs[0].dtype
    terms, output = layer.terms()
    operands = [operand.astype(compute_type(dtype), copy=False) for operand in inputs]
    y = np.einsum(f"{','.join(terms)}->{output}", *operands, optimize=True)
    return [rounded(np.asarray(y), dtype)]
