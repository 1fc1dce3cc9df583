"""Who computes with weights of a network, also where they are quantized or dequantized on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.movement import Identity
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.tensor import Tensor
from dryfit.network.weights_role import NamedWeights, WeightsRole
from dryfit.reference.quantization import spread

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class WeightReader:
    """One use of weights.

    Attributes:
        layer: name of the one that computes with them; "" where they are an output of the network.
        is_weights: whether they are the kernel of a convolution or deconvolution, rather than a bias or data.
        shape: in which it reads them.
        scale: of quantized weights, as it broadcasts against them; 1 for real ones.
        zero: what stands for 0 among quantized weights; broadcasts too.
    """

    layer: str
    is_weights: bool
    shape: tuple[int, ...]
    scale: Array | float = 1.0
    zero: Array | int = 0

    def real(self, values: Array) -> Array:
        """The real numbers of stored values: float32, or float64 of float64."""
        wide = np.float64 if values.dtype == np.float64 else np.float32
        real: Array = (values.astype(wide) - np.asarray(self.zero, wide)) * np.asarray(self.scale, wide)
        return real


def weight_readers(weights: NamedWeights) -> list[WeightReader]:
    """Every use of weights, in the order of their places."""
    found: list[WeightReader] = []
    for layer, role in weights.places:
        if role is WeightsRole.CONSTANT:
            found += _behind(layer.outputs[0], WeightReader("", is_weights=False, shape=layer.outputs[0].shape))
        else:
            is_kernel = role is WeightsRole.KERNEL and isinstance(layer, KernelLayer)
            found.append(WeightReader(layer.name, is_weights=is_kernel, shape=_kernel_shape(layer, role, weights)))
    return found


def _kernel_shape(layer: Layer, role: WeightsRole, weights: NamedWeights) -> tuple[int, ...]:
    kernel: Array | None = getattr(layer, "kernel", None) if role is WeightsRole.KERNEL else None
    shape: tuple[int, ...] = weights.values.shape if kernel is None else kernel.shape
    return shape


def _behind(tensor: Tensor, reader: WeightReader) -> Iterator[WeightReader]:
    if tensor.is_network_output:
        yield reader
    for layer, index in tensor.consumers:
        if index == 0 and (layer.is_conversion or isinstance(layer, Identity)):
            yield from _behind(layer.outputs[0], _through(layer, reader))
        else:
            yield attrs.evolve(reader, layer=layer.name, is_weights=isinstance(layer, KernelLayer) and index == 1)


def _through(layer: Layer, reader: WeightReader) -> WeightReader:
    """The reader behind a layer: stored integers mean what the first dequantization makes of them."""
    if not isinstance(layer, Dequantize) or layer.inputs[0] is None or _is_quantized_here(layer):
        return reader
    scale, zero = (_value(layer, index) for index in (1, 2))
    return attrs.evolve(reader, scale=1.0 if scale is None else scale, zero=0 if zero is None else zero)


def _is_quantized_here(layer: Dequantize) -> bool:
    """Whether the integers are made by a quantize layer, so that real weights stand in the network."""
    source = layer.inputs[0]
    return source is not None and source.producer is not None and source.producer.kind == "quantize"


def _value(layer: Dequantize, index: int) -> Array | None:
    """The constant scale or zero point of a dequantization, as it broadcasts; None where there is none."""
    tensor = layer.inputs[index] if len(layer.inputs) > index else None
    source = layer.inputs[0]
    if tensor is None or source is None or tensor.spec.value is None:
        return None
    return spread(layer, tensor.spec.value, source.shape, layer.axis, layer.block_shape)
