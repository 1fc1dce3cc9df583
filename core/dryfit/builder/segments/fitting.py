"""Cutting a segment that is too large for its memory pools into parts that fit, in the order in which it runs.

Layers that run as one stay together, and each part is as long as it can be. What is asked of a part is only whether it
fits; the length is found by doubling and halving, so that n layers take about n log n of work.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from dryfit.network.layer import Layer

Unit = Sequence[Layer]
"""Layers that run as one."""


def parts_that_fit(units: Sequence[Unit], fits: Callable[[Sequence[Layer]], bool]) -> list[list[Layer]]:
    """The units in parts, each as long as fits; a unit that does not fit alone is a part of its own.

    Where all fit together, they are cut in the middle: the estimate was too small, and they are to become less.

    Args:
        units: in execution order.
        fits: whether layers fit their pools as one segment, by estimate; what is longer never fits where its beginning
            does not.
    """
    if len(units) > 1 and fits(_joined(units)):
        middle = len(units) // 2
        return [_joined(units[:middle]), _joined(units[middle:])]
    parts: list[list[Layer]] = []
    begin = 0
    while begin < len(units):
        end = _longest(begin, len(units), lambda first, last: fits(_joined(units[first:last])))
        parts.append(_joined(units[begin:end]))
        begin = end
    return parts


def _longest(begin: int, count: int, fits: Callable[[int, int], bool]) -> int:
    """The end of the longest part from `begin` that fits; at least one unit."""
    good, step = begin + 1, 1
    while good < count and fits(begin, min(good + step, count)):
        good, step = min(good + step, count), 2 * step
    bad = min(good + step, count + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(begin, middle) else (good, middle)
    return good


def units_in_order(
    layers: Sequence[Layer], joined: Iterable[Iterable[str]], edges: Iterable[tuple[str, str]]
) -> list[Unit]:
    """The layers of a segment as units, in an order in which they can run.

    Args:
        layers: of the segment, in execution order.
        joined: names of layers that run as one; a layer that runs with several of them joins these.
        edges: names of layers, the first of which gives what the second needs; also of layers of other segments.
    """
    number = {layer.name: index for index, layer in enumerate(layers)}
    parents = list(range(len(layers)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = index = parents[parents[index]]
        return index

    for names in joined:
        members = sorted(root(number[name]) for name in names if name in number)
        for member in members[1:]:
            low, high = sorted((root(members[0]), root(member)))
            parents[high] = low
    members_of: dict[int, list[int]] = {}
    for index in range(len(layers)):
        members_of.setdefault(root(index), []).append(index)
    before = {(root(number[one]), root(number[other])) for one, other in edges if one in number and other in number}
    order = _in_order(members_of, {pair for pair in before if pair[0] != pair[1]})
    if order is None:  # units wait for each other, so that only the layers can be put in order
        return [[layer] for layer in layers]
    return [[layers[index] for index in members_of[unit]] for unit in order]


def _in_order(units: Iterable[int], edges: Iterable[tuple[int, int]]) -> list[int] | None:
    """The units in the order of their first layers, as far as the edges allow; None where there is no order."""
    after: dict[int, list[int]] = {unit: [] for unit in units}
    waits = dict.fromkeys(after, 0)
    for source, target in sorted(edges):
        after[source].append(target)
        waits[target] += 1
    ready = [unit for unit, count in waits.items() if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for target in after[order[-1]]:
            waits[target] -= 1
            if not waits[target]:
                heapq.heappush(ready, target)
    return order if len(order) == len(after) else None


def _joined(units: Iterable[Unit]) -> list[Layer]:
    return [layer for unit in units for layer in unit]
