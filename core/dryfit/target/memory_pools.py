"""Named memories of a device, with the rules for their sizes."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dryfit.errors import ConfigError


@attrs.frozen
class MemoryPool:
    """A memory of a device.

    Attributes:
        name: TensorRT's `MemoryPoolType` where it has one: `WORKSPACE`, `DLA_MANAGED_SRAM`, ...
        default_bytes: platform family to default limit; the key "" holds for the others. None means no limit.
        minimum_bytes: the least limit that can be set.
        power_of_two: whether the limit has to be a power of two.
        alignment_bytes: every buffer in the pool starts at a multiple of this.
        holds: what the planner puts there: `activations`, `weights`, `cache` or `workspace`.
        per: `segment` or `engine`: what one limit speaks of.
        source: document and section.
    """

    name: str
    default_bytes: Mapping[str, int | None]
    holds: str
    minimum_bytes: int = 0
    power_of_two: bool = False
    alignment_bytes: int = 64
    per: str = "engine"
    source: str = ""

    def default_for(self, family: str) -> int | None:
        """The default limit on a platform family; None means no limit."""
        return self.default_bytes.get(family, self.default_bytes.get(""))

    def check_limit(self, limit_bytes: int) -> None:
        """Refuse a limit that the device would refuse.

        Raises:
            ConfigError: the limit is too small, or no power of two where one is needed.
        """
        power = limit_bytes > 0 and limit_bytes & (limit_bytes - 1) == 0
        if limit_bytes < self.minimum_bytes or (self.power_of_two and not power):
            shape = "a power of two of " if self.power_of_two else ""
            raise ConfigError(
                "The memory pool limit is not allowed",
                where=f"memory pool {self.name}",
                found=f"{limit_bytes} bytes",
                allowed=f"{shape}at least {self.minimum_bytes} bytes",
                source=self.source,
            )
