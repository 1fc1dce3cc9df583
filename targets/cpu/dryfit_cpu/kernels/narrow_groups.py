"""Groups with a matrix product by narrow weights: which they are, and what is packed of them."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Specs
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS
from dryfit_cpu.kernels.constants import WeightedSum
from dryfit_cpu.kernels.epilogues import Epilogue, epilogue_of
from dryfit_cpu.kernels.narrow_quantization import QUANTIZED, can_convert
from dryfit_cpu.kernels.narrow_weights import NarrowWeights, dequantization, narrow_weights, panels_of

NARROW_TYPES = FLOATS | QUANTIZED | {DataType.E8M0}
"""Types of activations that groups with narrow weights may have."""


@attrs.frozen(eq=False)
class NarrowGroup:
    """A group with a matrix product by narrow weights.

    Attributes:
        weights: of the main layer.
        source: what the main layer reads: outside of the group, or quantized there.
        dequantize: of the source, in the group; None where it is real.
        epilogue: what follows the sums, without scales.
        bias: FP32 `[N]`.
        quantize: the last layer, if it is one that quantizes.
    """

    weights: NarrowWeights
    source: Tensor
    dequantize: Dequantize | None
    epilogue: Epilogue
    bias: Array
    quantize: Quantize | None


def narrow_group(group: LayerGroup) -> NarrowGroup | None:
    """The parts of a group; None where it is of another form.

    It does not end in INT8, for which devices round in several ways: that is left to the quantize layer's kernel.
    """
    weights = narrow_weights(group)
    if weights is None:
        return None
    last = group.layers[-1]
    quantize = last if isinstance(last, Quantize) else None
    if quantize is not None and quantize.to_type is DataType.INT8:
        return None
    real = LayerGroup(group.layers[:-1]) if quantize is not None else group
    epilogue = epilogue_of(real)
    bias = None if epilogue is None else _bias(group.main, weights.shape[0], epilogue)
    if epilogue is None or bias is None:
        return None
    source = cast("Tensor", group.main.inputs[0])
    return NarrowGroup(weights, source, dequantization(source, group), epilogue, bias, quantize)


def _bias(layer: Layer, channels: int, epilogue: Epilogue) -> Array | None:
    """What is added to the sums; None where they are also multiplied, or where it is not known."""
    bias = np.zeros(channels, np.float32)
    if isinstance(layer, WeightedSum):
        value = layer.bias
        if len(layer.inputs) > 2 and layer.inputs[2] is not None:
            value = layer.inputs[2].spec.value
            if value is None:
                return None
        bias = bias if value is None else value.astype(np.float32).reshape(-1)
    for scale in epilogue.scales:
        if (scale.factor != 1).any():
            return None
        bias = bias + scale.shift
    return bias if bias.shape == (channels,) else None


def accepts_narrow(group: LayerGroup, specs: Specs) -> bool:
    """Whether weights, what is read and what follows are of a form that the native functions have.

    INT8 by INT8 is left to the integer kernels.
    """
    found = narrow_group(group)
    if found is None or any(0 in specs[tensor.name].shape for tensor in (found.source, *group.main.outputs)):
        return False
    inner = [layer for layer in group.prologue if layer is not found.dequantize]
    if found.dequantize is None:
        # One that it has none of, such as one with zero points, may be in the group all the same.
        is_read = specs[found.source.name].dtype in FLOATS and found.source.producer not in group.layers
    else:
        codes_read = specs[cast("Tensor", found.dequantize.inputs[0]).name].dtype
        is_integer = codes_read is DataType.INT8 and found.weights.dtype is DataType.INT8
        is_read = not is_integer and can_convert(found.dequantize, specs)
    ends = found.quantize is None or can_convert(found.quantize, specs)
    is_constant_end = found.quantize is None or cast("Tensor", found.quantize.inputs[1]).spec.value is not None
    return is_read and ends and is_constant_end and all(_is_ours(layer, group, specs) for layer in inner)


def _is_ours(layer: Layer, group: LayerGroup, specs: Specs) -> bool:
    """Whether a dequantization before the main layer is that of its weights, or of somebody's scales."""
    readers = [reader for reader, _ in layer.outputs[0].consumers if reader in group.layers]
    is_scale = all(isinstance(reader, Dequantize) for reader in readers)
    return not is_scale or can_convert(cast("Dequantize", layer), specs)


def fuses_narrow(group: LayerGroup, layer: Layer) -> bool:
    """Whether a group that begins so can take a layer."""
    return narrow_group(LayerGroup((*group.layers, layer))) is not None


def pack_narrow(group: LayerGroup) -> dict[str, Array]:
    """Words and scales of the weights, and the bias `[panels * 32]`."""
    found = cast("NarrowGroup", narrow_group(group))
    bias = np.zeros(panels_of(found.bias.size) * PANEL_CHANNELS, np.float32)
    bias[: found.bias.size] = found.bias
    return {**found.weights.pack(), "bias": bias}
