"""What INT8 layers keep in real numbers: the inside of steps, and results that nobody reads in INT8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.placement.assign import Assignment
from dryfit.builder.precision.chosen import WEAK_TYPES, Precisions
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_steps import real_tensors
from dryfit.target.arithmetic import weight_rounding


def with_real_tensors(
    precisions: Precisions,
    layers: Sequence[Layer],
    segments: Mapping[str, Any],
    assignment: Assignment,
    config: BuilderConfig,
) -> Precisions:
    """The precisions with what INT8 layers keep in real numbers, and how they round their weights.

    Args:
        precisions: computation types.
        layers: that run on devices.
        segments: layer name to what it shares with the layers that it may run as one with.
        assignment: devices.
        config: software versions of the devices.
    """
    int8 = [layer for layer in layers if precisions.is_int8(layer)]
    steps: dict[Any, list[Layer]] = {}
    for layer in int8:
        steps.setdefault(segments.get(layer.name), []).append(layer)
    inside = frozenset[str]().union(*(real_tensors(members) for members in steps.values()))
    inner = attrs.evolve(precisions, real_tensors=inside)
    outputs = {}
    rounding = {}
    for layer in int8:
        target = assignment.target(layer)
        software = config.software(target.device)
        rounding[layer.name] = weight_rounding(target.arithmetic, DataType.INT8, software)
        for index, tensor in enumerate(layer.outputs):
            wanted = _types_wanted(inner, tensor)
            formats = target.output_formats
            if len(wanted) == 1 and wanted <= WEAK_TYPES and (not formats or wanted <= formats.keys()):
                outputs[layer.name, index] = next(iter(wanted))
    return attrs.evolve(inner, real_outputs=outputs, weight_rounding=rounding)


def _types_wanted(precisions: Precisions, tensor: Tensor) -> set[DataType]:
    """The types in which a tensor is read."""
    wanted = {precisions.input_type(reader, index) for reader, index in tensor.consumers}
    return wanted | ({precisions.network_output_type(tensor)} if tensor.is_network_output else set())
