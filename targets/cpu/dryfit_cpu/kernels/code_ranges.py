"""Which INT8 tensors hold no negative codes, as the layers that give them tell: those behind a ReLU, mostly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.window_layer import Pooling
from dryfit.network.tensor import Tensor
from dryfit_cpu.kernels.integer_stages import Quantized, grid_of

_MOST_LAYERS = 16
"""How far back one looks. Our choice: what matters stands right before."""
_KEEPING = frozenset({ElementWiseOperation.SUM, ElementWiseOperation.PROD, ElementWiseOperation.MAX})
"""What makes nothing negative of two numbers that are not. The quotient of zeros is NaN."""


def has_no_negative_codes(source: Quantized) -> bool:
    """Whether all codes of a tensor are at least 0, whatever the network reads.

    NaN becomes the lowest code. So it is not enough that the numbers went through a ReLU: they have to be computed from
    codes, which stand for finite ones.
    """
    return source.zero_point == 0 and _holds(source.tensor, _is_never_negative, _MOST_LAYERS)


Rule = Callable[[Layer], "bool | Rule"]
"""Whether a layer gives what is wanted: yes, no, or if all that it reads follows a rule."""


def _holds(tensor: Tensor | None, rule: Rule, layers: int) -> bool:
    """Whether what gives a tensor follows a rule, looking back over so many layers."""
    layer = None if tensor is None else tensor.producer
    if layer is None or layers == 0:
        return False
    answer = rule(layer)
    if isinstance(answer, bool):
        return answer
    return all(_holds(read, answer, layers - 1) for read in layer.inputs if read is not None)


def _is_never_negative(layer: Layer) -> bool | Rule:
    if isinstance(layer, Activation):
        return _is_finite if _cuts(layer) else False
    if isinstance(layer, (Quantize, Dequantize)):
        grid = grid_of(layer)
        # The zero point and the scale are inputs too, and constants.
        return _is_never_negative if grid is not None and grid.zero_point == 0 and grid.scale > 0 else False
    if layer.kind == "constant":
        values = layer.outputs[0].spec.value
        return values is not None and bool((values >= 0).all())
    is_kept = layer.only_moves_values or isinstance(layer, (Concatenation, Pooling))
    keeps = is_kept or (isinstance(layer, Elementwise) and layer.op in _KEEPING)
    return _is_never_negative if keeps else False


def _cuts(layer: Activation) -> bool:
    """Whether an activation gives nothing below zero."""
    if layer.activation_type is ActivationType.CLIP:
        return layer.alpha >= 0
    return layer.activation_type in (ActivationType.RELU, ActivationType.SIGMOID, ActivationType.HARD_SIGMOID)


def _is_finite(layer: Layer) -> bool | Rule:
    """Of products and sums of codes, as scales and weights are finite."""
    if isinstance(layer, Dequantize):
        return True
    if layer.kind == "constant":
        values = layer.outputs[0].spec.value
        return values is not None and bool(np.isfinite(values).all())
    is_kept = layer.only_moves_values or isinstance(layer, (Concatenation, Pooling, Activation))
    is_computed = layer.sums_products or layer.kind == "scale"
    keeps = is_kept or is_computed or (isinstance(layer, Elementwise) and layer.op in _KEEPING)
    return _is_finite if keeps else False
