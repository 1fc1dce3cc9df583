"""How close memory plans come to the largest live set, which no plan can beat, and how long planning takes.

Run: `python benchmarks/memory_plan.py [MODEL.onnx ...]`. Without models: those in ../shared/models and ONNX's own
light networks, each built for the GPU in FP32 and for the DLA in FP16. Every pool of the devices, and the host's arena
at the optimum shapes, is one row where its plan is not as small as its largest live set.
"""

from __future__ import annotations

import argparse
import logging
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import onnx

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.segments import device_memory
from dryfit.building import Builder
from dryfit.engine import buffers as host_memory
from dryfit.engine.memory_planner import Buffer, MemoryPlan, largest_live_set, plan_memory
from dryfit.errors import DryfitError
from dryfit.network.network import Network
from dryfit.onnx.parser import network_from_onnx

REPOSITORY = Path(__file__).parents[1]


def bundled_models() -> list[Path]:
    """The models that are there."""
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return sorted((REPOSITORY.parent / "shared" / "models").glob("*.onnx")) + sorted(light.glob("light_*.onnx"))


def configs(network: Network) -> Iterator[tuple[str, BuilderConfig]]:
    """The builds of a network, dynamic dimensions taken as 1."""
    for name, device in (("GPU FP32", "GPU"), ("DLA FP16", "DLA")):
        builder, config = Builder(), BuilderConfig()
        config.default_device_type = device
        config.allow_fallback("GPU" if device == "DLA" else "CPU")
        if device == "DLA":
            config.set_flag(BuilderFlag.FP16)
        profile = builder.create_optimization_profile()
        for tensor in network.inputs:
            if -1 in tensor.shape:
                profile.set_shape(tensor.name, *[tuple(max(extent, 1) for extent in tensor.shape)] * 3)
        if profile:
            config.add_optimization_profile(profile)
        yield name, config


def planned(network: Network, config: BuilderConfig) -> list[tuple[list[Buffer], int, MemoryPlan]]:
    """Every memory that is planned when a network is built and run once."""
    plans: list[tuple[list[Buffer], int, MemoryPlan]] = []

    def recording(buffers: Sequence[Buffer], alignment: int = 64) -> MemoryPlan:
        plan = plan_memory(buffers, alignment)
        plans.append((list(buffers), alignment, plan))
        return plan

    with (
        mock.patch.object(device_memory, "plan_memory", recording),
        mock.patch.object(host_memory, "plan_memory", recording),
    ):
        engine = Builder().build_engine(network, config)
        inputs = engine.plan.network.inputs
        engine.create_execution_context().run(
            {tensor.name: np.zeros(tensor.shape, tensor.dtype.numpy) for tensor in inputs}
        )
    return plans


def synthetic(count: int) -> Iterator[tuple[str, list[Buffer]]]:
    """Lives of buffers as networks have them, and as they do not."""
    generator = random.Random(1)  # noqa: S311  no secret, but the same buffers every time
    sizes = [generator.randrange(1, 1_000_000) for _ in range(count)]
    yield "chain", [(size, step, step + 1) for step, size in enumerate(sizes)]
    yield "skips", [(size, step, step + (6 if step % 5 == 0 else 1)) for step, size in enumerate(sizes)]
    yield "up to 20 steps", [(size, step, step + generator.randrange(1, 20)) for step, size in enumerate(sizes)]
    yield "nested", [(size, step, 2 * count - step) for step, size in enumerate(sizes)]


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    logging.getLogger("dryfit.builder").setLevel(logging.ERROR)
    worst = 1.0
    for path in parser.parse_args().models or bundled_models():
        network = network_from_onnx(path)
        for name, config in configs(network):
            try:
                plans = planned(network, config)
            except DryfitError as error:
                print(f"{path.name}, {name}: not built, {str(error)[:100]}...")
                continue
            for buffers, alignment, plan in plans:
                lowest = largest_live_set(buffers, alignment)
                ratio = plan.total / lowest if lowest else 1.0
                worst = max(worst, ratio)
                if ratio > 1:
                    print(f"{path.name}, {name}: {len(buffers)} buffers, {plan.total:,} bytes, {ratio:.3f}")
    print(f"largest ratio of a plan to its largest live set: {worst:.3f}\n")
    for count in (1_000, 10_000, 100_000):
        for name, buffers in synthetic(count):
            started = time.perf_counter()
            plan = plan_memory(buffers)
            spent = time.perf_counter() - started
            print(f"{count:>8,} buffers, {name:15} {spent:7.3f} s, {plan.total / largest_live_set(buffers):.3f}")


if __name__ == "__main__":
    main()
