"""A quantized network as the lint looks at it: what is quantized where, seen through layers that only move values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.quantization.range_sharing import covering_of
from dryfit.rule import Rule


@frozen(eq=False)
class QuantizedWeights:
    """The weights of a layer that are a constant behind a dequantization.

    Attributes:
        tensor: what is dequantized or, where the model has them in floating point, what is quantized before.
        dequantize: the layer that gives them to the weighted one.
        quantize: the layer that quantizes them; None for weights that are quantized in the model.
        operand: which input of the weighted layer they are.
        is_moved: whether a transposition or the like is between the dequantization and the weighted layer.
    """

    tensor: Tensor
    dequantize: Dequantize
    quantize: Quantize | None
    operand: int
    is_moved: bool

    @property
    def values(self) -> Array | None:
        """The constant: codes where `quantize` is None, else real numbers; None where it is not known."""
        return self.tensor.spec.value


class NetworkView:
    """Questions about a network, each answered in constant time after one walk over its layers."""

    def __init__(self, network: Network) -> None:
        network.refresh_shapes()
        self.network = network
        self._outputs = {tensor.name for tensor in network.outputs}
        self._dequantized: dict[str, Dequantize] = {}
        self._quantized: dict[str, Quantize] = {}
        self._mixed: set[str] = set()
        for layer in network.layers:
            self._note_dequantized(layer)
        for layer in reversed(network.layers):
            for tensor in layer.outputs:
                self._note_quantized(tensor)

    def _note_dequantized(self, layer: Layer) -> None:
        if isinstance(layer, Dequantize):
            self._dequantized[layer.outputs[0].name] = layer
        elif only_moves(layer):
            before = [self.dequantized_by(tensor) for tensor in moved_inputs(layer)]
            found = [one for one in before if one is not None]
            if found and len(found) == len(before):
                self._dequantized[layer.outputs[0].name] = found[0]
                self._note_mixed(layer, found)

    def _note_mixed(self, layer: Layer, found: Sequence[Dequantize]) -> None:
        is_mixed = any(tensor.name in self._mixed for tensor in moved_inputs(layer))
        if is_mixed or not all(have_equal_scales(one, found[0]) for one in found):
            self._mixed.add(layer.outputs[0].name)

    def _note_quantized(self, tensor: Tensor) -> None:
        behind = [
            reader if isinstance(reader, Quantize) else self._quantized.get(reader.outputs[0].name)
            for reader, _ in tensor.consumers
            if isinstance(reader, Quantize) or only_moves(reader)
        ]
        found = [one for one in behind if one is not None]
        if found and len(found) == len(tensor.consumers) and not self.is_output(tensor):
            self._quantized[tensor.name] = found[0]

    # What stands where --------------------------------------------------------------------------------------------

    @property
    def quantizes(self) -> Sequence[Quantize]:
        """The quantize layers."""
        return [layer for layer in self.network.layers if isinstance(layer, Quantize)]

    @property
    def dequantizes(self) -> Sequence[Dequantize]:
        """The dequantize layers."""
        return [layer for layer in self.network.layers if isinstance(layer, Dequantize)]

    @property
    def conversions(self) -> Sequence[Quantize | Dequantize]:
        """The quantize and dequantize layers, in the order of the network."""
        return [layer for layer in self.network.layers if isinstance(layer, (Quantize, Dequantize))]

    @property
    def weighted(self) -> Sequence[Layer]:
        """The layers that multiply real numbers by weights.

        Source: TensorRT, Working with Quantized Types: convolution, transposed convolution and GEMM.
        """
        return [
            layer for layer in self.network.layers if layer.sums_products and layer.outputs[0].dtype.is_floating_point
        ]

    def is_output(self, tensor: Tensor) -> bool:
        """Whether the caller gets the tensor."""
        return tensor.name in self._outputs

    def dequantized_by(self, tensor: Tensor) -> Dequantize | None:
        """The dequantization that a tensor comes out of; of several, the first one's. None for real numbers."""
        return self._dequantized.get(tensor.name)

    def has_mixed_scales(self, tensor: Tensor) -> bool:
        """Whether a tensor that comes out of dequantizations comes out of several with unequal scales."""
        return tensor.name in self._mixed

    def quantized_by(self, tensor: Tensor) -> Quantize | None:
        """A quantization that a tensor goes into; None where anything reads it in real numbers."""
        return self._quantized.get(tensor.name)

    # Operands of weighted layers ----------------------------------------------------------------------------------

    def weights(self, layer: Layer) -> QuantizedWeights | None:
        """The quantized constant that a weighted layer multiplies by; None where there is none."""
        found = (self._weights_at(layer, index) for index in range(min(2, len(layer.inputs))))
        return next((one for one in found if one is not None), None)

    def data(self, layer: Layer) -> Sequence[Tensor]:
        """What a weighted layer reads that is neither constant nor bias: one tensor, or two matrices."""
        return [
            tensor
            for index, tensor in enumerate(layer.inputs[:2])
            if tensor is not None and not tensor.is_constant and self._weights_at(layer, index) is None
        ]

    def has_real_weights(self, layer: Layer) -> bool:
        """Whether a weighted layer multiplies by a constant that is not quantized."""
        is_parameter = getattr(layer, "kernel", None) is not None
        return is_parameter or any(tensor is not None and tensor.is_constant for tensor in layer.inputs[:2])

    def is_quantized(self, layer: Layer) -> bool:
        """Whether all that a weighted layer multiplies is quantized."""
        return not self.has_real_weights(layer) and all(self.dequantized_by(one) for one in self.data(layer))

    def _weights_at(self, layer: Layer, index: int) -> QuantizedWeights | None:
        operand = layer.inputs[index]
        dequantize = None if operand is None else self.dequantized_by(operand)
        source = None if dequantize is None else dequantize.inputs[0]
        if operand is None or dequantize is None or source is None:
            return None
        is_moved = operand.producer is not dequantize
        if source.is_constant:
            return QuantizedWeights(source, dequantize, None, index, is_moved)
        quantize = source.producer
        real = quantize.inputs[0] if isinstance(quantize, Quantize) else None
        if isinstance(quantize, Quantize) and real is not None and real.is_constant:
            return QuantizedWeights(real, dequantize, quantize, index, is_moved)
        return None


def is_of_weights(layer: Quantize | Dequantize) -> bool:
    """Whether a layer quantizes or dequantizes a constant."""
    source = layer.inputs[0]
    if source is not None and isinstance(layer, Dequantize) and isinstance(source.producer, Quantize):
        source = source.producer.inputs[0]
    return source is not None and source.is_constant


def only_moves(layer: Layer) -> bool:
    """Whether a layer gives values of its inputs and no others, so that quantizing before or after it is the same."""
    if isinstance(layer, Pooling):
        return layer.pooling_type is PoolingType.MAX
    return covering_of(layer) is not None


def moved_inputs(layer: Layer) -> Sequence[Tensor]:
    """The data of a layer that only moves values: the inputs of a concatenation, the first input of others."""
    inputs = layer.inputs if layer.kind == "concatenation" else layer.inputs[:1]
    return [tensor for tensor in inputs if tensor is not None]


def scale_of(layer: Layer) -> Array | None:
    """The scale of a quantize or dequantize layer; None where it is computed."""
    scale = layer.inputs[1] if len(layer.inputs) > 1 else None
    return None if scale is None else scale.spec.value


def have_equal_scales(one: Layer, other: Layer) -> bool:
    """Whether two quantize or dequantize layers have the same known scale; unknown ones count as equal."""
    scales = scale_of(one), scale_of(other)
    return scales[0] is None or scales[1] is None or np.array_equal(scales[0].reshape(-1), scales[1].reshape(-1))


def scale_text(layer: Layer) -> str:
    """The scale of a quantize or dequantize layer in words."""
    scale = scale_of(layer)
    if scale is None:
        return "a computed scale"
    numbers = scale.astype(np.float64).reshape(-1)
    return f"{numbers[0]:.7g}" if numbers.size == 1 else f"{numbers.size} scales from {numbers.min():.7g}"


def readers(tensor: Tensor) -> Iterator[Layer]:
    """The layers that read a tensor, each once."""
    yield from dict.fromkeys(reader for reader, _ in tensor.consumers)


# Rules ----------------------------------------------------------------------------------------------------------------


SEVERITIES = ("error", "warning", "note")
"""What a finding means: devices refuse it or compute something else; it costs accuracy or time; it is worth knowing."""

CHAPTER = "TensorRT 10 developer guide, Working with Quantized Types"
PLACEMENT = f"{CHAPTER}, Q/DQ Layer-Placement Recommendations"

Hit = tuple[Layer, Tensor, str]
"""The layer, its tensor and, in one sentence without its full stop, what was found there."""


@frozen
class LintFinding:
    """One place that violates a rule.

    Attributes:
        rule: the rule's id.
        severity: `error`, `warning` or `note`.
        layer: the layer.
        kind: its kind.
        onnx_nodes: the nodes of the model that it comes from.
        tensor: the tensor that it is about.
        found: what was found, in one sentence.
    """

    rule: str
    severity: str
    layer: str
    kind: str
    onnx_nodes: Sequence[str]
    tensor: str
    found: str

    @property
    def text(self) -> str:
        """The tensor, and what was found there."""
        return f"tensor {self.tensor!r}: {self.found}"

    def __str__(self) -> str:
        return f"{self.rule}: layer {self.layer!r}, {self.text}"


def lint_rule(
    id: str, *, text: str, remedy: str, source: str = PLACEMENT, severity: str = "warning"
) -> Callable[[Callable[[NetworkView], Iterable[Hit]]], Rule]:
    """Make a function the finder of a rule; `severity` is one of `SEVERITIES`."""
    return lambda finder: Rule(id, text, source, remedy, finder=finder, severity=severity)
