"""How long `BuilderConfig.can_run_on` takes for each layer of a network of 1,000, as placement scripts ask it.

A static network, one whose batch is fixed by a profile, and a script that sets devices while it asks. Each has to stay
far below a second, also on a slow machine. Run: `python benchmarks/can_run_on.py`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from dryfit import (
    ActivationType,
    BuilderConfig,
    BuilderFlag,
    DataType,
    ElementWiseOperation,
    Network,
    OptimizationProfile,
)

LAYERS = 1_000
CHANNELS = 64
REPEATS = 5
BAR_SECONDS = 1.0


def residual_network(batch: int) -> Network:
    """Convolutions with an activation and a residual sum each; -1 for a dynamic batch."""
    network = Network("residual")
    weights = np.zeros((CHANNELS, CHANNELS, 3, 3), np.float32)
    tensor = network.add_input("image", DataType.FLOAT, (batch, CHANNELS, 32, 32))
    while len(network) < LAYERS:
        convolution = network.add_convolution_nd(tensor, CHANNELS, (3, 3), weights)
        convolution.padding_nd = (1, 1)
        active = network.add_activation(convolution.get_output(0), ActivationType.RELU).get_output(0)
        tensor = network.add_elementwise(active, tensor, ElementWiseOperation.SUM).get_output(0)
    network.mark_output(tensor)
    return network


def dla_config() -> BuilderConfig:
    """FP16 on a DLA."""
    config = BuilderConfig()
    config.set_flag(BuilderFlag.FP16)
    config.default_device_type = "DLA"
    return config


def ask_all(network: Network, config: BuilderConfig) -> int:
    """How many layers can run on the DLA."""
    return sum(config.can_run_on_DLA(layer) for layer in network)


def place_all(network: Network, config: BuilderConfig) -> int:
    """The same, and each of them is put there."""
    for layer in network:
        if config.can_run_on_DLA(layer):
            config.set_device_type(layer, "DLA")
    return len(config.explicit_device_types(network))


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    """The median time of a few, and how many layers can run there."""
    times, count = [], 0
    for _ in range(REPEATS):
        started = time.perf_counter()
        count = work()
        times.append(time.perf_counter() - started)
    return statistics.median(times), count


def main() -> None:
    """Print a table."""
    static, dynamic = residual_network(1), residual_network(-1)
    with_profile = dla_config()
    profile = OptimizationProfile()
    profile.set_shape("image", *[(8, CHANNELS, 32, 32)] * 3)
    with_profile.add_optimization_profile(profile)
    print(f"can_run_on for {LAYERS:,} layers; the bar is {BAR_SECONDS:g} s")
    for name, work in {
        "static shapes": lambda: ask_all(static, dla_config()),
        "a profile fixes the batch": lambda: ask_all(dynamic, with_profile),
        "devices set in between": lambda: place_all(static, dla_config()),
    }.items():
        spent, count = seconds(work)
        print(
            f"{name:28}{spent:8.3f} s   {count:5,} can run on the DLA   {'ok' if spent < BAR_SECONDS else 'TOO SLOW'}"
        )


if __name__ == "__main__":
    main()
