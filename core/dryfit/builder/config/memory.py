"""The part of a builder config that limits the memory pools of devices."""

from __future__ import annotations

from dryfit.builder.config.enumerations import whole_number
from dryfit.builder.config.platforms import ConfigPlatforms
from dryfit.errors import UnknownNameError
from dryfit.plugins import registry
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Target


class ConfigMemory(ConfigPlatforms):
    """Limits of memory pools; those that are not set are the platforms'."""

    def __init__(self) -> None:
        ConfigPlatforms.__init__(self)
        self._pool_limits: dict[str, int] = {}

    def set_memory_pool_limit(self, pool: str, pool_size: int) -> None:
        """Set the largest size of a memory pool, in bytes.

        Raises:
            UnknownNameError: no device has such a pool.
            ConfigError: the device would refuse this size.
        """
        _, found = _pool(pool)
        pool_size = whole_number(pool_size, f"limit of memory pool {found.name}")
        found.check_limit(pool_size)
        self._pool_limits[found.name] = pool_size

    def get_memory_pool_limit(self, pool: str) -> int | None:
        """The largest size of a memory pool in bytes: the one that was set, or the platform's default. None: no limit.

        Raises:
            UnknownNameError: no device has such a pool.
        """
        target, found = _pool(pool)
        return self._pool_limits.get(found.name, found.default_for(self.platform(target.device).family))


def _pool(name: str) -> tuple[Target, MemoryPool]:
    known = []
    for target in registry.targets_in_turn():
        for pool in target.memory_pools:
            if isinstance(name, str) and name.upper() == pool.name:
                return target, pool
            known.append(pool.name)
    raise UnknownNameError("memory pool", str(name), known)
