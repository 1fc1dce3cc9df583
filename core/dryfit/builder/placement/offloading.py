"""How many segments a device got of those that were to be its, and what memory they take together.

Source: TensorRT 10 developer guide, Working with DLA: Determining DLA Memory Pool Usage, for what is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.engine.plan import RejectedSegment, Segment


@attrs.frozen
class Offloading:
    """What became of the candidates of one device.

    Attributes:
        device: it.
        candidates: how many segments were to be its.
        offloaded: how many are.
        pools: memory pool to the bytes that these need in all.
        rejected: the others.
    """

    device: str
    candidates: int
    offloaded: int
    pools: Mapping[str, int]
    rejected: Sequence[RejectedSegment]

    def __str__(self) -> str:
        pools = ", ".join(f"{size} bytes of {pool}" for pool, size in self.pools.items())
        return f"{self.device} segments: {self.offloaded} of {self.candidates} accepted; memory in total: {pools}"


def offloadings(segments: Sequence[Segment], rejected: Sequence[RejectedSegment]) -> list[Offloading]:
    """One record for each device that has memory pools for its segments, or lost one of them."""
    devices = [one.device for one in segments if one.pools] + [one.device for one in rejected]
    return [_of_device(device, segments, rejected) for device in dict.fromkeys(devices)]


def _of_device(device: str, segments: Sequence[Segment], rejected: Sequence[RejectedSegment]) -> Offloading:
    own = [one for one in segments if one.device == device]
    lost = [one for one in rejected if one.device == device]
    pools: dict[str, int] = {}
    for one in own:
        for pool, size in one.pools.items():
            pools[pool] = pools.get(pool, 0) + size
    return Offloading(device, len(own) + len(lost), len(own), pools, lost)
