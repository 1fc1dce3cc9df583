"""Networks of convolutions that the DLA could run sparse, in INT8."""

from __future__ import annotations

import numpy as np
from tests.core.builder.networks import activation, convolution, image_network

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag

CHANNELS = 68


def wide_network(maps=(32, 64), channels=CHANNELS, kernel=1):
    """Convolutions c0, c1, ... one after another, and a ReLU; every tensor has a range."""
    network, x = image_network((1, channels, 4, 4), "wide")
    for index, count in enumerate(maps):
        x = convolution(network, x, f"c{index}", count, kernel, seed=index)
    network.mark_output(activation(network, x, "relu"))
    return with_ranges(network)


def with_ranges(network, bound=6.0):
    for tensor in network.tensors:
        tensor.dynamic_range = (-bound, bound)
    return network


def int8_config(*flags, device="DLA", platform="agx-orin-64"):
    config = BuilderConfig()
    config.default_device_type = device
    config.set_platform("DLA", platform)
    for flag in ("INT8", "FP16", *flags):
        config.set_flag(BuilderFlag[flag])
    config.allow_fallback("GPU")
    return config


def pruned_by_hand(weights):
    """`[K, C, R, S]` with the two largest of each four input channels, found with loops."""
    result = weights.copy()
    for k, r, s in np.ndindex(weights.shape[0], *weights.shape[2:]):
        for first in range(0, weights.shape[1], 4):
            group = weights[k, first : first + 4, r, s]
            order = sorted(range(len(group)), key=lambda index, group=group: (-abs(float(group[index])), index))
            for index in order[2:]:
                result[k, first + index, r, s] = 0
    return result
