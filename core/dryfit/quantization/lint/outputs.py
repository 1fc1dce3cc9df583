"""Rules on quantized outputs of weighted layers: who reads them, and what should have run with the layer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType, Scale
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Array, Tensor
from dryfit.quantization.lint.network_view import Hit, NetworkView, lint_rule, readers

LINEAR_PIECES = frozenset(
    {
        *(ActivationType.RELU, ActivationType.LEAKY_RELU, ActivationType.CLIP),
        *(ActivationType.HARD_SIGMOID, ActivationType.THRESHOLDED_RELU),
    }
)
"""Activations made of straight lines: they stretch no error of their input, and are computed with the layer before."""


@frozen(eq=False)
class WeightedOutput:
    """A weighted layer whose output is quantized, dequantized and read.

    Attributes:
        layer: the weighted layer.
        quantize: the layer that quantizes its output.
        dequantize: one that dequantizes it.
        reader: one that reads it in floating point then; None where the caller gets it.
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
            current = next((one for one in layer.connected_inputs if not one.is_constant), None)
        elif isinstance(layer, Scale) or layer.only_moves_values:
            current = layer.inputs[0]
        else:
            return None
    return None


@lint_rule(
    "qdq.output.activation",
    text="There must be no Q/DQ between a weighted layer and the ReLU or clip that is fused with it",
    remedy="Remove the Q/DQ between the two: it rounds once more, and may prevent the fusion",
)
def output_activation(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ between a weighted layer and its ReLU, which nobody else reads."""
    for one in weighted_outputs(view):
        if one.is_private and one.reader is not None and is_piecewise_linear(one.reader):
            yield one.layer, one.tensor, f"it is quantized before {one.reader.name!r}"


CURVED_KINDS = frozenset({"softmax", "unary", "normalization"})
"""Kinds beside activations whose results hang on differences that quantized inputs lose."""


@lint_rule(
    "qdq.output.nonlinear",
    text="There must be no Q/DQ between a weighted layer and a nonlinear function such as SiLU",
    remedy="Remove the Q/DQ between the two, and quantize the output of the function where the next layer needs it",
)
def output_nonlinear(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ between a weighted layer and a sigmoid, softmax or the like."""
    for one in weighted_outputs(view):
        if one.reader is not None and is_curved(one.reader):
            yield one.layer, one.tensor, f"it is quantized before {one.reader.name!r} ({_function(one.reader)})"


def is_curved(layer: Layer) -> bool:
    """Whether a layer applies a function that is no straight line."""
    return layer.kind in CURVED_KINDS or (isinstance(layer, Activation) and not is_piecewise_linear(layer))


def _function(layer: Layer) -> str:
    return layer.activation_type.value if isinstance(layer, Activation) else layer.kind


@lint_rule(
    "qdq.output.normalization",
    text="There must be no Q/DQ between a weighted layer and its batch normalization",
    remedy="Remove the Q/DQ between the two: the normalization is fused with the layer",
)
def output_normalization(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ between a weighted layer and a batch normalization, which is a scale layer here."""
    for one in weighted_outputs(view):
        if isinstance(one.reader, Scale):
            yield one.layer, one.tensor, f"it is quantized before {one.reader.name!r}"


@lint_rule(
    "qdq.output.sum",
    text="One operand of a sum must come from a weighted layer without Q/DQ, so that the two are fused",
    remedy="Remove the Q/DQ on this operand, and keep the one on the residual operand",
)
def output_sum(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ on every operand of a sum: the weighted layer and the sum are computed apart.

    Of several operands that come from weighted layers, that of the last one is told: the others are ready before it.
    """
    latest: dict[str, Hit] = {}
    for one in weighted_outputs(view):
        if one.reader is None or not one.is_private or not is_sum_of_data(one.reader) or _has_real_operand(one.reader):
            continue
        known = latest.get(one.reader.name)
        if known is None or known[0].index < one.layer.index:
            latest[one.reader.name] = (one.layer, one.tensor, f"it is quantized before the sum {one.reader.name!r}")
    yield from latest.values()


def _has_real_operand(layer: Layer) -> bool:
    return any(tensor is not None and weighted_before(tensor) is not None for tensor in layer.inputs)


@lint_rule(
    "qdq.output.unread",
    text="The output of a weighted layer should be quantized only where a layer uses it in integers",
    remedy="Remove the Q/DQ, or make the quantized tensor the network output",
)
def output_unread(view: NetworkView) -> Iterator[Hit]:
    """A quantized output that is turned back into real numbers for the caller alone: it is only rounded."""
    told = set()
    for one in weighted_outputs(view):
        readers = [reader for reader, _ in one.quantize.outputs[0].consumers]
        is_for_caller = one.reader is None and not one.dequantize.outputs[0].consumers and len(readers) == 1
        if is_for_caller and one.quantize.name not in told:
            told.add(one.quantize.name)
            yield one.layer, one.tensor, "it is quantized, and immediately dequantized for the network output"


TOLERANCE = 1e-3
"""Relative difference up to which two factors are taken as the same one: they are computed in FP32 in two ways."""


@lint_rule(
    "qdq.normalization.folded",
    text="Training must not simulate folding of batch normalization into weights",
    remedy="Train the quantized network with the normalization as it is: engines keep its place and its arithmetic",
)
def folded_normalization(view: NetworkView) -> Iterator[Hit]:
    """The trace that simulated folding leaves in an exported model: output / factor, then normalized by that factor.

    The weights are then quantized as weights * factor. A model whose normalization is folded for good before it is
    exported cannot be told from one that never had any, and is not found.
    """
    for layer in view.network.layers:
        source = layer.inputs[0] if isinstance(layer, Scale) else None
        before = None if source is None else source.producer
        if not isinstance(layer, Scale) or source is None or not isinstance(before, Elementwise) or layer.scale is None:
            continue
        divided, factor = _division(before)
        weighted = None if divided is None else weighted_before(divided)
        if divided is None or factor is None or weighted is None or view.weights(weighted) is None:
            continue
        scale = layer.scale.reshape(-1)
        if factor.size == scale.size and np.allclose(scale, factor, rtol=TOLERANCE, atol=0):
            yield layer, source, f"the output of {weighted.name!r} is divided by what {layer.name!r} multiplies with"


def _division(layer: Elementwise) -> tuple[Tensor | None, Array | None]:
    """(what is divided, by what constant), for a division or a product with a constant."""
    first, second = layer.inputs[:2]
    if first is not None and second is not None and second.is_constant and second.spec.value is not None:
        value = second.spec.value.astype(np.float64).reshape(-1)
        if layer.op is ElementWiseOperation.DIV:
            return first, value
        if layer.op is ElementWiseOperation.PROD and value.all():
            return first, 1 / value
    return None, None
