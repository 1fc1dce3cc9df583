"""Quantize methods for models without Q/DQ nodes: these are put where the host's build rounds to INT8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
from onnx import ModelProto

from dryfit.answers.asked import load_network, quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.options import NetworkOptions
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import designed
from dryfit.network.network import Network
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.translation.explicit_model import explicit_model


def network_for_methods(
    model: ModelProto,
    folder: Path | None,
    options: NetworkOptions,
    shapes: Mapping[str, Sequence[int]],
    asked: tuple[Network, BuilderConfig],
) -> tuple[Network, BuilderConfig]:
    """Return a network with Q/DQ pairs and the config whose quantize methods compute it.

    Args:
        model: without Q/DQ nodes, as `prepared_model` returns it.
        folder: folder of its external data; None for none.
        options: quantize methods, and the device of the rest.
        shapes: shape of each input.
        asked: its network with scales and a config without quantize methods, whose build shows where to round.
    """
    plain, config = asked
    # The libraries that methods stand for compute what stays in floating point in FP32.
    given = attrs.evolve(
        options, precision="int8", calibration_cache=None, ranges=None, layer_precisions=None, shape={}
    )
    with quiet_log():
        design = designed(plain, config, f"Translating {plain.name}")
        translated = explicit_model(model, ExternalData(folder), design)
        network = load_network(translated.model, given, folder)
        for tensor in network.inputs:
            tensor.shape = tuple(shapes[tensor.name])
        config, _ = config_of(network, given)
        config.builder_optimization_level = 0
    return network, config
