"""The algorithm of partition, on numbers: nodes with colours in, segments out.

A segment is a connected set of nodes of one colour that can run as one unit: no path leaves it and comes back. The
graph of segments is therefore acyclic.

Two steps. The first gives each node its depth, the largest number of colour changes on a way to it, and joins
neighbours of one colour and depth: linear, and acyclic because every other edge leads to a greater depth. The second
joins what the first left apart without need, such as a segment that only waits for a branch which does not come from
it: two neighbouring segments can be joined exactly when their edge is the only way from one to the other. It keeps a
topological order of the segments and looks only between the two ends (Pearce and Kelly's bounded search), over at most
`SEARCHED_EDGES` edges in each direction, so that the whole stays linear.

The result is maximal in this sense: no two neighbouring segments of one colour can be joined without a cycle, as far as
a search of that length can tell.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

SEARCHED_EDGES = 100
"""Edges looked at in each direction before two segments are left apart. Our choice: in networks a way around a cut is
a few segments long, and the search stops at the first one it finds."""

ROUNDS = 8
"""How often the second step may go through the edges again, as each join can make another one possible."""


def partition_graph(colours: Sequence[int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """The segment of each node; segments are numbered in a topological order, nodes in theirs.

    Args:
        colours: one a node. The nodes are in a topological order.
        edges: (from, to) with from < to.
    """
    edges = sorted(set(edges))
    groups = _Groups(len(colours))
    depths = _depths(colours, edges)
    for source, target in edges:
        if colours[source] == colours[target] and depths[source] == depths[target]:
            groups.join(source, target)
    within = [
        (source, target)
        for source, target in edges
        if colours[source] == colours[target] and groups.root(source) != groups.root(target)
    ]
    if within:
        quotient = _Quotient(groups, edges, depths)
        for _ in range(ROUNDS):
            joined = [quotient.join_if_acyclic(source, target) for source, target in within]
            if not any(joined):
                break
            quotient.compact()
    return _number_in_topological_order(groups, edges, len(colours))


def _depths(colours: Sequence[int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """For each node the largest number of colour changes on a way to it.

    The edges are sorted by source, so that a node's depth is final before it is passed on.
    """
    depths = [0] * len(colours)
    for source, target in edges:
        depths[target] = max(depths[target], depths[source] + (colours[source] != colours[target]))
    return depths


class _Groups:
    """Disjoint sets of nodes; each is known by one of its nodes, its root."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def root(self, node: int) -> int:
        """The root of a node's set."""
        parents = self._parents
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node

    def join(self, first: int, second: int) -> int:
        """Make one set of two; its root is the smaller of theirs."""
        low, high = sorted((self.root(first), self.root(second)))
        self._parents[high] = low
        return low


class _Quotient:
    """The graph of segments while they are being joined, in a topological order that is kept valid."""

    def __init__(self, groups: _Groups, edges: Iterable[tuple[int, int]], depths: Sequence[int]) -> None:
        self._groups = groups
        roots = sorted({groups.root(node) for node in range(len(depths))}, key=lambda root: (depths[root], root))
        self._position = {root: position for position, root in enumerate(roots)}
        self._after: dict[int, list[int]] = {root: [] for root in roots}
        self._before: dict[int, list[int]] = {root: [] for root in roots}
        pairs = {(groups.root(source), groups.root(target)): None for source, target in edges}
        for source, target in pairs:
            if source != target:
                self._after[source].append(target)
                self._before[target].append(source)

    def join_if_acyclic(self, source: int, target: int) -> bool:
        """Join the segments of two neighbouring nodes if no other way leads from the first to the second."""
        first, second = self._groups.root(source), self._groups.root(target)
        if first == second:
            return False
        later = self._reachable(self._after, first, second, lambda place: place < self._position[second])
        if later is None:
            return False
        earlier = self._reachable(self._before, second, first, lambda place: place > self._position[first])
        if earlier is None:
            return False
        self._join(first, second, earlier, later)
        return True

    def compact(self) -> None:
        """Drop what joining left behind in the lists of neighbours: doubles, and edges inside a segment."""
        for edges in (self._after, self._before):
            for segment, neighbours in edges.items():
                present = {self._groups.root(neighbour): None for neighbour in neighbours}
                present.pop(segment, None)
                edges[segment] = list(present)

    def _reachable(
        self, edges: dict[int, list[int]], start: int, end: int, inside: Callable[[int], bool]
    ) -> list[int] | None:
        """The segments on ways from `start` that stay inside; None where one leads to `end`, or there are too many."""
        found: dict[int, None] = {}
        waiting = [start]
        looked_at = 0
        while waiting:
            segment = waiting.pop()
            looked_at += len(edges[segment])
            if looked_at > SEARCHED_EDGES:
                return None
            for neighbour in map(self._groups.root, edges[segment]):
                if neighbour == end:
                    if segment != start:
                        return None
                elif neighbour != start and neighbour not in found and inside(self._position[neighbour]):
                    found[neighbour] = None
                    waiting.append(neighbour)
        return list(found)

    def _join(self, first: int, second: int, earlier: list[int], later: list[int]) -> None:
        """Make one segment of two, between those that have to come earlier and those that have to come later."""
        position = self._position
        earlier.sort(key=position.__getitem__)
        later.sort(key=position.__getitem__)
        places = sorted(position[segment] for segment in (*earlier, first, second, *later))
        root = self._groups.join(first, second)
        other = second if root == first else first
        for segment, place in zip(earlier, places, strict=False):
            position[segment] = place
        position[root] = places[len(earlier)]
        for segment, place in zip(later, places[len(earlier) + 2 :], strict=True):
            position[segment] = place
        for edges in (self._after, self._before):
            longer, shorter = edges[root], edges.pop(other)
            if len(longer) < len(shorter):
                longer, shorter = shorter, longer
            longer.extend(shorter)
            edges[root] = longer


def _number_in_topological_order(groups: _Groups, edges: Iterable[tuple[int, int]], count: int) -> list[int]:
    """The number of each node's segment; where the order leaves a choice, the segment of the smallest node is first."""
    roots = [groups.root(node) for node in range(count)]
    pairs = {(roots[source], roots[target]): None for source, target in edges if roots[source] != roots[target]}
    after: dict[int, list[int]] = {root: [] for root in roots}
    waiting_for = dict.fromkeys(roots, 0)
    for source, target in pairs:
        after[source].append(target)
        waiting_for[target] += 1
    ready = [root for root, waits in waiting_for.items() if not waits]
    heapq.heapify(ready)
    numbers: dict[int, int] = {}
    while ready:
        root = heapq.heappop(ready)
        numbers[root] = len(numbers)
        for target in after[root]:
            waiting_for[target] -= 1
            if not waiting_for[target]:
                heapq.heappush(ready, target)
    return [numbers[root] for root in roots]
