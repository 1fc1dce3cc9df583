"""The least memory that any plan needs, for tests of plans."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.engine.memory_planner import Buffer, _live_sets


def largest_live_set(buffers: Sequence[Buffer], alignment: int = 64) -> int:
    """Bytes of the largest set of buffers that are alive together, as the planner finds it."""
    aligned = [(-(-size // alignment) * alignment, first, last) for size, first, last in buffers]
    return _live_sets(aligned, range(len(aligned)))[0]
