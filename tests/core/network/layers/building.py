"""Networks with inputs only, to which a test adds the layer that it is about."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


def network_with(*shapes: Sequence[int], dtype: DataType | Sequence[DataType] = DataType.FLOAT) -> tuple:
    """(network, first input, second input, ...), one input for each shape; one type for all, or one each."""
    network = Network("test")
    types = [dtype] * len(shapes) if isinstance(dtype, DataType) else dtype
    tensors: list[Tensor] = [
        network.add_input(f"x{index}", type_, shape)
        for index, (shape, type_) in enumerate(zip(shapes, types, strict=True))
    ]
    return network, *tensors
