"""Memory pools of the GPU."""

from __future__ import annotations

from dryfit.target.memory_pools import MemoryPool

POOLS = (
    MemoryPool(
        name="WORKSPACE",
        default_bytes={"": None},
        holds="workspace",
        alignment_bytes=256,
        per="engine",
        source="TensorRT MemoryPoolType.WORKSPACE: scratch memory of layers; as large as the device by default",
    ),
)
