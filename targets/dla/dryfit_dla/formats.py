"""Tensor formats at the border of a DLA loadable, and its memory pools.

Source of the formats: TensorRT 10 developer guide, Working with DLA: I/O Formats on DLA. Its formula for DLA_HWC4 has
32 bytes and its prose 32 for Xavier and 64 for Orin; the headers of TensorRT 8.4 to 9.3 spell both, and so does
this module.

Source of the pools: the same guide, Customizing DLA Memory Pools; defaults of the DRAM pools from TensorRT's
`MemoryPoolType`. The header's default for the SRAM is 1 MiB everywhere; the guide's 0.5 MiB for Orin is taken, because
it says why: an engine's loadables together can take twice the pool, and an Orin core has 1 MiB. That holds for one
engine, whose loadables TensorRT runs; loadables that are loaded each as a module of its own hold their memory for as
long as they are loaded, and their sum counts (`runtime.core_limits`).
"""

from __future__ import annotations

import attrs

from dryfit.network.data_types import DataType
from dryfit.target.formats import TensorFormat
from dryfit.target.memory_pools import MemoryPool
from dryfit_dla.weight_layouts import stored_bytes

_SOURCE = "TensorRT 10 developer guide, Working with DLA: I/O Formats on DLA"
_BOTH = (DataType.HALF, DataType.INT8)

DLA_LINEAR = TensorFormat("DLA_LINEAR", _BOTH, line_alignment_bytes={"": 64}, source=_SOURCE)
DLA_HWC4 = TensorFormat(
    "DLA_HWC4",
    _BOTH,
    channels_vector=4,
    channels_last=True,
    channel_counts=(1, 3, 4),
    padded_channels={1: 1},
    line_alignment_bytes={"xavier": 32, "orin": 64, "": 64},
    reader_kinds=["convolution"],
    source=_SOURCE,
)
CHW16 = TensorFormat("CHW16", [DataType.HALF], channels_vector=16, source=_SOURCE)
CHW32 = TensorFormat("CHW32", [DataType.INT8], channels_vector=32, source=_SOURCE)

INPUT_FORMATS = {
    DataType.HALF: (CHW16, DLA_LINEAR, DLA_HWC4),
    DataType.INT8: (CHW32, DLA_LINEAR, DLA_HWC4),
}
"""What a loadable may read; the native format first. DLA_HWC4 is for a first convolution of 1, 3 or 4 channels."""

OUTPUT_FORMATS = {
    DataType.HALF: (CHW16, DLA_LINEAR),
    DataType.INT8: (CHW32, DLA_LINEAR),
}
"""What a loadable may write; the native format first."""


_POOLS_SOURCE = "TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools"
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


_ALL = MemoryPool(
    name="",
    default_bytes={},
    holds="",
    minimum_bytes=4 * _KIB,
    power_of_two=True,
    alignment_bytes=64,
    per="segment",
    source=_POOLS_SOURCE,
)
"""What the three have in common."""

POOLS = (
    attrs.evolve(
        _ALL,
        name="DLA_MANAGED_SRAM",
        default_bytes={"orin": 512 * _KIB, "xavier": _MIB},
        holds="cache",
        core_bytes={"orin": _MIB},
        segments_at_once=2,
    ),
    attrs.evolve(_ALL, name="DLA_LOCAL_DRAM", default_bytes={"": _GIB}, holds="activations"),
    attrs.evolve(
        _ALL, name="DLA_GLOBAL_DRAM", default_bytes={"": 512 * _MIB}, holds="weights", stored_bytes=stored_bytes
    ),
)
