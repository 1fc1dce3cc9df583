"""Memory pools of a device and the rules for their sizes, shared by all devices that declare pools."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.rule import Rule

if TYPE_CHECKING:
    from dryfit.network.data_types import DataType
    from dryfit.network.layer import Layer


_POOLS = "TensorRT 10 developer guide, Working with DLA: Customizing DLA Memory Pools"

SIZE = Rule(
    "memory_pool.size",
    "The limit of a memory pool must be at least its minimum, and a power of two where the pool requires it",
    _POOLS,
    "Set the limit to the next power of two, or to the minimum",
    "MP-02",
)
SEGMENT = Rule(
    "memory_pool.segment",
    "A segment must fit the limit of each memory pool, which applies to each segment separately; a segment that does "
    "not fit is cut into segments that fit, where the device's target allows that; else it moves to the fallback "
    "device, or is refused",
    _POOLS,
    "Raise the limit: set_memory_pool_limit, or --mem-pool-size",
    "MP-03, MP-05",
)
CACHE = Rule(
    "memory_pool.cache",
    "The limit of a memory pool that is a cache is lowered to what a core has of it, shared by the segments that use "
    "it at the same time",
    f"{_POOLS}; lowering the limit, where the device would only be slower, is our interpretation",
    "Set the limit to the value in the message, or leave it at its default",
    "MP-04, MP-09",
    severity="warning",
)
CORE = Rule(
    "memory_pool.core",
    "Segments that hold a memory pool at the same time must fit what a core has of it, where that limit is strict",
    _POOLS,
    "Set the limit to the value in the message",
    "MP-08",
)

MEMORY_POOL_RULES: Mapping[str, Rule] = {rule.id: rule for rule in (SIZE, SEGMENT, CACHE, CORE)}
"""Id to rule."""


@frozen
class WeightsOfLayer:
    """Weights of a layer, passed to its device to compute their size in a pool.

    Attributes:
        layer: the layer that reads them.
        parameter: name of the layer's parameter; "" for weights from an input.
        input_index: index of the layer's constant input; -1 for a parameter.
        shape: extents.
        dtype: element type: of a parameter as stored in the network, of a constant as read by the layer.
        precision: computation type of the layer.
        family: family of the platform.
    """

    layer: Layer
    parameter: str
    input_index: int
    shape: tuple[int, ...]
    dtype: DataType
    precision: DataType
    family: str

    @property
    def computed_bytes(self) -> int:
        """Size in bytes in the computation type: parameters are converted to it, constants already have it."""
        is_narrowed = self.parameter and self.dtype.is_floating_point and self.precision.bits < self.dtype.bits
        return (self.precision if is_narrowed else self.dtype).bytes_of(math.prod(self.shape))


@frozen
class MemoryPool:
    """A memory of a device.

    Attributes:
        name: TensorRT's `MemoryPoolType` if there is one: `WORKSPACE`, `DLA_MANAGED_SRAM`, ...
        default_bytes: platform, or platform family, to default limit; the key "" applies to all others. None: no
            limit.
        minimum_bytes: minimum limit that can be set.
        power_of_two: whether the limit must be a power of two.
        alignment_bytes: alignment of every buffer in the pool.
        holds: contents that the planner allocates: `activations`, `weights`, `cache` or `workspace`. A cache holds
            those activations that fit: it is never exceeded, and a small cache only makes the device slower.
        per: `segment` or `engine`: what one limit applies to.
        core_bytes: platform family to the bytes available per core, for all segments loaded at the same time; no entry
            if that is not a strict limit.
        segments_at_once: number of segments of one engine whose pools a core holds at the same time. Their total is
            kept within `core_bytes`: the limit of a cache is lowered; for any other memory, exceeding it is an error.
        stored_bytes: function that returns the bytes that weights occupy in this pool. None: their size in the
            computation type.
        source: document and section.
    """

    name: str
    default_bytes: Mapping[str, int | None]
    holds: str
    minimum_bytes: int = 0
    power_of_two: bool = False
    alignment_bytes: int = 64
    per: str = "engine"
    core_bytes: Mapping[str, int] = attrs.field(factory=dict)
    segments_at_once: int = 1
    stored_bytes: Callable[[WeightsOfLayer], int] | None = None
    source: str = ""

    def default_for(self, family: str, platform: str = "") -> int | None:
        """Return the default limit on a platform: its own, else that of its family; None for no limit."""
        keys = [one for one in (platform or family, family, "") if one in self.default_bytes]
        return self.default_bytes[keys[0]] if keys else None

    def bytes_of(self, weights: WeightsOfLayer) -> int:
        """Return the bytes that weights occupy in this pool."""
        return weights.computed_bytes if self.stored_bytes is None else self.stored_bytes(weights)

    def check_limit(self, limit_bytes: int) -> None:
        """Raise if the device would reject a limit.

        Raises:
            ConfigError: The limit is too small, or must be a power of two and is not.
        """
        power = limit_bytes > 0 and limit_bytes & (limit_bytes - 1) == 0
        if limit_bytes < self.minimum_bytes or (self.power_of_two and not power):
            shape = "a power of two of " if self.power_of_two else ""
            raise ConfigError(
                f"Invalid memory pool limit [{SIZE.id}]",
                where=f"memory pool {self.name}",
                found=f"{limit_bytes} bytes",
                allowed=f"{shape}at least {self.minimum_bytes} bytes",
                source=self.source,
                remedy=self._nearest(limit_bytes),
            )

    def _nearest(self, limit_bytes: int) -> str:
        """What to set instead of a limit that is not allowed."""
        least = self.minimum_bytes
        if not self.power_of_two:
            return f"Set it to {least} bytes or more"
        following = max(_next_power(limit_bytes), _next_power(least))
        previous = following // 2
        smaller = f", or to {previous}" if previous >= least else ""
        return f"Set it to {following} bytes, the next power of two{smaller}"


def _next_power(value: int) -> int:
    """The least power of two that is not below a value."""
    return 1 << max(value - 1, 0).bit_length()
