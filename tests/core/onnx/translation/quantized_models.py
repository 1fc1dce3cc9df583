"""Small Q/DQ models, and designs of implicitly quantized networks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.design import NUM_STAGES, Design, design_network
from dryfit.builder.stages import Stages
from dryfit.network.network import Network
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.translation.explicit_model import ExplicitModel, explicit_model

NOWHERE = ExternalData(None)


def pair(value: str, result: str, scale: str, zero: str = "z") -> str:
    """The text of a Q/DQ pair, its nodes named after the result."""
    codes = f"{result}_codes"
    return f"{codes} = QuantizeLinear({value}, {scale}, {zero}) {result} = DequantizeLinear({codes}, {scale}, {zero})"


def scalars(**values: float) -> dict[str, np.ndarray]:
    """Scales by name, and `z`, the INT8 zero point."""
    return {"z": np.zeros((), np.int8), **{name: np.array(value, np.float32) for name, value in values.items()}}


def named(parsed: onnx.ModelProto) -> onnx.ModelProto:
    """The model with nodes named after their outputs."""
    for node in parsed.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
    return parsed


def constant(parsed: onnx.ModelProto, name: str) -> np.ndarray:
    """The contents of an initializer."""
    return next(numpy_helper.to_array(one) for one in parsed.graph.initializer if one.name == name)


def int8_config() -> BuilderConfig:
    """INT8 on the GPU, kernels not measured."""
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.builder_optimization_level = 0
    return config


def designed(network: Network) -> Design:
    """What the builder decides about a network."""
    with Stages("Designing", NUM_STAGES) as stages:
        return design_network(network, int8_config(), stages)


def with_ranges(parsed: onnx.ModelProto, ranges: Mapping[str, float]) -> Network:
    """The network of a model with these ranges, without those of values that no output needs."""
    network = network_from_onnx(parsed)
    for name, threshold in ranges.items():
        tensor = network.find_tensor(name)
        if tensor is not None:
            tensor.dynamic_range = (-threshold, threshold)
    return network


def explicit_of(parsed: onnx.ModelProto, network: Network, *, stores_integers: bool = True) -> ExplicitModel:
    """The Q/DQ model of a network with ranges."""
    return explicit_model(parsed, NOWHERE, designed(network), stores_integers=stores_integers)
