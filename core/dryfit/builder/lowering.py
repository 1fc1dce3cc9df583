"""The engine's network: the user's layers in execution order, every tensor in the type in which it is computed.

Where a type changes there is a cast, one for each tensor and type, named as TensorRT names its reformats. Constants
are converted here, once, instead of at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dryfit.builder.layer_precisions import Precisions
from dryfit.builder.layer_roles import LayerRole
from dryfit.builder.partition import Partition
from dryfit.network.copying import copy_layer, copy_tensor_notes
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.cast import Cast
from dryfit.network.layers.constant import Constant
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


@attrs.frozen(eq=False)
class LoweredNetwork:
    """The engine's network, and how it belongs to the one that was cut.

    Attributes:
        network: layers in execution order.
        reformats: names of the casts that stand for a reformat.
        origins: tensor name to (name of the tensor in the network that was cut, type), for every tensor that carries
            data.
    """

    network: Network
    reformats: frozenset[str]
    origins: Mapping[str, tuple[str, DataType]]


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
    return LoweredNetwork(lowering.lowered, frozenset(lowering.reformats), lowering.origins)


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
        self._partition = partition
        self._precisions = precisions
        self._outputs = {tensor.name for tensor in network.outputs}
        self.lowered = Network(network.name)
        self.lowered.metadata.update(network.metadata)
        self.reformats: list[str] = []
        self.origins: dict[str, tuple[str, DataType]] = {}
        self._versions: dict[str, dict[DataType, Tensor]] = {}
        self._constants: dict[str, Layer] = {}
        for tensor in network.inputs:
            new = self.lowered.add_input(tensor.name, tensor.dtype, tensor.shape)
            self._adopt(tensor, new)

    def add(self, layer: Layer) -> None:
        if layer.kind == "constant":
            # Added when it is first used, in the type in which it is used.
            self._constants[layer.outputs[0].name] = layer
            return
        inputs = [
            None if tensor is None else self._version(tensor, self._input_type(layer, index), layer, index)
            for index, tensor in enumerate(layer.inputs)
        ]
        new = self.lowered.add_layer(copy_layer(layer), inputs)
        for index, (old, output) in enumerate(zip(layer.outputs, new.outputs, strict=True)):
            is_work = self._roles[layer.name] is LayerRole.WORK
            self._add_output(old, output, self._precisions.stored_type(layer, index) if is_work else output.dtype)

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
                name = f"Reformatting CopyNode for Output Tensor {number} to {layer_name}"
                self._rename(tensors[-1], f"Reformatted Output Tensor {number} to {layer_name}")
                tensors.append(self._cast(tensors[-1], dtype, name))
        self._rename(tensors[-1], old.name)
        for tensor in tensors:
            self.origins[tensor.name] = (old.name, tensor.dtype)
            # A narrower type that the user asked for holds for everyone: who reads the tensor finds it rounded.
            if tensor.dtype in (stored, final):
                self._adopt(old, tensor)

    def _rename(self, tensor: Tensor, name: str) -> None:
        if tensor.name != name:
            self.lowered.rename_tensor(tensor, self._free_name(name))

    def _adopt(self, old: Tensor, new: Tensor) -> None:
        """Take a tensor as the counterpart of the user's, in the type that it has."""
        copy_tensor_notes(old, new)
        self._versions.setdefault(old.name, {})[new.dtype] = new
        self.origins[new.name] = (old.name, new.dtype)

    def _input_type(self, layer: Layer, index: int) -> DataType:
        tensor = layer.inputs[index]
        if self._roles[layer.name] is LayerRole.WORK or tensor is None:
            return self._precisions.input_type(layer, index)
        return tensor.dtype

    def _version(self, tensor: Tensor, dtype: DataType, layer: Layer, index: int) -> Tensor:
        """A tensor in the type in which a layer takes it."""
        if tensor.name in self._constants:
            return self._constant(tensor, dtype)
        versions = self._versions[tensor.name]
        if dtype not in versions:
            source = next(iter(versions.values()))
            cast = self._cast(source, dtype, f"Reformatting CopyNode for Input Tensor {index} to {layer.name}")
            self._rename(cast, f"Reformatted Input Tensor {index} to {layer.name}")
            versions[dtype] = cast
            self.origins[cast.name] = (tensor.name, dtype)
        return versions[dtype]

    def _free_name(self, name: str) -> str:
        number, candidate = 0, name
        while self.lowered.find_tensor(candidate) is not None:
            number += 1
            candidate = f"{name}_{number}"
        return candidate

    def _cast(self, source: Tensor, dtype: DataType, name: str) -> Tensor:
        layer = self.lowered.add_layer(Cast(to_type=dtype, name=name), [source])
        self.reformats.append(layer.name)
        return layer.outputs[0]

    def _constant(self, tensor: Tensor, dtype: DataType) -> Tensor:
        """A constant in a type, rounded to nearest even."""
        versions = self._versions.setdefault(tensor.name, {})
        if dtype not in versions:
            source = self._constants[tensor.name]
            constant = copy_layer(source)
            if isinstance(constant, Constant) and dtype is not tensor.dtype:
                with np.errstate(over="ignore"):
                    constant.weights = constant.weights.astype(dtype.numpy)
            if versions or dtype is not tensor.dtype:
                constant.name = f"{source.name} [{dtype.name}]"
            new = self.lowered.add_layer(constant, []).outputs[0]
            self._rename(new, tensor.name if dtype is tensor.dtype else f"{tensor.name} [{dtype.name}]")
            versions[dtype] = new
        return versions[dtype]

    def finish(self) -> None:
        """Mark the outputs, in the types that the user expects, under the user's names."""
        for tensor in self._network.outputs:
            if tensor.name in self._constants:
                self.lowered.mark_output(self._constant(tensor, tensor.dtype))
            else:
                self.lowered.mark_output(self._versions[tensor.name][self._precisions.network_output_type(tensor)])
