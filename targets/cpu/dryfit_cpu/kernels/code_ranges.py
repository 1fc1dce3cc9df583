"""Which INT8 tensors hold no negative codes, as the layers that give them tell: those behind a ReLU, mostly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType, Scale
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.tensor import Tensor
from dryfit_cpu.kernels.integer_stages import Quantized, grid_of

_MOST_LAYERS = 64
"""How many layers one looks back at, constants included. Our choice: what matters stands right before, and where
branches meet again and again there are more paths than there is time for."""
_KEEPING = frozenset({ElementWiseOperation.SUM, ElementWiseOperation.PROD, ElementWiseOperation.MAX})
"""What makes nothing negative of two numbers that are not. The quotient of zeros is NaN."""

Rule = Callable[[Layer], "bool | Rule"]
"""Whether a layer gives what is wanted: yes, no, or if all that it reads follows a rule."""


def has_no_negative_codes(source: Quantized) -> bool:
    """Return whether all codes of a tensor are at least 0, for whatever inputs of the network.

    NaN becomes the lowest code. So it is not enough that the numbers went through a ReLU: they have to be computed from
    codes, which stand for finite ones.
    """
    if source.zero_point != 0:
        return False
    waiting: list[tuple[Tensor, Rule]] = [(source.tensor, _is_never_negative)]
    for _ in range(_MOST_LAYERS):
        if not waiting:
            return True
        tensor, rule = waiting.pop()
        answer = tensor.producer is not None and rule(tensor.producer)
        if answer is False or tensor.producer is None:
            return False
        if answer is not True:
            waiting += [(read, answer) for read in tensor.producer.connected_inputs]
    return False


def _is_never_negative(layer: Layer) -> bool | Rule:
    if isinstance(layer, Activation):
        return _is_finite if _cuts(layer) else False
    if isinstance(layer, (Quantize, Dequantize)):
        grid = grid_of(layer)
        # The zero point and the scale are inputs too, and constants.
        return _is_never_negative if grid is not None and grid.zero_point == 0 and grid.scale > 0 else False
    if layer.kind == "constant":
        values = layer.outputs[0].spec.value
        return values is not None and bool((np.isfinite(values) & (values >= 0)).all())
    return _is_never_negative if _keeps(layer) else False


def _is_finite(layer: Layer) -> bool | Rule:
    """Of products and sums of codes, as scales and weights are finite."""
    if isinstance(layer, Dequantize):
        return True
    if layer.kind == "constant":
        values = layer.outputs[0].spec.value
        return values is not None and bool(np.isfinite(values).all())
    is_linear = layer.sums_products or (isinstance(layer, Scale) and layer.power is None)
    return _is_finite if is_linear or _keeps(layer) or (isinstance(layer, Activation) and _cuts(layer)) else False


def _cuts(layer: Activation) -> bool:
    """Whether an activation gives nothing below zero."""
    if layer.activation_type is ActivationType.CLIP:
        return min(layer.alpha, layer.beta) >= 0
    return layer.activation_type in (ActivationType.RELU, ActivationType.SIGMOID)


def _keeps(layer: Layer) -> bool:
    """Whether a layer gives nothing negative, and nothing but numbers, where it reads only such."""
    if isinstance(layer, Pooling):
        return not layer.may_hold_only_padding and layer.pooling_type is not PoolingType.MAX_AVERAGE_BLEND
    if isinstance(layer, Reduce):
        # The average of nothing is NaN, its maximum minus infinity. A product of many numbers may become infinite, and
        # NaN by a zero that follows.
        has_elements = all(extent >= 1 for extent in layer.connected_inputs[0].shape)
        return has_elements and layer.op is not ReduceOperation.PROD
    if isinstance(layer, Elementwise):
        return layer.op in _KEEPING
    return layer.only_moves_values or isinstance(layer, Concatenation)
