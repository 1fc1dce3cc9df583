"""Memory pools of the DLA.

Source: TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools; defaults of the DRAM pools from
TensorRT's `MemoryPoolType`. The header's default for the SRAM is 1 MiB everywhere; the guide's 0.5 MiB for Orin is
taken, because it says why: an engine's loadables together can take twice the pool, and an Orin core has 1 MiB. That
holds for one engine, whose loadables TensorRT runs; loadables that are loaded each as a module of its own hold their
memory for as long as they are loaded, and their sum counts (`runtime.core_limits`).
"""

from __future__ import annotations

import attrs

from dryfit.target.memory_pools import MemoryPool
from dryfit_dla.weight_layouts import stored_bytes

_SOURCE = "TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools"
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


_ALL = MemoryPool(
    name="",
    default_bytes={},
    holds="",
    minimum_bytes=4 * _KIB,
    power_of_two=True,
    alignment_bytes=64,
    per="segment",
    source=_SOURCE,
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
