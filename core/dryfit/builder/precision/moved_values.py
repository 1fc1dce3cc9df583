"""Layers that move INT8 values as they are, because nothing about the values changes and the scales are equal."""

from __future__ import annotations

from dryfit.builder.precision.chosen import Precisions
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.passes.quantization.commutation import commutation_of
from dryfit.quantization.dynamic_range import DynamicRange


def moves_int8(layer: Layer, precisions: Precisions) -> bool:
    """Whether a layer that is computed in INT8 takes whole numbers and gives the same ones.

    It is of a kind over which quantizations move in explicit networks. What kernels compute between a dequantization
    and a quantization stays there, as do layers that several tensors come together in.
    """
    row = commutation_of(layer)
    if not row.commutes or row.requantizes or precisions.stored_type(layer, 0) is not DataType.INT8:
        return False
    inputs = row.data_inputs(layer)
    specs = {tensor: tensor.spec for tensor in layer.inputs if tensor is not None}
    if [index for index, _ in inputs] != [0] or row.obstacle(layer, specs):
        return False
    ranges = [tensor.dynamic_range for tensor in (inputs[0][1], layer.outputs[0])]
    scales = {None if one is None else DynamicRange(*one).scale for one in ranges}
    return precisions.input_type(layer, 0) is DataType.INT8 and len(scales) == 1
