"""Quantize methods for models without Q/DQ nodes: these are put where the host's build rounds to INT8."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
from onnx import ModelProto

from dryfit.answers.asked import load_network, quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.options import NetworkOptions
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import designed
from dryfit.network.network import Network
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.translation.explicit_model import explicit_model
from dryfit.onnx.translation.implicit_precisions import prepared_model


def network_for_methods(
    model: ModelProto,
    folder: Path | None,
    options: NetworkOptions,
    shapes: Mapping[str, Sequence[int]],
    set_scales: Callable[[Network], None],
) -> tuple[Network, BuilderConfig]:
    """Return a network with Q/DQ pairs and the config whose quantize methods compute it.

    Args:
        model: without Q/DQ nodes.
        folder: folder of its external data; None for none.
        options: device, quantize methods and scales.
        shapes: shape of each input.
        set_scales: sets ranges and precisions of the model's network that the options do not have.
    """
    prepared = prepared_model(model)
    plain = network_from_onnx(prepared, folder=folder)
    # The libraries that methods stand for compute what stays in floating point in FP32.
    given = attrs.evolve(
        options, precision="int8", calibration_cache=None, ranges=None, layer_precisions=None, shape={}
    )
    with quiet_log():
        _fix_shapes(plain, shapes)
        set_scales(plain)
        on_host = attrs.evolve(options, device=options.default_device, quantize_method=(), shape={})
        config, _ = config_of(plain, on_host)
        config.set_flag(BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
        config.builder_optimization_level = 0
        design = designed(plain, config, f"Translating {plain.name}")
        translated = explicit_model(prepared, ExternalData(folder), design)
        network = load_network(translated.model, given, folder)
        _fix_shapes(network, shapes)
        config, _ = config_of(network, given)
        config.builder_optimization_level = 0
    return network, config


def _fix_shapes(network: Network, shapes: Mapping[str, Sequence[int]]) -> None:
    for tensor in network.inputs:
        tensor.shape = tuple(shapes[tensor.name])
