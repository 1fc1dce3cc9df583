"""The cheapest division of layers between two devices, as a minimum cut: exact for costs of layers and pairs.

The layers are numbers. Each layer is on the first or second device and has a cost on each. A layer that runs in one
step with the layer before it costs nothing there, and its standalone cost if the other is on the other device. A tensor
costs once for each direction in which it moves, regardless of the number of readers. All of these are costs of pairs
that are paid if two nodes are on different sides, so a cut of least capacity between a source (the first device) and a
sink (the second) is the best division.

Source: H. S. Stone, "Multiprocessor Scheduling with the Aid of Network Flow Algorithms", 1977, for the reduction;
Y. Dinitz, 1970, for the maximum flow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from dryfit.attrs_classes import frozen


@frozen
class Following:
    """A layer that runs in one step with the layer before it.

    Attributes:
        layer, before: numbers of the two layers.
        alone_on_first, alone_on_second: cost of the layer on each device without the other layer.
    """

    layer: int
    before: int
    alone_on_first: int
    alone_on_second: int


@frozen
class CutFlow:
    """A tensor with the cost of moving it.

    Attributes:
        giver: number of the layer that computes the tensor.
        takers: numbers of the layers that read the tensor.
        to_first: cost if the giver is on the second device and a taker on the first.
        to_second: cost of the opposite direction.
    """

    giver: int
    takers: Sequence[int]
    to_first: int
    to_second: int


@frozen
class SideCosts:
    """The costs of a division. All costs are integers, at least 0.

    Attributes:
        on_first, on_second: cost of each layer on a device; None if it cannot run there.
        followings: layers that share a step with another layer.
        flows: tensors between layers.
        tied: pairs of layers that must be on the same device.
    """

    on_first: Sequence[int | None]
    on_second: Sequence[int | None]
    followings: Sequence[Following] = ()
    flows: Sequence[CutFlow] = ()
    tied: Sequence[tuple[int, int]] = ()

    def total(self, sides: Sequence[bool]) -> int | None:
        """Return the cost of a division (True: on the first device); None if a layer cannot run on its device."""
        costs = [self.on_first[node] if first else self.on_second[node] for node, first in enumerate(sides)]
        total = 0
        for cost in costs:
            if cost is None:
                return None
            total += cost
        for one in self.followings:
            if sides[one.layer] != sides[one.before]:
                total += one.alone_on_first if sides[one.layer] else one.alone_on_second
        for flow in self.flows:
            if any(sides[taker] != sides[flow.giver] for taker in flow.takers):
                total += flow.to_second if sides[flow.giver] else flow.to_first
        return None if any(sides[one] != sides[other] for one, other in self.tied) else total


def cheapest_sides(costs: SideCosts) -> list[bool]:
    """Return the layers on the first device in a division of least cost; on a tie, the one with most layers there.

    Raises:
        ValueError: A layer cannot run on either device, or tied layers have no device in common.
    """
    count = len(costs.on_first)
    source, sink = count, count + 1
    flow = _Flow(count + 2)
    never = 1 + _finite_total(costs)
    for node, (first, second) in enumerate(zip(costs.on_first, costs.on_second, strict=True)):
        flow.add(source, node, never if second is None else second)
        flow.add(node, sink, never if first is None else first)
    for one in costs.followings:
        flow.add(one.layer, one.before, one.alone_on_first)
        flow.add(one.before, one.layer, one.alone_on_second)
    for layer, other in costs.tied:
        flow.add(layer, other, never)
        flow.add(other, layer, never)
    for tensor in costs.flows:
        if tensor.to_first:
            entering = flow.new_node()
            flow.add(entering, tensor.giver, tensor.to_first)
            for taker in tensor.takers:
                flow.add(taker, entering, never)
        if tensor.to_second:
            leaving = flow.new_node()
            flow.add(tensor.giver, leaving, tensor.to_second)
            for taker in tensor.takers:
                flow.add(leaving, taker, never)
    if flow.maximise(source, sink) >= never:
        raise ValueError("no partition places every layer on a device that supports it")
    reaching = flow.reaching(sink)
    return [node not in reaching for node in range(count)]


def _finite_total(costs: SideCosts) -> int:
    """Return a number larger than the cost of any division."""
    total = sum(cost for cost in (*costs.on_first, *costs.on_second) if cost is not None)
    total += sum(one.alone_on_first + one.alone_on_second for one in costs.followings)
    return total + sum(one.to_first + one.to_second for one in costs.flows)


class _Flow:
    """A network of edges with capacities, each stored with its reverse edge."""

    def __init__(self, nodes: int) -> None:
        self._edges: list[list[int]] = [[] for _ in range(nodes)]
        self._ends: list[int] = []
        self._left: list[int] = []

    def new_node(self) -> int:
        """Add a node and return its number."""
        self._edges.append([])
        return len(self._edges) - 1

    def add(self, start: int, end: int, capacity: int) -> None:
        """Add an edge; an edge without capacity is omitted."""
        if capacity:
            for source, target, left in ((start, end, capacity), (end, start, 0)):
                self._edges[source].append(len(self._ends))
                self._ends.append(target)
                self._left.append(left)

    def maximise(self, source: int, sink: int) -> int:
        """Maximize the flow and return it."""
        total = 0
        while (depths := self._depths(source, sink)) is not None:
            tried = [0] * len(self._edges)
            while pushed := self._push(source, sink, depths, tried):
                total += pushed
        return total

    def reaching(self, sink: int) -> set[int]:
        """Return the nodes from which more could still flow to the sink."""
        found, waiting = {sink}, [sink]
        while waiting:
            for edge in self._edges[waiting.pop()]:
                before = self._ends[edge]
                if before not in found and self._left[edge ^ 1]:
                    found.add(before)
                    waiting.append(before)
        return found

    def _depths(self, source: int, sink: int) -> list[int] | None:
        """Return the distance of each node from the source, -1 if unreachable; None if the sink is unreachable."""
        depths = [-1] * len(self._edges)
        depths[source] = 0
        waiting = deque([source])
        while waiting:
            node = waiting.popleft()
            for edge in self._edges[node]:
                end = self._ends[edge]
                if self._left[edge] and depths[end] < 0:
                    depths[end] = depths[node] + 1
                    waiting.append(end)
        return depths if depths[sink] >= 0 else None

    def _push(self, source: int, sink: int, depths: Sequence[int], tried: list[int]) -> int:
        """Send flow along one shortest path; 0 if none is left. `tried` counts the exhausted edges of each node."""
        way: list[int] = []
        node = source
        while node != sink:
            edges = self._edges[node]
            if tried[node] == len(edges):
                if not way:
                    return 0
                node = self._ends[way.pop() ^ 1]
                tried[node] += 1
                continue
            edge = edges[tried[node]]
            end = self._ends[edge]
            if self._left[edge] and depths[end] == depths[node] + 1:
                way.append(edge)
                node = end
            else:
                tried[node] += 1
        pushed = min(self._left[edge] for edge in way)
        for edge in way:
            self._left[edge] -= pushed
            self._left[edge ^ 1] += pushed
        return pushed
