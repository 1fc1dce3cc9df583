"""Layers that move INT8 values as they are, because nothing about the values changes and the scales are equal."""

from __future__ import annotations

from dryfit.builder.precisions import Precisions
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.quantization.dynamic_range import DynamicRange

MOVING_KINDS = frozenset({"identity", "shuffle", "squeeze", "unsqueeze"})
"""Kinds that give the values of their first input in another order or shape."""


def moves_int8(layer: Layer, precisions: Precisions) -> bool:
    """Whether a layer that is computed in INT8 takes whole numbers and gives the same ones."""
    source = layer.inputs[0] if layer.inputs else None
    if layer.kind not in MOVING_KINDS or source is None or precisions.stored_type(layer, 0) is not DataType.INT8:
        return False
    ranges = [tensor.dynamic_range for tensor in (source, layer.outputs[0])]
    scales = {None if one is None else DynamicRange(*one).scale for one in ranges}
    return precisions.input_type(layer, 0) is DataType.INT8 and len(scales) == 1
