"""Limits of memory pools that a build lowers to what a core has, as the board is told them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import design_for_assessment
from dryfit.network.network import Network
from dryfit.plugins import registry


@attrs.frozen
class LoweredLimits:
    """What became of the limits of a config.

    Attributes:
        limits: memory pool to bytes, of those that were set and lowered.
        notes: what was lowered, and why, in sentences.
    """

    limits: Mapping[str, int]
    notes: tuple[str, ...] = ()


def lowered_limits(network: Network, config: BuilderConfig) -> LoweredLimits:
    """The limits that were set and that a build of this network lowers; the network is placed only where that matters.

    Raises:
        DryfitError: a limit may have to be lowered, and the network cannot be placed.
    """
    asked: Mapping[str, int] = config.settings(network)["memory_pool_limits"]
    if not any(_may_be_lowered(name, limit, config) for name, limit in asked.items()):
        return LoweredLimits({})
    design = design_for_assessment(network, config)
    kept = {name: limit for variant in design.variants.values() for name, limit in variant.pool_limits.items()}
    lowered = {
        name: limit for name, before in asked.items() if (limit := kept.get(name)) is not None and limit < before
    }
    return LoweredLimits(lowered, tuple(design.memory_warnings))


def _may_be_lowered(name: str, limit: int, config: BuilderConfig) -> bool:
    """Whether a pool is a cache of which a core has less than segments may hold at a time."""
    return any(
        limit * pool.segments_at_once > pool.core_bytes[family]
        for target in registry.targets().values()
        for pool in target.memory_pools
        if pool.name == name and pool.holds == "cache"
        if (family := config.platform(target.device).family) in pool.core_bytes
    )
