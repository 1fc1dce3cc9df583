"""What a run through the TensorRT modules takes beyond `ExecutionContext.run` of the same engine.

Usage: python benchmarks/tensorrt_module.py [--rounds 2000] [--api 8.6 10.16 11.1]

The network is small, so that little besides the calls themselves is timed. Both ways of running it take turns, in a
random order within each pair, with one thread, by CPU time; the overhead is the median of the differences in a pair.
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dryfit
from dryfit_tensorrt import memory
from dryfit_tensorrt.settings import api_level
from measuring.machine import machine_text
from measuring.page import plain_table

BAR_MICROSECONDS = 50.0
"""Largest overhead that a run may have. Our choice: a tenth of what a run of a small network takes on a board."""

SHAPE = (1, 16, 8, 8)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--api", nargs="+", default=["8.6", "10.16", "11.1"])
    asked = parser.parse_args()
    print(machine_text())
    rows = [_row(api, asked.rounds) for api in asked.api]
    columns = ("TensorRT", "ExecutionContext.run, us", "execute_async_v3, us", "overhead, us", "")
    print(plain_table(columns, rows))


def _row(api: str, rounds: int) -> tuple[str, ...]:
    run, through_module = _both_ways(importlib.import_module(api_level(api).module))
    pairs = _timed_pairs(run, through_module, rounds)
    overhead = statistics.median(after - before for before, after in pairs)
    verdict = "within the bar" if overhead <= BAR_MICROSECONDS else f"above the bar of {BAR_MICROSECONDS:g}"
    medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
    return (api, *(f"{one:.1f}" for one in medians), f"{overhead:.1f}", verdict)


def _both_ways(trt: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    """Two ways to run one engine: on arrays, and on device addresses."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    flags = trt.NetworkDefinitionCreationFlag.__members__
    network = builder.create_network(1 << int(flags["EXPLICIT_BATCH"]) if "EXPLICIT_BATCH" in flags else 0)
    x = network.add_input("x", trt.float32, SHAPE)
    y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    context = trt.Runtime(logger).deserialize_cuda_engine(plan).create_execution_context()
    for name in ("x", "y"):
        context.set_tensor_address(name, memory.allocate(4 * trt.volume(SHAPE)))
    own = dryfit.Engine.load(bytes(plan)).create_execution_context(num_threads=1)
    inputs, outputs = {"x": np.zeros(SHAPE, np.float32)}, {"y": np.zeros(SHAPE, np.float32)}
    return lambda: own.run(inputs, out=outputs), lambda: context.execute_async_v3(0)


def _timed_pairs(first: Callable[[], object], second: Callable[[], object], rounds: int) -> list[tuple[float, float]]:
    """CPU time of both in us, pair by pair."""
    chooses = random.Random(0)  # noqa: S311  the order in a pair
    pairs = []
    for _ in range(50):
        first()
        second()
    for _ in range(rounds):
        both = [(0, first), (1, second)]
        chooses.shuffle(both)
        times = [0.0, 0.0]
        for place, run in both:
            start = time.process_time_ns()
            run()
            times[place] = (time.process_time_ns() - start) / 1e3
        pairs.append((times[0], times[1]))
    return pairs


if __name__ == "__main__":
    main()
