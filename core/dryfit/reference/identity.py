"""Identity."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layers.identity import Identity
from dryfit.reference.conversion import convert
from dryfit.reference.registry import Array, reference


@reference(Identity)
def identity(layer: Identity, inputs: Sequence[Array]) -> list[Array]:
    """The input, not copied; where the layer casts, its values in the other type."""
    to_type = layer.cast_type(DataType.from_numpy(inputs[0].dtype))
    return [inputs[0] if to_type is None else convert(inputs[0], to_type)]
