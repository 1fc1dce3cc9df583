"""Quantized outputs of weighted layers, and who reads them: what several rules look at."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.quantize import Quantize
from dryfit.network.layers.scale import Scale
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import NetworkView, readers

LINEAR_PIECES = frozenset(
    {
        *(ActivationType.RELU, ActivationType.LEAKY_RELU, ActivationType.CLIP),
        *(ActivationType.HARD_SIGMOID, ActivationType.THRESHOLDED_RELU),
    }
)
"""Activations made of straight lines: they stretch no error of their input, and are computed with the layer before."""


@attrs.frozen(eq=False)
class WeightedOutput:
    """A weighted layer whose output is quantized, dequantized and read.

    Attributes:
        layer: the weighted layer.
        quantize: the layer that quantizes its output.
        dequantize: one that dequantizes it.
        reader: one that reads it in real numbers then; None where the caller gets it.
        is_private: whether nobody else reads the output, quantized or not.
    """

    layer: Layer
    quantize: Quantize
    dequantize: Dequantize
    reader: Layer | None
    is_private: bool

    @property
    def tensor(self) -> Tensor:
        """What is quantized."""
        tensor = self.quantize.inputs[0]
        return self.layer.outputs[0] if tensor is None else tensor


def weighted_outputs(view: NetworkView) -> Iterator[WeightedOutput]:
    """Every weighted layer with each reader of its output that is quantized and dequantized, in the order of layers."""
    for layer in view.weighted:
        for quantize in _behind(view, layer.outputs[0]):
            if not isinstance(quantize, Quantize) or quantize.inputs[0] is None:
                continue
            for dequantize in readers(quantize.outputs[0]):
                if not isinstance(dequantize, Dequantize):
                    continue
                tensors = (quantize.inputs[0], quantize.outputs[0], dequantize.outputs[0])
                is_private = all(len(one.consumers) == 1 and not view.is_output(one) for one in tensors)
                for reader in _behind(view, dequantize.outputs[0]):
                    yield WeightedOutput(layer, quantize, dequantize, reader, is_private)


def _behind(view: NetworkView, tensor: Tensor) -> Iterator[Layer | None]:
    """The layers that read a tensor, seen through those that give it in another shape; None for the caller."""
    waiting = [tensor]
    while waiting:
        current = waiting.pop()
        if view.is_output(current):
            yield None
        for reader in readers(current):
            if reader.only_moves_values:
                waiting.append(reader.outputs[0])
            else:
                yield reader


def is_sum_of_data(layer: Layer | None) -> bool:
    """Whether a layer adds two tensors, neither of them a constant."""
    is_sum = isinstance(layer, Elementwise) and layer.op is ElementWiseOperation.SUM
    return is_sum and layer is not None and not any(one is None or one.is_constant for one in layer.inputs)


def is_piecewise_linear(layer: Layer | None) -> bool:
    """Whether a layer is a ReLU, a clip or the like."""
    return isinstance(layer, Activation) and layer.activation_type in LINEAR_PIECES


def weighted_before(tensor: Tensor) -> Layer | None:
    """The weighted layer whose sums a tensor holds in real numbers; None where it holds something else.

    A bias that is added behind it and a batch normalization belong to these sums.
    """
    current: Tensor | None = tensor
    while current is not None and current.producer is not None:
        layer = current.producer
        if layer.sums_products:
            return layer
        if isinstance(layer, Elementwise) and layer.op is ElementWiseOperation.SUM and not is_sum_of_data(layer):
            current = next((one for one in layer.inputs if one is not None and not one.is_constant), None)
        elif isinstance(layer, Scale) or layer.only_moves_values:
            current = layer.inputs[0]
        else:
            return None
    return None
