"""Whether a translated model computes the same: both forms built and run here, tensor by tensor."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from dryfit.answers.asked import quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.options import NetworkOptions
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.network.layer import LAYER_KINDS
from dryfit.network.network import Network
from dryfit.onnx.translation.agreement import Agreement, ProvedTensor, compare_engines
from dryfit.plugins import registry
from dryfit.quantization.calibration_data import source_of

Array = np.ndarray[Any, Any]


@attrs.frozen
class ProofSamples:
    """What both forms are compared on.

    Attributes:
        data: where the samples are; None for random ones.
        count: how many.
        seed: of random ones.
    """

    data: str | None
    count: int
    seed: int


def proof_of(
    samples: ProofSamples,
    implicit: Network,
    config: BuilderConfig,
    explicit: Network,
    options: NetworkOptions,
    tensors: Mapping[str, ProvedTensor],
) -> Agreement | None:
    """Build and run both forms, and compare what they store; None where no samples were asked for.

    Args:
        samples: what they are run on.
        implicit: the network with scales.
        config: what it is built with.
        explicit: the network of the Q/DQ model.
        options: what was said; scales and precisions do not count for the Q/DQ model.
        tensors: those that are quantized in both.
    """
    if not samples.count:
        return None
    config.builder_optimization_level = 0
    first = Builder().build_engine(implicit, config)
    with quiet_log():  # where the device takes no Q/DQ, every layer would say so
        second = _explicit_engine(explicit, options)
    return compare_engines(first, second, tensors, _feeds(samples, implicit, tensors))


def _explicit_engine(network: Network, options: NetworkOptions) -> Engine:
    """The Q/DQ network on the device, or where that takes no Q/DQ on the host, whose kernels compute the same."""
    plain = attrs.evolve(
        options, precision=(), layer_precisions=None, layer_output_types=None, calibration_cache=None, ranges=None
    )
    config, _ = config_of(network, plain)
    placed = assess(network, config)
    quantizing = [one for one in placed.layers if LAYER_KINDS[one.kind].is_quantization]
    away = [one for one in quantizing if one.device != config.default_device_type]
    if away or not placed.can_be_built:
        host = registry.host().device
        plain = attrs.evolve(plain, device=host, platform=None, software=None, fallback=None, placement=None)
        config, _ = config_of(network, attrs.evolve(plain, layer_device_types=None))
    config.builder_optimization_level = 0
    return Builder().build_engine(network, config)


def _feeds(
    samples: ProofSamples, network: Network, tensors: Mapping[str, ProvedTensor]
) -> Iterator[Mapping[str, Array]]:
    """Samples from the place that the user names, or random ones: normal, a third of the range its deviation."""
    if samples.data is not None:
        source = source_of(samples.data)
        names = list(source.names(network))[: samples.count]
        yield from (feeds for _, feeds in itertools.islice(source.samples(names, network), samples.count))
        return
    random = np.random.default_rng(samples.seed)
    for _ in range(samples.count):
        feeds: dict[str, Array] = {}
        for tensor in network.inputs:
            shape = tuple(max(extent, 1) for extent in tensor.shape)
            if tensor.dtype.is_floating_point:
                deviation = 127 / 3 * tensors[tensor.name].scale if tensor.name in tensors else 1.0
                feeds[tensor.name] = (random.standard_normal(shape) * deviation).astype(tensor.dtype.numpy)
            else:
                feeds[tensor.name] = random.integers(0, 2, shape).astype(tensor.dtype.numpy)
        yield feeds
