"""The types in which layers are computed, and tensors stored on their way between them, with the reasons."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.format_combinations import FormatCombination
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_steps import has_scale
from dryfit.quantization.rounding import Rounding

WEAK_TYPES = frozenset(EXCHANGED_TYPES)
"""Types that the builder may exchange for one another."""


@frozen
class Precisions:
    """Computation types.

    Attributes:
        layers: layer name to the type that it is computed in.
        converted: names of layers whose floating-point tensors have that type, whatever the network says.
        output_types: (layer name, output index) to the type that the user asked for.
        combinations: name of a plugin layer to the types and formats that it gets, where its plugin names some.
        warnings: wishes that could not be granted.
        problems: wishes that had to be granted, and could not.
        reasons: layer name to why it has its type.
        real_tensors: names of the tensors between INT8 layers that run as one: they are never rounded to INT8.
        real_outputs: (layer name, output index) to the type in which an INT8 layer gives what nobody reads in INT8.
        weight_rounding: name of each INT8 layer to how its device rounds the weights.
        assumes_scales: whether every tensor counts as if it had a scale.
        given_types: name of each network input that the caller gives in another type than the network computes on, to
            that type.
        wanted_types: name of each network output whose type on the caller's side was stated, to that type.
        signed_codes: names of the UINT8 tensors that are kept as INT8 codes 128 lower.
    """

    layers: Mapping[str, DataType]
    converted: frozenset[str]
    output_types: Mapping[tuple[str, int], DataType]
    warnings: Sequence[str]
    problems: Sequence[str]
    combinations: Mapping[str, FormatCombination] = attrs.field(factory=dict)
    reasons: Mapping[str, PrecisionReason] = attrs.field(factory=dict)
    real_tensors: frozenset[str] = frozenset()
    real_outputs: Mapping[tuple[str, int], DataType] = attrs.field(factory=dict)
    weight_rounding: Mapping[str, Rounding] = attrs.field(factory=dict)
    assumes_scales: bool = False
    given_types: Mapping[str, DataType] = attrs.field(factory=dict)
    wanted_types: Mapping[str, DataType] = attrs.field(factory=dict)
    signed_codes: frozenset[str] = frozenset()

    def is_int8(self, layer: Layer) -> bool:
        """Whether a layer is computed in INT8 by the ranges of its tensors."""
        return layer.name in self.converted and self.layers[layer.name] is DataType.INT8

    def is_signed(self, tensor: Tensor) -> bool:
        """Whether a tensor has UINT8 codes that are kept as INT8 ones."""
        return tensor.name in self.signed_codes

    def input_type(self, layer: Layer, index: int) -> DataType:
        """The type in which a layer takes one of its connected inputs."""
        tensor = layer.inputs[index] if 0 <= index < len(layer.inputs) else None
        if tensor is None:
            tensor = layer.connected_input(index)
        if layer.name in self.combinations:
            return self.combinations[layer.name].input_types[index]
        # Constant weights are rounded where they are packed, after what can be folded into them; biases stay in the
        # accumulator's type.
        is_packed = layer.is_weighted and index > 0 and tensor.is_constant
        if is_packed or index not in layer.computing_inputs:
            return tensor.dtype
        return self._computed(layer, tensor)

    def produced_type(self, layer: Layer, index: int) -> DataType:
        """The type in which a layer gives one of its outputs."""
        if layer.name in self.combinations:
            return self.combinations[layer.name].output_types[index]
        return self._computed(layer, layer.outputs[index])

    def stored_type(self, layer: Layer, index: int) -> DataType:
        """The type in which others find the output: the one the user asked for, or the one produced."""
        place = (layer.name, index)
        return self.output_types.get(place) or self.real_outputs.get(place) or self.produced_type(layer, index)

    def network_input_type(self, tensor: Tensor) -> DataType:
        """The type in which the caller gives a network input."""
        return self.given_types.get(tensor.name, tensor.dtype)

    def network_output_type(self, tensor: Tensor) -> DataType:
        """The type in which the caller finds a network output: stated for it, or its layer, or the network's."""
        producer = tensor.producer
        if producer is None:
            return self.network_input_type(tensor)
        asked = self.wanted_types.get(tensor.name) or self.output_types.get((producer.name, tensor.output_index))
        return asked or tensor.dtype

    def _computed(self, layer: Layer, tensor: Tensor) -> DataType:
        if tensor.name in self.signed_codes:
            return DataType.INT8
        own = tensor.dtype
        if own not in WEAK_TYPES or layer.name not in self.converted:
            return own
        chosen = self.layers[layer.name]
        if chosen is not DataType.INT8:
            return chosen
        is_stored = tensor.name not in self.real_tensors and has_scale(tensor, self.assumes_scales)
        return DataType.INT8 if is_stored else DataType.FLOAT


class PrecisionCause(enum.StrEnum):
    """What decided on a layer's precision. The values are those of the JSON of `dryfit explain --quantization`."""

    INT8 = "int8"
    """It has the scales for INT8, and INT8 pays."""
    EXPLICIT = "explicit"
    """The network has quantize and dequantize layers, which alone decide what is quantized."""
    STRONGLY_TYPED = "strongly_typed"
    """The network is strongly typed: its types are those of the computation."""
    FLAGS = "flags"
    """The flags permit nothing narrower."""
    NO_ARITHMETIC = "no_arithmetic"
    """It does no floating-point arithmetic, or its types are part of its definition."""
    NO_SCALES = "no_scales"
    """Tensors that it reads or writes have no scale."""
    CONSTRAINT = "constraint"
    """The user set the layer's precision."""
    KIND = "kind"
    """Layers of this kind are not computed in INT8."""
    DEVICE = "device"
    """The device does not compute in INT8."""
    PROMOTED = "promoted"
    """The device computes such a layer in a wider type whatever is asked for."""
    NOISE_REDUCTION = "noise_reduction"
    """It lies between the last sum of many products and a network output in real numbers."""
    DOES_NOT_PAY = "does_not_pay"
    """Conversions around it would move more bytes than INT8 saves."""


@frozen
class PrecisionReason:
    """The reason.

    Attributes:
        cause: in one word.
        text: in words, for people.
        tensors: names of the tensors that have no scale, for that cause.
    """

    cause: PrecisionCause
    text: str
    tensors: Sequence[str] = ()
