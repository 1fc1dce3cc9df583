"""Offsets of buffers in one memory: buffers that are live at the same time do not overlap, and the total is small.

The problem (dynamic storage allocation) is NP-hard. A few fast heuristics are tried, each repaired where it is worst,
until one is within 1 % of the largest live set, which is a lower bound. The result is deterministic.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dryfit.errors import BuildError

Buffer = tuple[int, int, int]
"""(size in bytes, first step, last step): alive from its first to its last step, both included."""

GOOD_ENOUGH = 1.01
"""Times the largest live set: a plan as small as this is taken."""

STEPS_ALLOWED = 500_000
"""How often, in all, a buffer may be placed or compared with another that lives at its time: about two seconds.
Networks of a thousand layers need a few thousand for one placement of everything."""

REPAIRS = 30
"""How often one way of placing is repaired. Measured on the networks of the tests: fewer than 30 bring it to the
largest live set where they can at all."""


class MemoryPlan(NamedTuple):
    """The offsets of the buffers, in the given order, and their total size in bytes."""

    offsets: list[int]
    total: int


def plan_memory(buffers: Sequence[Buffer], alignment: int = 64) -> MemoryPlan:
    """Return offsets, as multiples of `alignment`, at which buffers that are live at the same step do not overlap.

    A buffer of size 0 has the offset 0 and takes no memory.

    Raises:
        BuildError: A size is negative, or a buffer ends before it begins.

    Example:
        >>> plan_memory([(100, 0, 1), (50, 1, 2), (100, 2, 3)], alignment=1)
        MemoryPlan(offsets=[0, 100, 0], total=150)
    """
    plan = _planned(tuple(buffers), alignment)
    return MemoryPlan([*plan.offsets], plan.total)


@functools.lru_cache(maxsize=64)
def _planned(buffers: tuple[Buffer, ...], alignment: int) -> MemoryPlan:
    """Return the plan. It is cached by sizes and steps, because cuts and trials of a network request the same again."""
    for index, (size, first, last) in enumerate(buffers):
        if size < 0 or last < first:
            raise BuildError(
                "A buffer must have a size of at least 0 and end after it begins",
                where=f"buffer {index}",
                found=f"{size} bytes from step {first} to {last}",
                remedy="Report this to the maintainers of the kernel that asks for the buffer",
            )
    aligned = [(-(-size // alignment) * alignment, first, last) for size, first, last in buffers]
    live = [index for index, (size, _, _) in enumerate(aligned) if size]
    lowest, pairs = _live_sets(aligned, live)
    best = _place_in_time(aligned, live)
    placements = STEPS_ALLOWED // (pairs + len(live) + 1)
    if not placements or best.total == lowest:
        return best
    best = min(best, _place_from_both_ends(aligned, live, lowest), key=lambda plan: plan.total)
    ways = list(itertools.product(_ADVANCES, _PRIORITIES))
    for advance, priority in ways[:placements]:
        if best.total <= GOOD_ENOUGH * lowest:
            break
        order = sorted(live, key=lambda index: (*priority(aligned[index]), index))
        repairs = min(REPAIRS, placements // len(ways))
        best = min(best, _repaired(aligned, order, advance, repairs, lowest), key=lambda plan: plan.total)
    return best


def largest_live_set(buffers: Sequence[Buffer], alignment: int = 64) -> int:
    """Return the bytes of the largest set of simultaneously live buffers, the lower bound of any plan."""
    aligned = [(-(-size // alignment) * alignment, first, last) for size, first, last in buffers]
    return _live_sets(aligned, range(len(aligned)))[0]


_PRIORITIES: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (
    lambda buffer: (buffer[1] - buffer[2], -buffer[0]),
    lambda buffer: (-buffer[0] * (buffer[2] - buffer[1] + 1), buffer[1]),
    lambda buffer: (-buffer[0], buffer[1]),
)
"""Long-lived buffers first; or large times long-lived; or large, as their gaps are the hardest to fill."""

_ADVANCES: tuple[Callable[[int], int], ...] = (lambda position: 0, lambda position: position // 2)
"""Where a repair moves the buffer that lies highest: to the front of the order, or half of the way."""


def _live_sets(buffers: Sequence[Buffer], indices: Sequence[int]) -> tuple[int, int]:
    """Return (bytes of the largest live set, number of pairs of buffers that are live at the same time)."""
    ends: list[tuple[int, int]] = []
    alive_bytes = largest = pairs = 0
    for index in sorted(indices, key=lambda index: buffers[index][1]):
        size, first, last = buffers[index]
        while ends and ends[0][0] < first:
            alive_bytes -= heapq.heappop(ends)[1]
        pairs += len(ends)
        heapq.heappush(ends, (last, size))
        alive_bytes += size
        largest = max(largest, alive_bytes)
    return largest, pairs


def _place_in_time(buffers: Sequence[Buffer], indices: Sequence[int]) -> MemoryPlan:
    """Place buffers like an allocator at run time: in the order of first steps, each into the tightest gap.

    The gaps are stored twice, by offset (to merge neighbors) and by size (to find the tightest).
    """
    offsets = [0] * len(buffers)
    ends: list[tuple[int, int]] = []
    gap_at: list[tuple[int, int]] = []
    gap_by_size: list[tuple[int, int]] = []
    top = 0

    def add_gap(start: int, end: int) -> None:
        at = bisect.bisect(gap_at, (start, end))
        if at < len(gap_at) and gap_at[at][0] == end:
            end = remove_gap(at)[1]
        if at and gap_at[at - 1][1] == start:
            start = remove_gap(at - 1)[0]
            at -= 1
        gap_at.insert(at, (start, end))
        bisect.insort(gap_by_size, (end - start, start))

    def remove_gap(at: int) -> tuple[int, int]:
        start, end = gap_at.pop(at)
        del gap_by_size[bisect.bisect_left(gap_by_size, (end - start, start))]
        return start, end

    for index in sorted(indices, key=lambda index: (buffers[index][1], -buffers[index][0], index)):
        size, first, last = buffers[index]
        while ends and ends[0][0] < first:
            ended = heapq.heappop(ends)[1]
            add_gap(offsets[ended], offsets[ended] + buffers[ended][0])
        tightest = bisect.bisect_left(gap_by_size, (size, 0))
        if tightest < len(gap_by_size):
            start = gap_by_size[tightest][1]
            _, end = remove_gap(bisect.bisect_left(gap_at, (start, 0)))
        elif gap_at and gap_at[-1][1] == top:
            start, _ = remove_gap(len(gap_at) - 1)
            end = top = start + size
        else:
            start, end = top, top + size
            top = end
        if start + size < end:
            add_gap(start + size, end)
        offsets[index] = start
        heapq.heappush(ends, (last, index))
    return MemoryPlan(offsets, top)


def _place_from_both_ends(buffers: Sequence[Buffer], indices: Sequence[int], capacity: int) -> MemoryPlan:
    """Place in the order of first steps, alternating between the lowest and highest free offset below `capacity`.

    In a chain of layers, where each buffer overlaps only its predecessor and successor in time, this needs only the
    largest pair of neighbors. A buffer that does not fit is placed on top of all others.
    """
    offsets = [0] * len(buffers)
    alive: list[tuple[int, int, int]] = []
    total, from_top = 0, False
    for index in sorted(indices, key=lambda index: (buffers[index][1], -buffers[index][0], index)):
        size, first, last = buffers[index]
        alive = [other for other in alive if other[2] >= first]
        edges = [0, *(edge for start, end, _ in alive for edge in (start, end)), max(capacity, total)]
        gaps = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end - start >= size]
        if not gaps:
            gaps = [(alive[-1][1], alive[-1][1] + size)]
        offset = gaps[-1][1] - size if from_top else gaps[0][0]
        from_top = not from_top
        offsets[index] = offset
        bisect.insort(alive, (offset, offset + size, last))
        total = max(total, offset + size)
    return MemoryPlan(offsets, total)


def _repaired(
    buffers: Sequence[Buffer], order: list[int], advance: Callable[[int], int], repairs: int, lowest: int
) -> MemoryPlan:
    """Return the best of several successive placements: each one places the highest buffer earlier."""
    plan = best = _place_in_order(buffers, order)
    for _ in range(repairs):
        if best.total <= GOOD_ENOUGH * lowest:
            break
        position = next(
            position for position, index in enumerate(order) if plan.offsets[index] + buffers[index][0] == plan.total
        )
        order.insert(advance(position), order.pop(position))
        plan = _place_in_order(buffers, order)
        best = min(best, plan, key=lambda one: one.total)
    return best


def _place_in_order(buffers: Sequence[Buffer], order: Sequence[int]) -> MemoryPlan:
    """Place buffers in this order, each into the tightest gap between placed buffers that are live at the same time."""
    offsets = [0] * len(buffers)
    total = 0
    first_steps = sorted({buffers[index][1] for index in order})
    placed = _PlacedByTime(len(first_steps))
    for index in order:
        size, first, last = buffers[index]
        begin = bisect.bisect_left(first_steps, first)
        end = bisect.bisect_right(first_steps, last)
        neighbours = sorted((offsets[other], buffers[other][0]) for other in placed.alive(begin, end))
        offset = _tightest_gap(neighbours, size)
        offsets[index] = offset
        placed.add(index, begin, end)
        total = max(total, offset + size)
    return MemoryPlan(offsets, total)


def _tightest_gap(neighbours: Sequence[tuple[int, int]], size: int) -> int:
    """Return the offset of the smallest gap of at least `size` bytes between sorted (offset, size) neighbors."""
    top = 0
    best: tuple[int, int] | None = None
    for offset, neighbour_size in neighbours:
        gap = offset - top
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, top)
        top = max(top, offset + neighbour_size)
    return top if best is None else best[1]


class _PlacedByTime:
    """Placed buffers, indexed by lifetime.

    Time is numbered by the distinct first steps. Each buffer is listed where it starts, and in the nodes of a binary
    tree over time that together cover its lifetime: the buffers live at a time are on one path from a leaf to the root.
    """

    def __init__(self, times: int) -> None:
        self._times = times
        self._beginning: list[list[int]] = [[] for _ in range(times)]
        self._covering: list[list[int]] = [[] for _ in range(2 * times)]

    def add(self, index: int, begin: int, end: int) -> None:
        """Add a buffer that is live from `begin` up to before `end`."""
        self._beginning[begin].append(index)
        low, high = begin + self._times, end + self._times
        while low < high:
            if low & 1:
                self._covering[low].append(index)
                low += 1
            if high & 1:
                high -= 1
                self._covering[high].append(index)
            low >>= 1
            high >>= 1

    def alive(self, begin: int, end: int) -> list[int]:
        """Return the placed buffers that are live at any time from `begin` up to before `end`."""
        found: list[int] = []
        node = begin + self._times
        while node:
            found += self._covering[node]
            node >>= 1
        for time in range(begin + 1, end):
            found += self._beginning[time]
        return found
