"""Layers that are computed in INT8, in the form of an explicitly quantized network.

What they read is dequantized, their weights are INT8 constants that are dequantized too, and what they give is
quantized where others take it in INT8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.builder.fusion.engine_tensors import EngineTensors
from dryfit.builder.placement.partition import Partition
from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.folded_scales import folded, folded_scale, is_folded
from dryfit.builder.precision.moved_values import moves_int8
from dryfit.network.copying import copy_layer, note_origin
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.fully_connected import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_weights import constant_weights, int8_weights


class Int8Lowering:
    """Adds INT8 layers to the engine's network.

    Args:
        tensors: those of the engine's network.
        partition: segments: a dequantization serves the layers of one segment.
        precisions: types, and how weights are rounded.
    """

    def __init__(self, tensors: EngineTensors, partition: Partition, precisions: Precisions) -> None:
        self._tensors = tensors
        self._partition = partition
        self._precisions = precisions
        self._dequantized: dict[tuple[str, int], Tensor] = {}

    def add(self, layer: Layer) -> Layer:
        """A layer that reads dequantized values; one that only moves values moves them as they are."""
        if moves_int8(layer, self._precisions):
            return self._tensors.lowered.add_layer(copy_layer(layer), self._inputs_as_they_are(layer))
        inputs = [
            None if tensor is None else self._real_input(tensor, layer, index)
            for index, tensor in enumerate(layer.inputs)
        ]
        copy, weights = copy_layer(layer), constant_weights(layer)
        if weights is not None:
            if isinstance(copy, (KernelLayer, FullyConnected)):
                weights = self._without_parameters(copy, layer, weights)
            inputs = [*inputs, None][: max(len(inputs), 2)]
            inputs[1] = self._int8_weights(layer, weights)
        return self._tensors.lowered.add_layer(copy, inputs)

    def is_folded(self, layer: Layer) -> bool:
        """Whether a layer is part of the weights of the one before it."""
        return is_folded(layer, self._precisions)

    def _inputs_as_they_are(self, layer: Layer) -> list[Tensor | None]:
        return [
            None
            if tensor is None
            else self._tensors.version(tensor, self._precisions.input_type(layer, index), layer, index)
            for index, tensor in enumerate(layer.inputs)
        ]

    def _real_input(self, tensor: Tensor, layer: Layer, index: int) -> Tensor | None:
        """What an INT8 layer reads in the place of one of its inputs; None for weights, which are added apart."""
        if tensor.is_constant:
            is_weight = index == 1 and constant_weights(layer) is not None
            dtype = DataType.FLOAT if tensor.dtype.is_floating_point else tensor.dtype
            return None if is_weight else self._tensors.constant(tensor, dtype)
        dtype = self._precisions.input_type(layer, index)
        version = self._tensors.version(tensor, dtype, layer, index)
        if dtype is not DataType.INT8 or tensor.dtype is DataType.INT8:
            return version
        place = (tensor.name, self._partition.segments[layer.name])
        if place not in self._dequantized:
            dequantize = Dequantize(name=f"Dequantizing Input Tensor {index} to {layer.name}")
            inputs = [version, self._tensors.scale(tensor)]
            self._dequantized[place] = self._tensors.add_owned(dequantize, inputs, layer, tensor)
        return self._dequantized[place]

    def _without_parameters(
        self, copy: KernelLayer | FullyConnected, layer: Layer, weights: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """Take the weights out of a copy of a layer, whose bias stays in FP32; returns them with what is folded in."""
        copy.kernel = None
        copy.bias = None if copy.bias is None else copy.bias.astype(np.float32)
        scale = folded_scale(layer, self._precisions)
        if scale is not None:
            weights, copy.bias = folded(copy, weights, scale)
            note_origin(copy, scale)
        return weights

    def _int8_weights(self, layer: Layer, weights: np.ndarray[Any, Any]) -> Tensor:
        """The dequantized INT8 weights of a layer."""
        found = int8_weights(layer, weights, self._precisions.weight_rounding[layer.name])
        values = self._tensors.new_constant(f"{layer.name} weights [INT8]", found.values)
        scales = self._tensors.new_constant(f"{layer.name} weights [scale]", found.scales)
        name = f"Dequantizing weights of {layer.name}"
        dequantize = Dequantize(name=name, axis=found.axis, block_shape=found.block_shape)
        return self._tensors.add_owned(dequantize, [values, scales], layer)
