"""What segments that fit one by one may break together: the memory of a core, and that a loadable stands alone.

A core has some memory once, for all segments that it has loaded; the pools' limits have to respect it.

Source: TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools: managed SRAM behaves like a cache,
the segments of an engine together take at most twice the pool, and an Orin core strictly has 1 MiB. Our reading: the
second counts for one engine, however many segments it has; a limit beyond what the core has is lowered to what it has,
as a cache never keeps a segment from its device. Any other memory that falls short is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.standalone import NO_REFORMATS, ONE_LOADABLE, is_standalone
from dryfit.builder.placement.cutter import LayerRun
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.engine.plan import Reformat
from dryfit.short_text import count_text
from dryfit.target.memory_pools import CACHE, CORE, MemoryPool

SegmentNeeds = Callable[[TargetVariant, int], Mapping[str, int]]
"""(device, number of one of its segments) -> bytes by pool that it needs there."""


def within_cores(
    runs: Sequence[LayerRun], variants: Mapping[str, TargetVariant], needs: SegmentNeeds
) -> tuple[dict[str, TargetVariant], list[str]]:
    """(the devices with limits of caches lowered to what their cores have, one sentence for each that was lowered).

    Args:
        runs: the segments of all devices.
        variants: device name to device.
        needs: what segments need of a device's pools.
    """
    found, warnings = dict(variants), list[str]()
    for device, own in _by_device(runs).items():
        found[device], lowered = _within_core(own, variants[device], needs)
        warnings += lowered
    return found, warnings


def core_memory_problems(
    runs: Sequence[LayerRun], variants: Mapping[str, TargetVariant], needs: SegmentNeeds
) -> list[str]:
    """The pools, other than caches, of which segments of a device may take more at once than one of its cores has.

    Args:
        runs: the segments of all devices.
        variants: device name to device.
        needs: what segments need of a device's pools.
    """
    return [
        problem
        for device, own in _by_device(runs).items()
        for pool, core in _core_pools(variants[device])
        if pool.holds != "cache" and (problem := _problem(own, variants[device], needs, pool, core))
    ]


def standalone_problems(runs: Sequence[LayerRun], reformats: Sequence[Reformat], config: BuilderConfig) -> list[str]:
    """Why segments and the copies around them are no standalone loadable, in words; none where no such is asked for."""
    if not is_standalone(config):
        return []
    problems = []
    if len(runs) != 1:
        counts = Counter(run.device for run in runs)
        told = ", ".join(f"{count} on {device}" for device, count in sorted(counts.items())) or "none"
        causes = [f"segment {index}: {run.cut_cause}" for index, run in enumerate(runs) if run.cut_cause]
        found = f"{len(runs)} segments ({told})" + "".join(f"; {cause}" for cause in causes)
        problems.append(ONE_LOADABLE.told(f"It must be exactly one segment (found {found}"))
    problems += [
        NO_REFORMATS.told(
            f"It must not need copies; tensor {one.tensor!r} needs one from {one.source} to {one.destination}: "
            f"{one.cause}"
        )
        for one in reformats
    ]
    return problems


def _by_device(runs: Sequence[LayerRun]) -> dict[str, list[int]]:
    """Device to the numbers of its segments."""
    found: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        found.setdefault(run.device, []).append(number)
    return found


def _within_core(own: Sequence[int], variant: TargetVariant, needs: SegmentNeeds) -> tuple[TargetVariant, list[str]]:
    """(the device with the limits of caches lowered to what a core has, one sentence for each that was lowered).

    Args:
        own: numbers of its segments.
        variant: it.
        needs: what they need of its pools.
    """
    limits, warnings = dict(variant.pool_limits), []
    for pool, core in _core_pools(variant):
        asked = limits.get(pool.name)
        if pool.holds != "cache" or _suffices(asked, pool, core):
            continue
        at_once = _at_once(own, variant, needs, pool)
        allowed = core if sum(min(size, core) for size in at_once) <= core else core // len(at_once)
        allowed = _power_below(allowed) if pool.power_of_two else allowed
        if asked is not None and asked <= allowed:
            continue
        limits[pool.name] = allowed
        wish = "no limit" if asked is None else f"the limit of {asked} bytes"
        shared = f", for {len(at_once)} segments at once" if allowed < core else ""
        told = (
            f"{variant.device}: {wish} for {pool.name} is lowered to {allowed} bytes: a core of "
            f"{variant.platform.name} has {core}{shared}"
        )
        warnings.append(CACHE.told(told, pool.source))
    return attrs.evolve(variant, pool_limits=limits), warnings


def _core_pools(variant: TargetVariant) -> list[tuple[MemoryPool, int]]:
    """(pool, bytes that a core has of it), for the pools where that is strict."""
    family = variant.platform.family
    return [(pool, pool.core_bytes[family]) for pool in variant.target.memory_pools if family in pool.core_bytes]


def _suffices(limit: int | None, pool: MemoryPool, core: int) -> bool:
    """Whether the limit alone keeps the sum within the core's memory."""
    return limit is not None and limit * pool.segments_at_once <= core


def _at_once(own: Sequence[int], variant: TargetVariant, needs: SegmentNeeds, pool: MemoryPool) -> list[int]:
    """The bytes of those segments that may hold most of a pool at the same time."""
    sizes = (needs(variant, number).get(pool.name, 0) for number in own)
    return sorted(sizes, reverse=True)[: pool.segments_at_once]


def _problem(own: Sequence[int], variant: TargetVariant, needs: SegmentNeeds, pool: MemoryPool, core: int) -> str:
    if _suffices(variant.pool_limits.get(pool.name), pool, core):
        return ""
    at_once = _at_once(own, variant, needs, pool)
    if sum(at_once) <= core:
        return ""
    count = count_text(len(at_once), "segment")
    allowed = core // len(at_once)
    return CORE.told(
        f"{count} of {variant.device} may take {sum(at_once)} bytes of {pool.name} at once, but a core of "
        f"{variant.platform.name} has {core}: set its limit to {allowed} bytes or less",
        pool.source,
    )


def _power_below(value: int) -> int:
    """The largest power of two that is not above a positive value."""
    return 1 << value.bit_length() - 1
