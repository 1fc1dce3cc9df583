"""The tensors of the engine's network: for each of the user's its versions in all types in which somebody takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from dryfit.builder.precision.chosen import WEAK_TYPES
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer, copy_tensor_notes
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Cast, Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_steps import DynamicRange

_HALVES = (DataType.HALF, DataType.BF16)

OUTPUT_COPY = "Reformatting CopyNode for Output Tensor"
"""How names of layers begin that store what a layer gives in another type, under the user's name; TensorRT's words."""


class EngineTensors:
    """Keeps the versions of tensors, and adds what converts one into another.

    Args:
        lowered: the engine's network, which layers are added to.
        assumed_range: of tensors that have none of their own, where scales are assumed: bytes and what runs as one
            follow from any; numbers do not.

    Attributes:
        lowered: that network.
        reformats: names of the layers that represent a change of type.
        origins: tensor name to (name of the tensor in the network that was cut, type).
        owners: name of each layer that is part of another one's step, to the name of that layer.
    """

    def __init__(self, lowered: Network, assumed_range: tuple[float, float] | None = None) -> None:
        self.lowered = lowered
        self._assumed_range = assumed_range
        self.reformats: list[str] = []
        self.origins: dict[str, tuple[str, DataType]] = {}
        self.owners: dict[str, str] = {}
        self._versions: dict[str, dict[DataType, Tensor]] = {}
        self._constants: dict[str, Layer] = {}
        self._scales: dict[str, Tensor] = {}
        self._twins: list[tuple[Layer, Layer]] = []

    def adopt(self, old: Tensor, new: Tensor) -> None:
        """Take a tensor as the counterpart of the user's, in the type that it has."""
        copy_tensor_notes(old, new)
        self._versions.setdefault(old.name, {})[new.dtype] = new
        self.origins[new.name] = (old.name, new.dtype)

    def keep_constant(self, layer: Layer) -> None:
        """Remember a constant: it is added when it is first used, in the type in which it is used."""
        self._constants[layer.outputs[0].name] = layer

    def versions(self, tensor: Tensor) -> Mapping[DataType, Tensor]:
        """The versions of a tensor that there are."""
        return self._versions[tensor.name]

    def version(self, tensor: Tensor, dtype: DataType, layer: Layer, index: int) -> Tensor:
        """A tensor in the type in which a layer takes it as the input of an index."""
        if tensor.name in self._constants:
            return self.constant(tensor, dtype)
        versions = self._versions[tensor.name]
        if dtype not in versions:
            source = next(iter(versions.values()))
            name = f"Reformatting CopyNode for Input Tensor {index} to {layer.name}"
            new = self.converted(tensor, source, dtype, name)
            self.rename(new, f"Reformatted Input Tensor {index} to {layer.name}")
            versions[dtype] = new
            self.origins[new.name] = (tensor.name, dtype)
        return versions[dtype]

    def is_constant(self, tensor: Tensor) -> bool:
        """Whether a tensor is one of the constants that were kept."""
        return tensor.name in self._constants

    def constant(self, tensor: Tensor, dtype: DataType) -> Tensor:
        """A constant in a type, rounded to nearest even; UINT8 codes as INT8 ones are 128 lower."""
        versions = self._versions.setdefault(tensor.name, {})
        if dtype not in versions:
            source = self._constants[tensor.name]
            constant = copy_layer(source)
            if isinstance(constant, Constant) and dtype is not tensor.dtype:
                constant.weights = _converted(constant.weights, dtype)
            if versions or dtype is not tensor.dtype:
                constant.name = f"{source.name} [{dtype.name}]"
            new = self.lowered.add_layer(constant, []).outputs[0]
            self.rename(new, tensor.name if dtype is tensor.dtype else f"{tensor.name} [{dtype.name}]")
            versions[dtype] = new
        return versions[dtype]

    def signed_zero(self, layer: Layer) -> Tensor:
        """The zero point of a layer that has none, where it is to INT8 codes what 0 is to UINT8 ones."""
        scale = layer.connected_input(1)
        return self.new_constant(f"{layer.name} [zero point]", np.full(scale.shape, -128, np.int8))

    def converted(self, tensor: Tensor, source: Tensor, dtype: DataType, name: str) -> Tensor:
        """A version of a tensor in another type, by a layer of this name."""
        layer: Layer
        if dtype is DataType.INT8 and source.dtype in WEAK_TYPES:
            layer = self.lowered.add_layer(Quantize(name=name), [source, self.scale(tensor)])
        elif source.dtype is DataType.INT8 and dtype in WEAK_TYPES:
            layer = self.lowered.add_layer(Dequantize(name=name, to_type=dtype), [source, self.scale(tensor)])
        elif dtype in _HALVES and isinstance(source.producer, Dequantize) and source.dtype is DataType.FLOAT:
            # One rounding of the same product, and a kernel that reads quantized numbers finds them so.
            twin = copy_layer(source.producer)
            twin.name, twin.to_type = name, dtype
            layer = self.lowered.add_layer(twin, source.producer.inputs)
            self._twins.append((source.producer, layer))
        else:
            layer = self.lowered.add_layer(Cast(to_type=dtype, name=name), [source])
        self.reformats.append(layer.name)
        return layer.outputs[0]

    def finish(self) -> None:
        """Leave out dequantizations that nobody reads, now that others give narrower numbers in their place."""
        heirs: dict[Layer, Layer] = {}
        for original, twin in self._twins:
            output = original.outputs[0]
            if not output.consumers and not output.is_network_output:
                heirs.setdefault(original, twin)
        self.lowered.remove_layers([*heirs])
        taken = {twin.name for twin in heirs.values()}
        self.reformats = [name for name in self.reformats if name not in taken]
        for original, twin in heirs.items():
            del self.origins[original.outputs[0].name]
            self.lowered.rename_layer(twin, original.name)

    def add_owned(self, added: Layer, inputs: Sequence[Tensor], owner: Layer, origin: Tensor | None = None) -> Tensor:
        """The output of a layer that is added as part of another one's step.

        Args:
            added: the layer.
            inputs: what it reads.
            owner: the layer whose step it is part of.
            origin: the tensor that it gives a version of; None where that is no data.
        """
        new = self.lowered.add_layer(added, list(inputs))
        self.reformats.append(new.name)
        self.owners[new.name] = owner.name
        if origin is not None:
            self.origins[new.outputs[0].name] = (origin.name, new.outputs[0].dtype)
        return new.outputs[0]

    def scale(self, tensor: Tensor) -> Tensor:
        """The INT8 scale of a tensor, as a constant."""
        if tensor.name not in self._scales:
            minimum, maximum = cast("tuple[float, float]", tensor.dynamic_range or self._assumed_range)
            scale = np.array(DynamicRange(minimum, maximum).scale, np.float32)
            self._scales[tensor.name] = self.new_constant(f"{tensor.name} [scale]", scale)
        return self._scales[tensor.name]

    def new_constant(self, name: str, values: np.ndarray[Any, Any]) -> Tensor:
        """A constant that the user's network does not have."""
        new = self.lowered.add_layer(Constant(name=name, shape=values.shape, weights=values), []).outputs[0]
        self.rename(new, name)
        return new

    def rename(self, tensor: Tensor, name: str) -> None:
        """Give a tensor of the engine's network a name, or where it is taken one that begins so."""
        if tensor.name != name:
            self.lowered.rename_tensor(tensor, self._free_name(name))

    def _free_name(self, name: str) -> str:
        number, candidate = 0, name
        while self.lowered.find_tensor(candidate) is not None:
            number += 1
            candidate = f"{name}_{number}"
        return candidate


def _converted(values: np.ndarray[Any, Any], dtype: DataType) -> np.ndarray[Any, Any]:
    if values.dtype == np.uint8 and dtype is DataType.INT8:
        return (values ^ np.uint8(128)).view(np.int8)
    with np.errstate(over="ignore"):
        return values.astype(dtype.numpy)
