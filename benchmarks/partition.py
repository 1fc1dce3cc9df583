"""How the time of partition grows with the number of layers: synthetic graphs of 1,000 to 100,000 layers.

A slope of 1 (ten times the layers, ten times the time) is linear. Run: `python benchmarks/partition.py`.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

from dryfit.builder.placement.graph_partition import partition_graph

SIZES = (1_000, 10_000, 100_000)
REPEATS = 3
Graph = tuple[list[int], list[tuple[int, int]]]


def one_device_chain(count: int) -> Graph:
    """Everything in one segment."""
    return [0] * count, [(node, node + 1) for node in range(count - 1)]


def alternating_chain(count: int) -> Graph:
    """As many segments as layers."""
    return [node % 2 for node in range(count)], [(node, node + 1) for node in range(count - 1)]


def runs_with_skips(count: int) -> Graph:
    """Runs of seven layers a device, with residual connections over them."""
    edges = [(node, node + 1) for node in range(count - 1)]
    edges += [(node - 9, node) for node in range(9, count, 5)]
    return [node // 7 % 2 for node in range(count)], edges


def nested_skips(count: int) -> Graph:
    """An alternating chain in which the first layer also feeds the last, the second the last but one, and so on."""
    colours, edges = alternating_chain(count)
    return colours, edges + [(node, count - 1 - node) for node in range(count // 2 - 1)]


def parallel_branches(count: int) -> Graph:
    """A stem, branches of nine alternating layers, and a layer that joins them all."""
    colours, edges = [0], []
    for branch in range(count // 9):
        for step in range(9):
            node = len(colours)
            edges.append((node - 1 if step else 0, node))
            colours.append((branch + step) % 2)
    last = len(colours)
    return [*colours, 0], edges + [(node, last) for node in range(9, last, 9)]


def random_layers(count: int) -> Graph:
    """Three devices, two inputs a layer from anywhere within the 1,000 layers before."""
    generator = random.Random(1)  # noqa: S311  no secret, but the same graph every time
    colours = [generator.randrange(3) for _ in range(count)]
    edges = [(generator.randrange(max(0, node - 1000), node), node) for node in range(1, count) for _ in range(2)]
    return colours, edges


GRAPHS: tuple[Callable[[int], Graph], ...] = (
    one_device_chain,
    alternating_chain,
    runs_with_skips,
    nested_skips,
    parallel_branches,
    random_layers,
)


def seconds(graph: Graph) -> tuple[float, int]:
    """The best time of a few, and the number of segments."""
    times = []
    segments: list[int] = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        segments = partition_graph(*graph)
        times.append(time.perf_counter() - started)
    return min(times), max(segments) + 1


def main() -> None:
    """Print a table."""
    print(f"{'graph':20}" + "".join(f"{size:>12,} layers" for size in SIZES) + "   slope   segments")
    for make in GRAPHS:
        results = [seconds(make(size)) for size in SIZES]
        slope = math.log(results[-1][0] / results[0][0]) / math.log(SIZES[-1] / SIZES[0])
        times = "".join(f"{spent:17.3f} s" for spent, _ in results)
        print(f"{make.__name__:20}{times}   {slope:5.2f}   {results[-1][1]:8,}")


if __name__ == "__main__":
    main()
