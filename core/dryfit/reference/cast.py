"""Cast."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layers.cast import Cast
from dryfit.reference.conversion import convert
from dryfit.reference.registry import Array, reference


@reference(Cast)
def cast(layer: Cast, inputs: Sequence[Array]) -> list[Array]:
    """The input's values in `to_type`."""
    return [convert(inputs[0], layer.to_type, saturate=layer.saturate, rounding=layer.e8m0_rounding)]
