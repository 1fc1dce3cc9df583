"""Memory that a core of a device has once, for all segments that it has loaded: whether the pools' limits respect it.

Source: TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools: the segments of an engine together
take at most twice the pool of managed SRAM, and an Orin core strictly has 1 MiB.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.cutter import LayerRun
from dryfit.builder.segment_pools import PoolNeeds
from dryfit.target.memory_pools import MemoryPool


def core_memory_problems(runs: Sequence[LayerRun], reckoned: PoolNeeds) -> list[str]:
    """The pools of which segments of a device may take more at once than one of its cores has, in words.

    Args:
        runs: its segments.
        reckoned: what they need of its pools.
    """
    variant = reckoned.variant
    return [
        problem
        for pool in variant.target.memory_pools
        if (core := pool.core_bytes.get(variant.platform.family)) is not None
        and _is_open(variant.pool_limits.get(pool.name), pool, core)
        and (problem := _problem(runs, reckoned, pool, core))
    ]


def _is_open(limit: int | None, pool: MemoryPool, core: int) -> bool:
    """Whether the limit alone does not keep the sum within the core's memory."""
    return limit is None or limit * pool.segments_at_once > core


def _problem(runs: Sequence[LayerRun], reckoned: PoolNeeds, pool: MemoryPool, core: int) -> str:
    variant = reckoned.variant
    needs = [reckoned.of(run.layers)[pool.name] for run in runs]
    at_once = sorted(needs, reverse=True)[: pool.segments_at_once]
    if sum(at_once) <= core:
        return ""
    count = "1 segment" if len(at_once) == 1 else f"{len(at_once)} segments"
    allowed = core // len(at_once)
    return (
        f"{count} of {variant.device} may take {sum(at_once)} bytes of {pool.name} at once, of which a core of "
        f"{variant.platform.name} has {core}: set its limit to {allowed} bytes or less [{pool.source}]"
    )
