"""Folding of graphs: equal blocks of consecutive layers become one group."""

from __future__ import annotations

import itertools
import random

from dryfit.reporting.folding import FOLD_ABOVE, MOST_NODES, Group, Item, folded, interval, writers_first


def chain(count: int) -> dict[int, list[int]]:
    return {layer: [layer - 1] for layer in range(1, count)}


def leaves(items: list[Item]) -> list[int]:
    found = (leaves(list(one.children)) if isinstance(one, Group) else [one] for one in items)
    return [*itertools.chain.from_iterable(found)]


def test_a_small_graph_is_not_folded() -> None:
    assert folded(["a", "b"] * (FOLD_ABOVE // 2), chain(FOLD_ABOVE)) == list(range(FOLD_ABOVE))


def test_equal_blocks_are_one_group_of_groups() -> None:
    kinds = ["stem", *["convolution", "bias", "activation"] * 50, "head"]
    first, blocks, last = folded(kinds, chain(len(kinds)))
    assert (first, last) == (0, 151)
    assert isinstance(blocks, Group)
    assert blocks.is_repeat
    assert [interval(one) for one in blocks.children] == [(at, at + 3) for at in range(1, 151, 3)]


def test_blocks_begin_where_the_fewest_tensors_cross() -> None:
    kinds = ["b", *["a", "b", "c", "add"] * 30, "a"]  # could begin one layer earlier or later, too
    sources = chain(len(kinds))
    for start in range(1, 121, 4):
        sources[start + 3] = [start + 2, start - 1]  # a connection around each block
    (group,) = (one for one in folded(kinds, sources) if isinstance(one, Group))
    assert interval(group.children[0]) == (1, 5)


def test_blocks_with_other_connections_are_not_equal() -> None:
    kinds = ["a", "b", "c"] * 60
    sources = chain(180)
    for start in range(90, 180, 3):
        sources[start + 2] = [start + 1, start]
    groups = [one for one in folded(kinds, sources) if isinstance(one, Group)]
    assert [interval(one) for one in groups] == [(0, 90), (90, 180)]


def test_any_graph_is_folded_to_few_nodes_and_loses_no_layer() -> None:
    source = random.Random(1)  # noqa: S311  no secret
    for count in (150, 2000):
        items = folded([source.randrange(50) for _ in range(count)], chain(count))
        assert len(items) <= 2 * MOST_NODES
        assert leaves(items) == list(range(count))


def test_writers_come_first_and_else_the_order_stays() -> None:
    assert writers_first(4, {0: [3], 2: [1]}) == [3, 0, 1, 2]
    assert writers_first(3, chain(3)) == [0, 1, 2]
