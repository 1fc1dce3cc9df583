"""The engine's network: the user's layers in execution order, every tensor in the type in which it is computed.

Where a type changes there is a cast, one for each tensor and type, named as TensorRT names its reformats. Constants
are converted here, once, instead of at run time; dequantized ones are dequantized to the other type.

To and from INT8 the change is a quantize or dequantize layer with the tensor's scale, and a layer that is computed in
INT8 stands between such layers, its weights INT8 constants that are dequantized. So an implicitly quantized network
becomes the form that explicitly quantized ones have from the beginning, and the same kernels run both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.fusion.engine_tensors import OUTPUT_COPY, EngineTensors
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.precision.chosen import WEAK_TYPES, Precisions
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer, note_origin
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantization.commutation import commutation_of
from dryfit.quantization.int8_steps import ASSUMED_RANGE, DynamicRange
from dryfit.quantization.int8_weights import constant_weights, folded, folded_scale, int8_weights, is_folded


@frozen(eq=False)
class LoweredNetwork:
    """The engine's network, and how it belongs to the one that was cut.

    Attributes:
        network: layers in execution order.
        reformats: names of the layers that represent a change of type.
        owners: name of each of these that is part of a layer's own step, to the name of that layer.
        origins: tensor name to (name of the tensor in the network that was cut, type), for every tensor that carries
            data.
    """

    network: Network
    reformats: frozenset[str]
    origins: Mapping[str, tuple[str, DataType]]
    owners: Mapping[str, str] = attrs.field(factory=dict)


def lower_network(
    network: Network, roles: Mapping[str, LayerRole], partition: Partition, precisions: Precisions
) -> LoweredNetwork:
    """Build the engine's network.

    Raises:
        NetworkError: a layer does not take the types that were chosen.
    """
    lowering = _Lowering(network, roles, partition, precisions)
    for layer in execution_order(network, partition):
        lowering.add(layer)
    lowering.finish()
    tensors = lowering.tensors
    return LoweredNetwork(tensors.lowered, frozenset(tensors.reformats), tensors.origins, tensors.owners)


def execution_order(network: Network, partition: Partition) -> Sequence[Layer]:
    """The layers by segment, and in a segment as in the network; what is in no segment as early as it can be."""
    latest: dict[str, int] = {}
    keys: list[tuple[int, int]] = []
    for index, layer in enumerate(network.layers):
        needed = max(
            (latest[tensor.name] for tensor in layer.inputs if tensor is not None and tensor.producer), default=-1
        )
        segment = partition.segments.get(layer.name, needed)
        keys.append((segment, index))
        latest.update((tensor.name, segment) for tensor in layer.outputs)
    return [network.layers[index] for _, index in sorted(keys)]


class _Lowering:
    """Copies one layer after another."""

    def __init__(
        self, network: Network, roles: Mapping[str, LayerRole], partition: Partition, precisions: Precisions
    ) -> None:
        self._network = network
        self._roles = roles
        self._precisions = precisions
        self._outputs = {tensor.name for tensor in network.outputs}
        assumed = ASSUMED_RANGE if precisions.assumes_scales else None
        self.tensors = EngineTensors(Network(network.name, network.flags), assumed)
        self._int8 = Int8Lowering(self.tensors, partition, precisions)
        self.tensors.lowered.metadata.update(network.metadata)
        for tensor in network.inputs:
            dtype = precisions.network_input_type(tensor)
            self.tensors.adopt(tensor, self.tensors.lowered.add_input(tensor.name, dtype, tensor.shape))

    def add(self, layer: Layer) -> None:
        if layer.kind == "constant":
            self.tensors.keep_constant(layer)
            return
        is_work = self._roles[layer.name] is LayerRole.WORK
        if self._int8.is_folded(layer):
            # It is part of the layer before it, whose result takes its name.
            source = self.tensors.versions(layer.connected_input(0))[DataType.FLOAT]
            self._add_output(layer.outputs[0], source, self._precisions.stored_type(layer, 0))
            return
        if is_work and self._precisions.is_int8(layer):
            new = self._int8.add(layer)
        else:
            inputs = [
                None if tensor is None else self.tensors.version(tensor, self._input_type(layer, index), layer, index)
                for index, tensor in enumerate(layer.inputs)
            ]
            new = self.tensors.lowered.add_layer(*self._copied(layer, inputs))
        for index, (old, output) in enumerate(zip(layer.outputs, new.outputs, strict=True)):
            self._add_output(old, output, self._precisions.stored_type(layer, index) if is_work else output.dtype)

    def _copied(self, layer: Layer, inputs: list[Tensor | None]) -> tuple[Layer, list[Tensor | None]]:
        """A copy of a layer, and what it reads: INT8 where it has UINT8 codes that are kept so."""
        copy = copy_layer(layer)
        if not isinstance(copy, (Quantize, Dequantize)):
            return copy, inputs
        codes = layer.outputs[0] if isinstance(layer, Quantize) else layer.get_input(0)
        if codes is None or not self._precisions.is_signed(codes):
            return copy, inputs
        if isinstance(copy, Quantize):
            copy.to_type = DataType.INT8
        return copy, inputs if len(inputs) > 2 else [*inputs, self.tensors.signed_zero(layer)]

    def _add_output(self, old: Tensor, output: Tensor, stored: DataType) -> None:
        """Take an output in the type in which others find it; a network output also in the type that the user expects.

        The user's name goes to the last of these; the one that the layer gives is then named as TensorRT names it.
        """
        final = self._precisions.network_output_type(old) if old.name in self._outputs else stored
        tensors = [output]
        layer_name = output.producer.name if output.producer is not None else ""
        for dtype in (stored, final):
            if tensors[-1].dtype is not dtype:
                number = output.output_index
                name = f"{OUTPUT_COPY} {number} to {layer_name}"
                self.tensors.rename(tensors[-1], f"Reformatted Output Tensor {number} to {layer_name}")
                tensors.append(self.tensors.converted(old, tensors[-1], dtype, name))
                if dtype is DataType.INT8 and output.producer is not None:
                    self.tensors.owners[self.tensors.reformats[-1]] = output.producer.name
        self.tensors.rename(tensors[-1], old.name)
        for tensor in tensors:
            self.tensors.origins[tensor.name] = (old.name, tensor.dtype)
            # A narrower type that the user asked for holds for everyone: who reads the tensor finds it rounded.
            if tensor.dtype in (stored, final):
                self.tensors.adopt(old, tensor)

    def _input_type(self, layer: Layer, index: int) -> DataType:
        tensor = layer.inputs[index]
        if tensor is None:
            return self._precisions.input_type(layer, index)
        if self._roles[layer.name] is not LayerRole.WORK:
            return tensor.dtype
        found = self._precisions.input_type(layer, index)
        if isinstance(layer, Quantize) and index == 0 and found in WEAK_TYPES and not self.tensors.is_constant(tensor):
            # It divides in FP32 whatever it reads: a narrower number goes in as it is.
            versions = self.tensors.versions(tensor)
            return found if found in versions else next((one for one in versions if one in WEAK_TYPES), found)
        return found

    def finish(self) -> None:
        """Mark the outputs, in the types that the user expects, under the user's names."""
        for tensor in self._network.outputs:
            if self.tensors.is_constant(tensor):
                self.tensors.lowered.mark_output(self._constant_output(tensor))
            else:
                self.tensors.lowered.mark_output(
                    self.tensors.versions(tensor)[self._precisions.network_output_type(tensor)]
                )
        self.tensors.finish()

    def _constant_output(self, tensor: Tensor) -> Tensor:
        """A constant that is a network output, under its own name also where the caller wants it in another type."""
        own, dtype = self.tensors.constant(tensor, tensor.dtype), self._precisions.network_output_type(tensor)
        if dtype is own.dtype:
            return own
        self.tensors.rename(own, f"{tensor.name} [{own.dtype.name}]")
        wanted = self.tensors.constant(tensor, dtype)
        self.tensors.rename(wanted, tensor.name)
        return wanted


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
        return is_folded(layer, self._precisions.real_tensors)

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
        scale = folded_scale(layer, self._precisions.real_tensors)
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
