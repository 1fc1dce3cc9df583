"""Whether memory pools are sound: their defaults are limits that they take themselves."""

from __future__ import annotations

from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Target

CONTENTS = ("activations", "weights", "cache", "workspace")
"""What a planner may put into a pool."""

SPANS = ("segment", "engine")
"""What one limit may speak of."""


def pool_problems(pool: MemoryPool, target: Target) -> list[str]:
    """What a pool lacks, and whether it refuses its own defaults or takes less than its least."""
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
            found.append(f"`{name}` is {getattr(pool, name)!r}, none of {', '.join(allowed)}")
    if pool.alignment_bytes < 1 or pool.alignment_bytes & (pool.alignment_bytes - 1):
        found.append(f"the alignment, {pool.alignment_bytes} bytes, is no power of two")
    if not pool.source.strip():
        found.append("`source` is empty")
    for family in dict.fromkeys(platform.family for platform in target.platforms):
        found += _default_problems(pool, family)
    if pool.minimum_bytes > 0 and _takes(pool, pool.minimum_bytes - 1):
        found.append(f"it takes a limit of {pool.minimum_bytes - 1} bytes, one below its least")
    if _takes(pool, -1):
        found.append("it takes a limit of -1 bytes")
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
