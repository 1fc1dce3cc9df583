"""Memory pools of the DLA.

Source: TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools; defaults of the DRAM pools from
TensorRT's `MemoryPoolType`. The header's default for the SRAM is 1 MiB everywhere; the guide's 0.5 MiB for Orin is
taken, because it says why.
"""

from __future__ import annotations

from dryfit.target.memory_pools import MemoryPool

_SOURCE = "TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools"
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


def _pool(name: str, default_bytes: dict[str, int | None], holds: str) -> MemoryPool:
    return MemoryPool(
        name=name,
        default_bytes=default_bytes,
        holds=holds,
        minimum_bytes=4 * _KIB,
        power_of_two=True,
        alignment_bytes=64,
        per="segment",
        source=_SOURCE,
    )


POOLS = (
    _pool("DLA_MANAGED_SRAM", {"orin": 512 * _KIB, "xavier": _MIB}, holds="cache"),
    _pool("DLA_LOCAL_DRAM", {"": _GIB}, holds="activations"),
    _pool("DLA_GLOBAL_DRAM", {"": 512 * _MIB}, holds="weights"),
)
