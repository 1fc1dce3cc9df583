"""A quantized group: a layer with the dequantizations before it and the quantizations after it, looked at as one unit.

A network with Q/DQ pairs says in real numbers what is meant to be computed on quantized ones. The group is what a
device, a plugin or a kernel can take on as a whole: quantized tensors in, quantized tensors out, with their scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Array, Tensor
from dryfit.reference.quantization import spread


@frozen(eq=False)
class QuantizedGroup:
    """A layer and its Q/DQ neighbours. Found by `find_quantized_group`; read-only.

    Attributes:
        layer: what is computed, in floating point.
        dequantizes: for each input of the layer the layer that dequantizes it; None for an input that is not data
            (an index, a shape), that is a constant in floating point (a bias), or that is absent.
        quantizes: for each output the layer that quantizes it; of several that do the same, one.
        activation: a layer between the layer and its quantization that the group computes too, or None.
        constants: index of an input to the integers that replace known floating-point values (a bias).

    Example:
        >>> group = find_quantized_group(network.layer("conv"))
        >>> [tensor.name for tensor in group.inputs], [tensor.name for tensor in group.outputs]
        (['x_quantized', 'weights_quantized'], ['y_quantized'])
        >>> float(group.input_scales[0]), group.input_scales[1].shape
        (0.5, (8, 1, 1, 1))
    """

    layer: Layer
    dequantizes: Sequence[Dequantize | None]
    quantizes: Sequence[Quantize]
    activation: Layer | None = None
    constants: Mapping[int, Tensor] = attrs.field(factory=dict)

    @property
    def inputs(self) -> Sequence[Tensor | None]:
        """The layer's inputs on the quantized side: what is dequantized, and what is not quantized as it is."""
        found = [
            tensor if dequantize is None else dequantize.inputs[0]
            for tensor, dequantize in zip(self.layer.inputs, self.dequantizes, strict=True)
        ]
        found += [None] * (max(self.constants, default=-1) + 1 - len(found))
        return [self.constants.get(index, tensor) for index, tensor in enumerate(found)]

    @property
    def real_outputs(self) -> Sequence[Tensor]:
        """What is quantized: the outputs of the last layer that computes."""
        return (self.activation or self.layer).outputs

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The quantized outputs, in the order of the layer's outputs; of a group that gives flags these."""
        return [quantize.outputs[0] for quantize in self.quantizes] or self.real_outputs

    @property
    def input_scales(self) -> Sequence[Array | None]:
        """For each input its scale: float32, and broadcasts against the input; None for one that is not quantized."""
        return [None if one is None else _scale(one) for one in self.dequantizes]

    @property
    def output_scales(self) -> Sequence[Array]:
        """For each output its scale: float32, and broadcasts against the output."""
        return [_scale(one) for one in self.quantizes]

    @property
    def private_dequantizes(self) -> Sequence[Dequantize]:
        """The dequantizations that only this layer reads, each once: they go where the group goes."""
        return [one for one in dict.fromkeys(self.dequantizes) if one is not None and self._is_private(one)]

    @property
    def is_whole(self) -> bool:
        """Whether no dequantization is shared with other layers, so that none stays behind without the group."""
        return len(self.private_dequantizes) == len({id(one) for one in self.dequantizes if one is not None})

    def _is_private(self, dequantize: Dequantize) -> bool:
        output = dequantize.outputs[0]
        return not output.is_network_output and all(reader is self.layer for reader, _ in output.consumers)


def find_quantized_group(
    layer: Layer, activation: Layer | None = None, *, takes_zero_points: bool = False, gives_flags: bool = False
) -> QuantizedGroup | None:
    """The quantized group around a layer of a network, or None where there is none.

    There is one when all data that the layer reads comes out of dequantize layers, and all that it gives goes into
    quantize layers that do the same, each with a scale that is known. A result that is wanted in real numbers, or
    quantized under the names of two network outputs, makes it none.

    Args:
        layer: the centre.
        activation: the layer that alone reads what the centre gives, and is to be part of the group.
        takes_zero_points: whether the group may have zero points. Devices do not have them, and what overlooked one
            would compute something else.
        gives_flags: whether a layer that gives BOOL only is the centre of a group, with nothing behind it.
    """
    # These compute nothing that a group could be about.
    if layer.is_quantization or layer.kind in ("constant", "shape"):
        return None
    dequantizes: list[Dequantize | None] = []
    for tensor in layer.inputs:
        producer = None if tensor is None else tensor.producer
        if isinstance(producer, Dequantize) and _has_known_scale(producer, takes_zero_points=takes_zero_points):
            dequantizes.append(producer)
        elif tensor is None or not tensor.dtype.is_floating_point or tensor.is_constant:
            dequantizes.append(None)
        else:
            return None
    outputs = (activation or layer).outputs
    if gives_flags and all(output.dtype is DataType.BOOL for output in outputs):
        return QuantizedGroup(layer, dequantizes, []) if any(dequantizes) else None
    found = [_quantization(output, takes_zero_points=takes_zero_points) for output in outputs]
    quantizes = [quantize for quantize in found if quantize is not None]
    is_group = any(dequantizes) and len(quantizes) == len(outputs)
    return QuantizedGroup(layer, dequantizes, quantizes, activation) if is_group else None


def missing_for_group(layer: Layer, activation: Layer | None = None, *, takes_zero_points: bool = False) -> list[str]:
    """What keeps a layer that is no centre of a quantized group from being one, in words; [] where nothing does."""
    found = []
    unknown = _UNKNOWN if takes_zero_points else _UNKNOWN_SCALE
    for tensor in layer.inputs:
        producer = None if tensor is None else tensor.producer
        if tensor is None or not tensor.dtype.is_floating_point or tensor.is_constant:
            continue
        if not isinstance(producer, Dequantize):
            found.append(f"its input {tensor.name!r} is not dequantized")
        elif not _has_known_scale(producer, takes_zero_points=takes_zero_points):
            found.append(f"{producer.where}, which gives its input {tensor.name!r}, {unknown}")
    outputs = [one for one in (activation or layer).outputs if one.dtype is not DataType.BOOL or not takes_zero_points]
    behind = [one for one in outputs if _quantization(one, takes_zero_points=takes_zero_points) is None]
    return [*found, *(f"its output {one.name!r} {_missing_behind(one, unknown, takes_zero_points)}" for one in behind)]


LARGEST_STEP = 24
"""Layers between quantizations that count as one step on codes: a library's operator imports as a few layers. Our
choice; it bounds the search in networks that are not quantized."""


def code_type(layer: Layer) -> DataType | None:
    """Return the type of the codes that a layer computes on, or None if it computes on real numbers that are stored.

    A layer on real numbers computes on codes if all of them come from dequantize layers or constants, and all of them
    end in quantize layers, possibly by way of other such layers: these are one step, of which nothing real is stored.
    The type is that of the step's codes: of those it reads, else of those it gives. A layer without real numbers has
    the type of its first tensor.
    """
    tensors = [tensor for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]
    if layer.is_quantization:
        return _codes_of(layer).dtype
    if not any(tensor.dtype.is_floating_point for tensor in tensors):
        return tensors[0].dtype if tensors else None
    read, given = list[DataType](), list[DataType]()
    seen: dict[str, None] = {layer.name: None}
    waiting = [layer]
    while waiting:
        one = waiting.pop()
        for tensor in one.inputs:
            producer = None if tensor is None else tensor.producer
            if tensor is None or not tensor.dtype.is_floating_point or tensor.is_constant:
                continue
            if producer is None or len(seen) > LARGEST_STEP:
                return None
            if isinstance(producer, Dequantize):
                read.append(_codes_of(producer).dtype)
            elif producer.name not in seen:
                seen[producer.name] = None
                waiting.append(producer)
        for tensor in one.outputs:
            if not tensor.dtype.is_floating_point:
                continue
            if tensor.is_network_output or len(seen) > LARGEST_STEP:
                return None
            for reader, index in tensor.consumers:
                if isinstance(reader, Quantize) and index == 0:
                    given.append(reader.to_type)
                elif reader.name not in seen:
                    seen[reader.name] = None
                    waiting.append(reader)
    return next(iter((*read, *given)), None)


def _codes_of(layer: Layer) -> Tensor:
    """The quantized side of a quantize or dequantize layer."""
    side = layer.outputs[0] if isinstance(layer, Quantize) else layer.inputs[0]
    if side is None:
        raise layer.problem("The layer must have an input", remedy="Connect its input 0")
    return side


_UNKNOWN_SCALE = "has a zero point, or a scale that is not constant"
_UNKNOWN = "has a scale or a zero point that is not constant"


def _missing_behind(output: Tensor, unknown: str, takes_zero_points: bool) -> str:
    """Why no quantize layer stands for all readers of an output."""
    others = [reader.name for reader, index in output.consumers if not isinstance(reader, Quantize) or index]
    if output.is_network_output:
        return "is an output of the network"
    if others or not output.consumers:
        return f"is read in floating point by {', '.join(map(repr, others))}" if others else "is not quantized"
    quantizes = [reader for reader, _ in output.consumers if isinstance(reader, Quantize)]
    if not all(_has_known_scale(one, takes_zero_points=takes_zero_points) for one in quantizes):
        return f"is quantized by a layer that {unknown}"
    return "is quantized in different ways, or under the names of two network outputs"


def _quantization(output: Tensor, *, takes_zero_points: bool = False) -> Quantize | None:
    """The quantize layer that stands for all readers of an output; None where they do not all do the same."""
    readers = [reader for reader, index in output.consumers if isinstance(reader, Quantize) and index == 0]
    if not readers or len(readers) != len(output.consumers) or output.is_network_output:
        return None
    if not all(_has_known_scale(reader, takes_zero_points=takes_zero_points) for reader in readers):
        return None
    if not all(_is_same(reader, readers[0]) for reader in readers):
        return None
    named = [reader for reader in readers if reader.outputs[0].is_network_output]
    return None if len(named) > 1 else (named or readers)[0]


def _is_same(one: Quantize, other: Quantize) -> bool:
    settings = [(q.to_type, q.saturate) for q in (one, other)]
    is_equal = settings[0] == settings[1] and np.array_equal(_scale(one), _scale(other))
    return is_equal and np.array_equal(_zero_point(one), _zero_point(other))


def _has_known_scale(layer: Quantize | Dequantize, *, takes_zero_points: bool = False) -> bool:
    """Whether the scale is a constant, and no zero point stands beside it, or one that is a constant too."""
    x, scale, zero_point = layer.inputs[0], layer.inputs[1], layer.get_input(2)
    if x is None or scale is None or scale.spec.value is None:
        return False
    if zero_point is not None and not (takes_zero_points and zero_point.spec.value is not None):
        return False
    is_blocked = bool(layer.block_shape) or (len(scale.shape) > 1 and scale.spec.value.size > 1)
    return x.spec.is_static or not is_blocked


def _scale(layer: Quantize | Dequantize) -> Array:
    x, scale = layer.inputs[0], layer.inputs[1]
    if x is None or scale is None or scale.spec.value is None:
        raise layer.problem("The scale must be constant", allowed="a constant", remedy="Find the group again")
    return spread(layer, scale.spec.value, x.shape, layer.axis, layer.block_shape).astype(DataType.FLOAT.numpy)


def _zero_point(layer: Quantize | Dequantize) -> Array:
    tensor = layer.get_input(2)
    value = None if tensor is None else tensor.spec.value
    return np.zeros(1, np.int32) if value is None else value.astype(np.int32)
