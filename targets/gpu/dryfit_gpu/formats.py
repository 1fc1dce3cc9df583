"""Tensor formats and memory pools of the GPU."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.formats import LINEAR, TensorFormat
from dryfit.target.memory_pools import MemoryPool

_SOURCE = "TensorRT TensorFormat"
_FLOAT, _HALF, _BF16, _INT8 = DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT8

CHW2 = TensorFormat("CHW2", {_HALF}, channels_vector=2, source=_SOURCE)
CHW4 = TensorFormat("CHW4", {_INT8, _HALF}, channels_vector=4, source=_SOURCE)
CHW16 = TensorFormat("CHW16", {_HALF}, channels_vector=16, source=_SOURCE)
CHW32 = TensorFormat("CHW32", {_INT8, _HALF, _FLOAT}, channels_vector=32, source=_SOURCE)
HWC = TensorFormat("HWC", {_FLOAT, _HALF, _INT8, DataType.UINT8}, channels_last=True, source=_SOURCE)
HWC8 = TensorFormat("HWC8", {_HALF, _BF16}, channels_vector=8, channels_last=True, source=_SOURCE)
HWC16 = TensorFormat("HWC16", {_HALF, _INT8}, channels_vector=16, channels_last=True, source=_SOURCE)
CDHW32 = TensorFormat("CDHW32", {_HALF, _INT8}, channels_vector=32, spatial_axes=3, source=_SOURCE)
DHWC = TensorFormat("DHWC", {_FLOAT}, channels_last=True, spatial_axes=3, source=_SOURCE)
DHWC8 = TensorFormat("DHWC8", {_HALF, _BF16}, channels_vector=8, channels_last=True, spatial_axes=3, source=_SOURCE)

_ALL = (LINEAR, CHW2, CHW4, CHW16, CHW32, HWC, HWC8, HWC16, CDHW32, DHWC, DHWC8)

FORMATS = {
    dtype: tuple(one for one in _ALL if not one.data_types or dtype in one.data_types)
    for dtype in DataType
    if dtype.is_device_type
}
"""Data type to the formats that it may have, LINEAR first: the network's inputs and outputs have it by default."""


POOLS = (
    MemoryPool(
        name="WORKSPACE",
        default_bytes={"": None},
        holds="workspace",
        alignment_bytes=256,
        per="engine",
        source="TensorRT MemoryPoolType.WORKSPACE: scratch memory of layers; defaults to the device's memory size",
    ),
)
