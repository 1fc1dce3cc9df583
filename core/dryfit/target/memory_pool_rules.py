"""The rules on limits of memory pools, which hold for the pools of any device that declares them so."""

from __future__ import annotations

from collections.abc import Mapping

from dryfit.rule import Rule

_POOLS = "TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools"

SIZE = Rule(
    "memory_pool.size",
    "The limit of a memory pool is not below its least, and a power of two where the pool asks for one",
    _POOLS,
    "Set the limit to the next power of two, or to the least one",
    "MP-02",
)
SEGMENT = Rule(
    "memory_pool.segment",
    "A segment needs no more of a memory pool than the pool's limit, which holds for each segment of its own; one that "
    "does is cut into segments that fit, where the device's target allows that; else it moves to the fallback device, "
    "or is refused",
    _POOLS,
    "Raise the limit: set_memory_pool_limit, or --mem-pool-size",
    "MP-03, MP-05",
)
CACHE = Rule(
    "memory_pool.cache",
    "A memory pool that is a cache never falls short: a limit beyond what a core has is lowered to what it has, for as "
    "many segments as hold the pool at a time",
    f"{_POOLS}; lowering the limit, where the device would only be slower, is our reading",
    "Set the limit to what is told, or leave it at its default",
    "MP-04, MP-09",
    severity="warning",
)
CORE = Rule(
    "memory_pool.core",
    "The segments that hold a memory pool at a time take no more of it than a core has, where that is strict",
    _POOLS,
    "Set the limit to what is told",
    "MP-08",
)

MEMORY_POOL_RULES: Mapping[str, Rule] = {rule.id: rule for rule in (SIZE, SEGMENT, CACHE, CORE)}
"""Id to rule."""
