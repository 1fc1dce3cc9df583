"""Where the Q/DQ pairs of an explicit model stand, and what its weights are: read from the design of an implicit build.

The builder decides what is INT8 and what stays inside a step; here its decisions are put into words of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.builder.design import Design
from dryfit.builder.precision.folded_scales import folded
from dryfit.builder.precision.int8_weights import Int8Weights, constant_weights, int8_weights
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.scale import Scale
from dryfit.network.tensor import Tensor
from dryfit.quantization.dynamic_range import DynamicRange

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class PlannedWeights:
    """The weights of one layer that is computed in INT8.

    Attributes:
        layer: the layer, as it is built.
        real: float32, what is quantized: with the factors of `scale`, where there is one.
        quantized: codes and scales.
        bias: float32 `[K]`; None where the layer has none as a parameter.
        scale: the scale layer that is part of the weights; None for none.
    """

    layer: Layer
    real: Array
    quantized: Int8Weights
    bias: Array | None
    scale: Scale | None


@attrs.frozen(eq=False)
class QuantizationPlan:
    """What an implicit build quantizes.

    Attributes:
        stored: tensor to its scale, for those that are INT8 wherever anybody reads them.
        read: tensor to its scale and the layers that read it in INT8, while others read real numbers.
        weights: of the layers that multiply by constants, in the order of the network.
    """

    stored: Mapping[str, float]
    read: Mapping[str, tuple[float, Sequence[Layer]]]
    weights: Sequence[PlannedWeights]

    @property
    def scales(self) -> dict[str, float]:
        """Tensor to scale, for all that are quantized somewhere."""
        return {**self.stored, **{name: scale for name, (scale, _) in self.read.items()}}


def quantization_plan(design: Design) -> QuantizationPlan:
    """What the design of an implicitly quantized network quantizes, tensor by tensor.

    Raises:
        BuildError: weights are not finite.
    """
    precisions = design.precisions
    stored: dict[str, float] = {}
    read: dict[str, tuple[float, list[Layer]]] = {}
    weights = []
    for layer in design.network.layers:
        if layer.name not in precisions.layers or not precisions.is_int8(layer):
            continue
        for index, tensor in enumerate(layer.inputs):
            if tensor is None or tensor.is_constant or tensor.dtype is DataType.INT8:
                continue
            if precisions.input_type(layer, index) is DataType.INT8 and tensor.name not in stored:
                readers = read.setdefault(tensor.name, (_scale(tensor), []))[1]
                readers.append(layer)
        for index, tensor in enumerate(layer.outputs):
            if precisions.stored_type(layer, index) is DataType.INT8:
                stored[tensor.name] = _scale(tensor)
        found = _weights(design, layer)
        if found is not None:
            weights.append(found)
    return QuantizationPlan(stored, {name: one for name, one in read.items() if name not in stored}, weights)


def _is_folded(design: Design, layer: Layer) -> bool:
    """Whether a layer is part of the weights of the one before it."""
    source = layer.inputs[0] if isinstance(layer, Scale) else None
    return source is not None and source.name in design.precisions.real_tensors


def _weights(design: Design, layer: Layer) -> PlannedWeights | None:
    real = constant_weights(layer)
    if real is None:
        return None
    bias = getattr(layer, "bias", None)
    reader = layer.outputs[0].consumers[0][0] if layer.outputs[0].consumers else None
    scale = reader if isinstance(reader, Scale) and _is_folded(design, reader) else None
    if scale is not None and isinstance(layer, (KernelLayer, FullyConnected)):
        real, bias = folded(layer, real, scale)
    quantized = int8_weights(layer, real, design.precisions.weight_rounding[layer.name])
    as_quantized = real.astype(np.float32).reshape(quantized.values.shape)
    return PlannedWeights(layer, as_quantized, quantized, None if bias is None else bias.astype(np.float32), scale)


def _scale(tensor: Tensor) -> float:
    minimum, maximum = tensor.dynamic_range or (0.0, 0.0)
    return DynamicRange(minimum, maximum).scale
