"""Which tensors between INT8 layers need a scale, and which stay real because the surrounding layers run as one step.

A convolution, its bias, an added residual and the activation are one step of a device: exact sums are scaled, the rest
is computed in real numbers, and only the output of the step is rounded to INT8. The layers were fused while the network
was floating point, so tensors inside a step need no scale.

Source: TensorRT 8 developer guide, 7.1.2: an implicitly quantized network counts as a floating-point model when layers
are fused.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_weights import can_fold

ASSUMED_RANGE = (-1.0, 1.0)
"""Placeholder range of a tensor whose scale is assumed. Its value does not matter."""

_LIMITING = frozenset({ActivationType.RELU, ActivationType.CLIP})
"""Activations that only limit, which every INT8 step can end with."""


def real_tensors(layers: Collection[Layer]) -> frozenset[str]:
    """Return the names of tensors that exist only inside a step, for INT8 layers of one segment.

    A sum joins the step of the operand that is computed last; its other operand is stored. A scale layer joins if it
    can be merged into the weights.
    """
    members = {layer.name for layer in layers}
    found: set[str] = set()
    for layer in layers:
        source = _joined_input(layer)
        if source is None or source.producer is None or source.producer.name not in members or _is_stored(source):
            continue
        begun = source.producer.inputs[0] if source.producer.inputs else None
        if _may_go_on(source.producer, layer, is_folded=begun is not None and begun.name in found):
            found.add(source.name)
    return frozenset(found)


def is_inside_step(tensor: Tensor) -> bool:
    """Return whether a tensor exists only inside a step if the surrounding layers run in INT8 in one segment."""
    producer = tensor.producer
    if producer is None or _is_stored(tensor):
        return False
    reader = tensor.consumers[0][0]
    begun = producer.inputs[0] if producer.kind == "scale" else None
    return _joined_input(reader) is tensor and _may_go_on(
        producer, reader, is_folded=begun is not None and is_inside_step(begun)
    )


def is_limiting(layer: Layer) -> bool:
    """Return whether a layer is an activation that can end an INT8 step."""
    return isinstance(layer, Activation) and layer.activation_type in _LIMITING


def is_sum(layer: Layer) -> bool:
    """Return whether a layer adds two tensors."""
    return isinstance(layer, Elementwise) and layer.op is ElementWiseOperation.SUM


def _joined_input(layer: Layer) -> Tensor | None:
    """The input by which a layer may join the step before it."""
    if is_limiting(layer) or layer.kind == "scale":
        return layer.inputs[0]
    given = [tensor for tensor in layer.inputs if tensor is not None and tensor.producer is not None]
    if not is_sum(layer) or not given:
        return None
    return max(given, key=lambda tensor: tensor.producer.index if tensor.producer is not None else -1)


def _is_stored(tensor: Tensor) -> bool:
    """Whether somebody else needs the tensor, or the user gave it a type."""
    producer = tensor.producer
    is_typed = producer is not None and tensor.output_index in producer.output_types
    return tensor.is_network_output or len(tensor.consumers) != 1 or is_typed


def _may_go_on(producer: Layer, layer: Layer, *, is_folded: bool) -> bool:
    """Whether the step that a layer gives the result of may go on with another layer.

    Args:
        producer: the last layer of the step so far.
        layer: reads its result.
        is_folded: whether the producer, if it is a scale layer, is part of the weights before it.
    """
    if layer.kind == "scale":
        return can_fold(producer, layer)
    is_weighted = producer.sums_products or (producer.kind == "scale" and is_folded)
    if is_sum(layer):
        return is_weighted and _has_one_shape(layer)
    return is_weighted or is_sum(producer)


def _has_one_shape(layer: Layer) -> bool:
    """Whether no operand of a sum is repeated along an axis."""
    return len({tensor.shape for tensor in layer.inputs if tensor is not None}) == 1


def has_scales(layer: Layer) -> bool:
    """Return whether the layer has floating-point tensors and all that need a dynamic range have one."""
    tensors = [tensor for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]
    is_arithmetic = any(tensor.dtype.is_floating_point or tensor.dtype is DataType.INT8 for tensor in tensors)
    return is_arithmetic and not missing_scales(layer)


def missing_scales(layer: Layer) -> list[Tensor]:
    """Return the floating-point tensors of a layer that need a dynamic range and have none.

    Constants and tensors inside a step of an INT8 device need no range. Integer inputs are not data: they specify
    positions and counts.
    """
    return [tensor for tensor in tensors_without_range(layer) if not is_inside_step(tensor)]


def tensors_without_range(layer: Layer) -> list[Tensor]:
    """Return the floating-point tensors of a layer without a dynamic range, except constants."""
    inputs = [tensor for tensor in layer.inputs if tensor is not None and not tensor.is_constant]
    return [
        tensor
        for tensor in dict.fromkeys((*inputs, *layer.outputs))
        if tensor.dtype.is_floating_point and tensor.dynamic_range is None
    ]


def has_scale(tensor: Tensor, assumes_scales: bool) -> bool:
    """Return whether a tensor is data that can be stored in INT8."""
    return not tensor.is_constant and (assumes_scales or tensor.dynamic_range is not None)


# Ranges and scales ----------------------------------------------------------------------------------------------------


def int8_scale(threshold: float) -> float:
    """Return the scale with which INT8 covers the values from `-threshold` to `threshold`.

    It is computed in binary64 and rounded once to binary32, half to even; 0.0 if the threshold is too small for a
    binary32 scale, infinity if it is too large.

    Source: NVIDIA/TensorRT calibration caches with known ranges; they contain range / 127.
    """
    with np.errstate(over="ignore"):
        return float(np.float32(threshold / 127.0))


@frozen
class DynamicRange:
    """Expected range of a tensor's values; values outside it are saturated.

    INT8 quantization is symmetric: both ends are stored, and the larger magnitude determines the scale.

    Attributes:
        minimum: smallest value.
        maximum: largest value.

    Raises:
        CalibrationError: An end is not finite, the ends are in the wrong order, or no binary32 scale covers them, as
            for the range from 0 to 0.

    Example:
        >>> DynamicRange(-127.0, 63.5).scale
        1.0
    """

    minimum: float
    maximum: float

    def __attrs_post_init__(self) -> None:
        ordered = math.isfinite(self.minimum) and math.isfinite(self.maximum) and self.minimum <= self.maximum
        if not ordered or not 0.0 < self.scale < math.inf:
            raise CalibrationError(
                "Not a dynamic range",
                found=f"{self.minimum} to {self.maximum}",
                allowed="two finite values, minimum first, not both zero, whose larger magnitude divided by 127 "
                "is a binary32 number",
                remedy="Use a range that meets this requirement",
            )

    @property
    def threshold(self) -> float:
        """Larger magnitude of the two ends."""
        return max(abs(self.minimum), abs(self.maximum))

    @property
    def scale(self) -> float:
        """Real value of one INT8 step: `threshold / 127`, rounded to binary32."""
        return int8_scale(self.threshold)
