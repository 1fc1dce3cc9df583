"""Checks of memory pools: defaults are valid limits of the pools, and plans stay within them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.engine.plan import Plan, Segment, TensorPlacement
from dryfit.engine.segment_program import operation_group
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Target
from dryfit.testing.trial_networks import Trial, trial_problems

CONTENTS = ("activations", "weights", "cache", "workspace")
"""What a planner may put into a pool."""

SPANS = ("segment", "engine")
"""What one limit may speak of."""


def pool_problems(pool: MemoryPool, target: Target) -> list[str]:
    """Return what a pool lacks, and whether it rejects its own defaults or accepts less than its minimum."""
    found = []
    if not pool.name or pool.name != pool.name.upper():
        found.append("its name is not in upper case, so that it cannot be found")
    if sum(other.name == pool.name for other in target.memory_pools) > 1:
        found.append("two pools of the target have its name")
    owners = [one.device for one in registry.targets().values() if one.device != target.device and _has(one, pool.name)]
    if owners:
        found.append(f"{', '.join(owners)} has a pool of its name: a builder config could not tell them apart")
    for name, allowed in (("holds", CONTENTS), ("per", SPANS)):
        if getattr(pool, name) not in allowed:
            found.append(f"`{name}` is {getattr(pool, name)!r}, not one of {', '.join(allowed)}")
    if pool.alignment_bytes < 1 or pool.alignment_bytes & (pool.alignment_bytes - 1):
        found.append(f"the alignment, {pool.alignment_bytes} bytes, is not a power of two")
    if not pool.source.strip():
        found.append("`source` is empty")
    for family in dict.fromkeys(platform.family for platform in target.platforms):
        found += _default_problems(pool, family)
    if pool.minimum_bytes > 0 and _takes(pool, pool.minimum_bytes - 1):
        found.append(f"it accepts a limit of {pool.minimum_bytes - 1} bytes, one below its least")
    if _takes(pool, -1):
        found.append("it accepts a limit of -1 bytes")
    return [f"pool {pool.name}: {problem}" for problem in found]


def _default_problems(pool: MemoryPool, family: str) -> list[str]:
    if family not in pool.default_bytes and "" not in pool.default_bytes:
        return [f'there is no default for the family {family!r}, and none for the others (`""`)']
    default = pool.default_for(family)
    if default is not None and not _takes(pool, default):
        return [f"it refuses its own default for {family!r}, {default} bytes"]
    return []


def _takes(pool: MemoryPool, limit_bytes: int) -> bool:
    try:
        pool.check_limit(limit_bytes)
    except ConfigError:
        return False
    return True


def _has(target: Target, name: str) -> bool:
    return any(pool.name == name for pool in target.memory_pools)


@frozen
class _Part:
    """A tensor in a pool.

    Attributes:
        placement: where it lies.
        first, last: operations that write it and that read it last.
        segment: of the operation that writes it.
    """

    placement: TensorPlacement
    first: int
    last: int
    segment: int

    @property
    def end(self) -> int:
        """The byte after it."""
        return self.placement.offset + self.placement.size

    def meets(self, other: _Part) -> bool:
        """Whether both live at some time and share a byte."""
        apart = self.end <= other.placement.offset or other.end <= self.placement.offset
        return self.first <= other.last and other.first <= self.last and not apart


def memory_problems(target: Target, precision: DataType, seed: int) -> list[str]:
    """Plan a random network, and add up the contents of the device's pools.

    Args:
        target: an installed target.
        precision: one of `TRIAL_PRECISIONS`.
        seed: seed of the network.
    """

    def look(trial: Trial) -> Iterator[str]:
        plan = Builder().build_plan(trial.network, trial.config)
        yield from plan_problems(plan, target.memory_pools, target.device)
        yield from _limit_problems(plan, target, trial.config)

    return trial_problems(target, precision, seed, look)


def plan_problems(plan: Plan, pools: Sequence[MemoryPool], device: str) -> Iterator[str]:
    """Return the inconsistencies in the pools of a device."""
    parts = _parts(plan, device)
    segments = [segment for segment in plan.segments if segment.device == device]
    for pool in pools:
        told = plan.pool_sizes.get(f"{device}/{pool.name}", 0)
        inside = [part for part in parts if part.placement.pool == pool.name]
        for part in inside:
            if part.placement.offset % pool.alignment_bytes:
                yield f"{pool.name}: tensor {part.placement.tensor!r} is not at a multiple of {pool.alignment_bytes}"
        if pool.per == "segment":
            yield from _segment_problems(pool, segments, inside, told)
        else:
            yield from _meeting(pool, inside)
            if _peak(inside, 1) > told:
                yield f"{pool.name}: the plan reports {told} bytes, and its tensors reach to {_peak(inside, 1)}"


def _segment_problems(
    pool: MemoryPool, segments: Sequence[Segment], parts: Sequence[_Part], told: int
) -> Iterator[str]:
    """A pool that each segment has its own share of."""
    shares = [segment.pools.get(pool.name, 0) for segment in segments]
    if sum(shares) != told:
        yield f"{pool.name}: the plan reports {told} bytes, and its segments take {' + '.join(map(str, shares))}"
    for segment, share in zip(segments, shares, strict=True):
        own = [part for part in parts if part.segment == segment.index]
        yield from _meeting(pool, own)
        peak = _peak(own, pool.alignment_bytes)
        if pool.holds == "activations" and peak != share:
            yield f"{pool.name}: segment {segment.index} takes {share} bytes, and its tensors reach to {peak}"


def _meeting(pool: MemoryPool, parts: Sequence[_Part]) -> Iterator[str]:
    for one, other in itertools.combinations(parts, 2):
        if one.meets(other):
            names = f"{one.placement.tensor!r} and {other.placement.tensor!r}"
            yield f"{pool.name}: the tensors {names} share bytes while both live"


def _peak(parts: Sequence[_Part], alignment: int) -> int:
    return max((-(-part.end // alignment) * alignment for part in parts), default=0)


def _limit_problems(plan: Plan, target: Target, config: BuilderConfig) -> Iterator[str]:
    """Whether segments take more than the limits."""
    for segment in plan.segments:
        for name, size in segment.pools.items():
            limit = config.get_memory_pool_limit(name) if segment.device == target.device else None
            if limit is not None and size > limit:
                yield f"{name}: segment {segment.index} takes {size} bytes, and the limit is {limit}"


def _parts(plan: Plan, device: str) -> list[_Part]:
    """The tensors in the pools of a device, with the operations between which they live."""
    layers = {layer.name: layer for layer in plan.network.layers}
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    segment_of: dict[str, int] = {}
    for step, operation in enumerate(plan.operations):
        group = operation_group(operation, layers)
        for tensor in group.outputs:
            written[tensor.name], segment_of[tensor.name] = step, operation.segment
        read.update((tensor.name, step) for tensor in group.inputs)
    return [
        _Part(one, first := written.get(name, -1), max(first, read.get(name, -1)), segment_of.get(name, -1))
        for name, one in plan.placements.items()
        if one.device == device and one.pool
    ]
