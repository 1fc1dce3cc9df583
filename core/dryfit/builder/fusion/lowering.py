"""The engine's network: the user's layers in execution order, every tensor in the type in which it is computed.

Where a type changes there is a cast, one for each tensor and type, named as TensorRT names its reformats. Constants
are converted here, once, instead of at run time; dequantized ones are dequantized to the other type.

To and from INT8 the change is a quantize or dequantize layer with the tensor's scale, and a layer that is computed in
INT8 stands between such layers, its weights INT8 constants that are dequantized. So an implicitly quantized network
becomes the form that explicitly quantized ones have from the beginning, and the same kernels run both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.fusion.engine_tensors import OUTPUT_COPY, EngineTensors
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.precision.chosen import WEAK_TYPES, Precisions
from dryfit.builder.precision.int8_lowering import Int8Lowering
from dryfit.builder.precision.requested import ASSUMED_RANGE
from dryfit.network.copying import copy_layer
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


@attrs.frozen(eq=False)
class LoweredNetwork:
    """The engine's network, and how it belongs to the one that was cut.

    Attributes:
        network: layers in execution order.
        reformats: names of the layers that stand for a change of type.
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
        codes = layer.outputs[0] if isinstance(layer, Quantize) else layer.get_input(0)
        if not isinstance(copy, (Quantize, Dequantize)) or codes is None or not self._precisions.is_signed(codes):
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
