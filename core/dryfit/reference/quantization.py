"""Quantize, dequantize, cast and quantized operators, and the scales that they take.

Scales are spread over the elements that they serve. Those that are known in a run only, given by the caller or
computed, are checked in each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Cast, Dequantize, DynamicQuantize, Quantize
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.layers.scale_granularity import block_extents, wrong_scales
from dryfit.network.tensor import Array, Tensor
from dryfit.reference.precision import convert, limits
from dryfit.reference.registry import reference


def spread(layer: Layer, scale: Array, shape: tuple[int, ...], axis: int, block_shape: Sequence[int]) -> Array:
    """The scale (or zero point) in a form that broadcasts against data of this shape.

    Raises:
        NetworkError: it does not fit the data.
    """
    blocks = block_extents(layer, shape, scale.shape, axis, block_shape)
    if scale.size == 1:
        return scale.reshape(())
    if scale.ndim == 1 and len(shape) != 1:
        return scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    for i, (block, extent) in enumerate(zip(blocks, shape, strict=True)):
        if scale.shape[i] != 1 and block != 1:
            scale = np.repeat(scale, block, axis=i)[(slice(None),) * i + (slice(extent),)]
    return scale


def run_time_scale(layer: Layer) -> Tensor | None:
    """The scale of a layer that has to be looked at in each run; None for one known before, or found by quantizing.

    What a dynamic quantize layer finds is right for its data, whatever the data is.
    """
    if not isinstance(layer, (Quantize, Dequantize)):
        return None
    scale = layer.get_input(1)
    if scale is None or scale.spec.value is not None:
        return None
    producer = scale.producer
    if producer is not None and producer.kind == "constant":
        return None
    while isinstance(producer, Dequantize):  # scales that are quantized themselves
        source = producer.get_input(0)
        producer = None if source is None else source.producer
    return None if isinstance(producer, DynamicQuantize) else scale


def check_run_time_scale(layer: Layer, arrays: Mapping[str, Array]) -> None:
    """Refuse values of a run-time scale by which nothing can be quantized.

    Args:
        layer: of any kind.
        arrays: tensor name to contents; without the scale where the layer's group makes it.

    Raises:
        ExecutionError: one is not finite or not positive. A computed one may be 0: a tensor of zeros has such a range.
    """
    scale = run_time_scale(layer)
    if scale is None or scale.name not in arrays:
        return
    values = arrays[scale.name].astype(np.float64)
    is_given = scale.producer is None
    wrong = wrong_scales(values if is_given else np.where(values == 0, 1, values))
    if wrong is not None:
        raise ExecutionError(
            "Scales must be finite and positive",
            where=f"{layer.where}, tensor {scale.name!r}",
            found=wrong,
            allowed="finite numbers above 0" if is_given else "finite numbers, at least 0",
            remedy=f"Set other values in {scale.name!r}" if is_given else "Check the layers that compute it",
        )


@reference(Cast)
def cast(layer: Cast, inputs: Sequence[Array]) -> list[Array]:
    """The input's values in `to_type`."""
    return [convert(inputs[0], layer.to_type, saturate=layer.saturate, rounding=layer.e8m0_rounding)]


@reference(Quantize)
def quantize(layer: Quantize, inputs: Sequence[Array | None]) -> list[Array]:
    """`saturate(round(x / scale) + zero_point)`: a division in FP32, ties to even; NaN becomes the lowest integer."""
    x, scale, zero_point = [*inputs, None][:3]
    if x is None or scale is None:
        raise layer.problem("Data and scale must be connected", remedy="Connect inputs 0 and 1")
    wide = np.float64 if x.dtype == np.float64 else np.float32
    factor = spread(layer, scale.astype(wide), x.shape, layer.axis, layer.block_shape)
    codes = x.astype(wide) / factor
    if not layer.to_type.is_floating_point:
        codes = np.rint(codes)
    if zero_point is not None:
        offset = spread(layer, zero_point.astype(wide), x.shape, layer.axis, layer.block_shape)
        codes = np.where(offset == 0, codes, codes + offset)  # a sum with 0 would lose the sign of -0
    if layer.to_type.is_floating_point:
        return [convert(codes, layer.to_type, saturate=layer.saturate)]
    low, high = limits(layer.to_type)
    # fmax takes the number where the other operand is NaN.
    return [np.fmin(np.fmax(codes, wide(low)), wide(high)).astype(np.int32).astype(layer.to_type.numpy)]


@reference(Dequantize)
def dequantize(layer: Dequantize, inputs: Sequence[Array | None]) -> list[Array]:
    """`(x - zero_point) * scale`: the difference exactly, the product in FP32, rounded once to `to_type`."""
    x, scale, zero_point = [*inputs, None][:3]
    if x is None or scale is None:
        raise layer.problem("Data and scale must be connected", remedy="Connect inputs 0 and 1")
    wide = np.float64 if layer.to_type is DataType.DOUBLE else np.float32
    exact = np.int64 if DataType.from_numpy(x.dtype).is_integer else np.float32
    difference = x.astype(exact)
    if zero_point is not None:
        difference = difference - spread(layer, zero_point.astype(exact), x.shape, layer.axis, layer.block_shape)
    factor = spread(layer, scale.astype(wide), x.shape, layer.axis, layer.block_shape)
    return [convert(difference.astype(wide) * factor, layer.to_type)]


@reference(DynamicQuantize)
def dynamic_quantize(layer: DynamicQuantize, inputs: Sequence[Array | None]) -> list[Array]:
    """Data and scales, computed in FP32.

    The data is divided by the scale as it is stored, so that a dequantize layer with it comes close to the input. A
    block of zeros has a zero FP8 scale (the lowest E8M0 scale), and its data is zero.
    """
    x, outer = [*inputs, None][:2]
    if x is None:
        raise layer.problem("Input 0 is not connected", remedy="Connect input 0")
    wide = np.moveaxis(x.astype(np.float32), layer.axis, -1)
    blocks = wide.reshape(*wide.shape[:-1], -1, layer.block_size)
    global_scale = np.float32(1) if outer is None else outer.astype(np.float32).reshape(())
    largest = np.float32(limits(layer.to_type)[1])
    exact = np.abs(blocks).max(axis=-1) / (largest * global_scale)
    scales = convert(exact, layer.scale_type)
    divisor = scales.astype(np.float32)[..., None] * global_scale
    ratio = np.divide(blocks, divisor, out=np.zeros_like(blocks), where=divisor != 0)
    data = convert(ratio, layer.to_type).reshape(wide.shape)
    return [np.moveaxis(data, -1, layer.axis), np.moveaxis(scales, -1, layer.axis)]


@reference(QuantizedOperator)
def quantized_operator(layer: QuantizedOperator, inputs: Sequence[Array | None]) -> list[Array]:
    """What the method's definition says."""
    return layer.operator_method().evaluate(layer, inputs)
