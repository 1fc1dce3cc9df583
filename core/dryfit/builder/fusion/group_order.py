"""The order in which layer groups run: each after what it reads, otherwise as their layers stand in the network."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from dryfit.errors import BuildError
from dryfit.target.group import LayerGroup


def in_order(groups: Sequence[LayerGroup]) -> list[int]:
    """Indices of the groups in an order in which they can run.

    Of the groups that could run next the one goes first whose last layer stands first in the network.

    Raises:
        BuildError: groups need each other's outputs, which only compiled segments can, since they run as one.
    """
    producer = {tensor.name: index for index, group in enumerate(groups) for tensor in group.outputs}
    needs = [{producer[tensor.name] for tensor in group.inputs if tensor.name in producer} for group in groups]
    readers: list[list[int]] = [[] for _ in groups]
    for index, needed in enumerate(needs):
        for source in needed:
            readers[source].append(index)
    missing = [len(needed) for needed in needs]
    ready = [(group.layers[-1].index, index) for index, group in enumerate(groups) if not missing[index]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (groups[reader].layers[-1].index, reader))
    if len(order) < len(groups):
        raise _circle([groups[index] for index in range(len(groups)) if missing[index]])
    return order


def _circle(groups: Sequence[LayerGroup]) -> BuildError:
    return BuildError(
        "A compiled segment needs what is computed from its own outputs, and it runs as one",
        where="segment group order",
        found=", ".join(repr(group.name) for group in groups[:10]),
        remedy="Build with fixed shapes, so that dimensions are known before the run, or let one of the layers run on "
        "another device",
    )
