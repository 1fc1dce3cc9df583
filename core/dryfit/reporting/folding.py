"""Folding of large graphs: equal blocks of consecutive layers become one node, which the reader can open.

Layers are taken in an order in which writers come before readers. Groups are intervals of that order, so that no cycle
can arise between them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from dryfit.attrs_classes import frozen

FOLD_ABOVE = 100
"""Layers above which a graph is folded. Our choice: more nodes are not taken in at a glance, even when zoomed out."""
MOST_NODES = 40
"""Nodes of one level at which folding stops."""
LEAST_SAVING = 3
"""Nodes that a fold must save."""
MOST_TRIES = 50
"""Repetitions that are examined, the largest first, before no more are searched for."""


@frozen
class Group:
    """Consecutive layers that are drawn as one node.

    Attributes:
        start, stop: the interval of layers.
        children: groups and single layers, in order.
        is_repeat: whether the children are equal blocks.
    """

    start: int
    stop: int
    children: Sequence[Item]
    is_repeat: bool


Item = int | Group


def interval(item: Item) -> tuple[int, int]:
    """Return the first layer of an item, and the one after its last."""
    return (item.start, item.stop) if isinstance(item, Group) else (item, item + 1)


def writers_first(count: int, sources: Mapping[int, Sequence[int]]) -> list[int]:
    """Return layers in an order in which writers come before readers, as close to the given one as possible.

    Args:
        count: number of layers.
        sources: layer to the layers that write its inputs.
    """
    order: dict[int, None] = {}
    for layer in range(count):
        waiting = [layer]
        while waiting:
            missing = [one for one in sources.get(waiting[-1], ()) if one not in order and one not in waiting]
            if missing:
                waiting.append(missing[0])
            else:
                order.setdefault(waiting.pop())
    return list(order)


def folded(kinds: Sequence[Hashable], sources: Mapping[int, Sequence[int]]) -> list[Item]:
    """Fold the layers of a graph; one that is not above `FOLD_ABOVE` stays as it is.

    Args:
        kinds: what makes layers equal, for each layer; writers come before readers.
        sources: layer to the layers that write its inputs.
    """
    items: list[Item] = list(range(len(kinds)))
    if len(kinds) <= FOLD_ABOVE:
        return items
    return _Folding(kinds, sources).fold(items)


class _Folding:
    def __init__(self, kinds: Sequence[Hashable], sources: Mapping[int, Sequence[int]]) -> None:
        self._sources = sources
        self._symbols: dict[Hashable, int] = {}
        self._layers = [self._symbol(("layer", kind)) for kind in kinds]
        self._groups: dict[tuple[int, int], int] = {}
        self._widths = _border_widths(len(kinds), sources)

    def _symbol(self, meaning: Hashable) -> int:
        return self._symbols.setdefault(meaning, len(self._symbols))

    def _symbol_of(self, item: Item) -> int:
        return self._groups[item.start, item.stop] if isinstance(item, Group) else self._layers[item]

    def fold(self, items: list[Item]) -> list[Item]:
        while len(items) > MOST_NODES:
            found = next(self._repetitions(items), None)
            if found is None:
                break
            start, period, count = found
            items[start : start + period * count] = [self._repeat(items[start : start + period * count], period)]
        while len(items) > 2 * MOST_NODES:
            items = self._chunks(items)
        return items

    def _repeat(self, items: list[Item], period: int) -> Group:
        blocks = [self._block(items[at : at + period]) for at in range(0, len(items), period)]
        return self._group(blocks, is_repeat=True)

    def _block(self, items: list[Item]) -> Item:
        return items[0] if len(items) == 1 else self._group(self.fold(items), is_repeat=False)

    def _group(self, items: list[Item], *, is_repeat: bool) -> Group:
        start, stop = interval(items[0])[0], interval(items[-1])[1]
        group = Group(start, stop, items, is_repeat)
        meaning = (is_repeat, tuple(map(self._symbol_of, items)), self._links(start, stop))
        self._groups[start, stop] = self._symbol(meaning)
        return group

    def _links(self, start: int, stop: int) -> frozenset[tuple[int, int]]:
        """Edges inside an interval, by the places of both layers in it."""
        return frozenset(
            (source - start, layer - start)
            for layer in range(start, stop)
            for source in self._sources.get(layer, ())
            if source >= start
        )

    def _repetitions(self, items: Sequence[Item]) -> Iterator[tuple[int, int, int]]:
        """(first item, items of a block, blocks) of repetitions, those of most layers first."""
        symbols = np.array([self._symbol_of(one) for one in items])
        candidates = []
        for period in range(1, len(items) // 2 + 1):
            equal = np.concatenate(([0], symbols[:-period] == symbols[period:], [0]))
            edges = np.flatnonzero(np.diff(equal))
            for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                count = (last - first + period) // period
                if count >= 2 and period * count - 1 >= LEAST_SAVING:
                    candidates.append((-period * count, period, first, last + period))
        for _, period, first, last in sorted(candidates)[:MOST_TRIES]:
            start = self._best_start(items, period, first, last)
            count = self._equal_blocks(items, start, period, (last - start) // period)
            if count >= 2 and period * count - 1 >= LEAST_SAVING:
                yield start, period, count

    def _best_start(self, items: Sequence[Item], period: int, first: int, last: int) -> int:
        """The start at which the fewest tensors cross the borders of the blocks."""
        count = (last - first) // period

        def crossing(start: int) -> int:
            return sum(self._widths[interval(items[start + at * period])[0]] for at in range(count))

        return min(range(first, last - count * period + 1), key=lambda start: (crossing(start), start))

    def _equal_blocks(self, items: Sequence[Item], start: int, period: int, count: int) -> int:
        """How many blocks from the first one on have the same edges inside."""
        links = [
            self._links(interval(items[at])[0], interval(items[at + period - 1])[1])
            for at in range(start, start + count * period, period)
        ]
        return next((index for index, one in enumerate(links) if one != links[0]), count)

    def _chunks(self, items: Sequence[Item]) -> list[Item]:
        """Fold items that do not repeat, cut where the fewest tensors cross."""
        most = max(2 * len(items) // MOST_NODES, 4)
        chunks: list[Item] = []
        start = 0
        while start < len(items):
            ends = range(start + most // 2, start + most + 1)
            end = min(ends, key=lambda at: (self._width(items, at), -at))
            chunks.append(self._block(list(items[start:end])))
            start = end
        return chunks

    def _width(self, items: Sequence[Item], at: int) -> int:
        return self._widths[interval(items[at])[0]] if at < len(items) else 0


def _border_widths(count: int, sources: Mapping[int, Sequence[int]]) -> list[int]:
    """Number of layers before each place whose outputs are read at it or later."""
    last = [0] * count
    for layer in range(count):
        for source in sources.get(layer, ()):
            last[source] = max(last[source], layer)
    changes = np.zeros(count + 2, dtype=np.int64)
    for source, reader in enumerate(last):
        if reader:
            changes[source + 1] += 1
            changes[reader + 1] -= 1
    widths: list[int] = np.cumsum(changes).tolist()
    return widths
