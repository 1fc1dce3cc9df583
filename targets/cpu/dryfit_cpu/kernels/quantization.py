"""Quantize and dequantize layers that stand alone: a division, or a product, and one rounding."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.quantization.rounding import Rounding, RoundingMode, round_values
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, is_activation, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import Function
from dryfit_cpu.kernels.copying import chunks_for, joined_axes, pointwise_work
from dryfit_cpu.kernels.operands import ImageOperand, aligned_empty, bound_array, require_extents

_QUANTIZE = NativeFunction("quantization", "quantize")
_QUANTIZE_PLANES = NativeFunction("quantization", "quantize_planes")

_SMALLEST, _LARGEST = 1e-25, 1e25
"""Scales between these divide without underflow or overflow on the way."""


def _is_picture(x: Array, output: Array) -> bool:
    """Whether three FP32 planes become INT8 pixels whose channels lie together."""
    if x.ndim != 4 or x.shape[1] != 3 or x.dtype != np.float32 or output.dtype != np.int8:
        return False
    is_planar = x.strides[3] == x.itemsize and x.shape[3] >= current_tier().lanes
    return is_planar and output.strides[1] == 1 and output.strides[3] == 3


def _picture_work(x: Array, scale: float, zero_point: float, output: Array, threads: int) -> Work:
    return _QUANTIZE_PLANES.work(
        chunks_for(x.size, threads),
        source=ImageOperand.of(x).image,
        output=ImageOperand.of(output).image,
        scale=scale,
        zero_point=zero_point,
    )


def quantized(x: Array, scale: Array, rounding: Rounding, zero_point: int | Array = 0) -> Array:
    """`saturate(round(x / scale) + zero_point)` as INT8, in numpy; NaN becomes the lowest."""
    with np.errstate(all="ignore"):
        whole = round_values(x.astype(np.float32) / scale, rounding) + np.asarray(zero_point, np.float32)
    # fmax takes the number where the other operand is NaN.
    limited: Array = np.fmin(np.fmax(whole, np.float32(-128)), np.float32(127))
    return limited.astype(np.int8)


def _quantize(x: Array, scale: Array, zero_point: Array, output: Array, rounding: Rounding) -> None:
    """Quantize by numpy, as devices do that round otherwise: it is the rare case."""
    output[...] = quantized(x, scale, rounding, zero_point)


def _is_run(x: Array, output: Array) -> bool:
    """Whether FP32 values that lie together become INT8 values that lie together, in the same order."""
    if x.dtype != np.float32 or output.dtype != np.int8 or not x.size:
        return False
    axes = joined_axes([output, x])
    return len(axes) == 1 and axes[0][1] == [1, 4]


def _run_work(x: Array, scale: np.float32, zero_point: float, output: Array, threads: int) -> Work:
    with np.errstate(all="ignore"):
        reciprocal = np.float32(1) / np.float32(scale)
    return _QUANTIZE.work(
        chunks_for(x.size, threads),
        source=x.ctypes.data,
        output=output.ctypes.data,
        count=x.size,
        scale=float(scale),
        reciprocal=float(reciprocal),
        zero_point=zero_point,
        is_ordinary=int(_SMALLEST < scale < _LARGEST),
    )


def _along_axis(scale: Array, rank: int, axis: int) -> Array:
    """Scales or zero points in a shape that broadcasts to the data's."""
    shape = [1] * rank
    if scale.size > 1:
        shape[axis] = scale.size
    return np.ascontiguousarray(scale).reshape(shape)  # `ascontiguousarray` gives no scalars


def _zero_point(layer: Quantize | Dequantize) -> Array | None:
    """The zero points as FP32, 0 where there are none; None where they are not known before the run."""
    tensor = layer.get_input(2)
    if tensor is None:
        return np.zeros((), np.float32)
    return None if tensor.spec.value is None else tensor.spec.value.astype(np.float32)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """INT8 with one scale, or one for each index of an axis, and as many known zero points."""
    layer = group.main
    if not isinstance(layer, (Quantize, Dequantize)) or len(group.layers) > 1 or _zero_point(layer) is None:
        return False
    x, scale, *zero_point, y = (specs[cast("Tensor", tensor).name] for tensor in (*layer.inputs, *layer.outputs))
    return (
        {x.dtype, y.dtype, *(one.dtype for one in zero_point)} <= {DataType.FLOAT, DataType.HALF, DataType.INT8}
        and scale.dtype is DataType.FLOAT
        and (scale.shape in ((), (1,)) or (scale.rank == 1 and x.rank > 0 and not layer.block_shape))
    )


@kernel(
    "cpu.quantization",
    kinds=["quantize", "dequantize"],
    data_types=[DataType.FLOAT, DataType.HALF, DataType.INT8],
    accepts=_accepts,
    layout=HostLayout.ANY,
)
def scale_and_round(binding: Binding) -> NativeStep | Callable[[], None]:
    """A step that divides by the scale and rounds to INT8, or multiplies INT8 by it, with zero points or without."""
    layer = cast("Quantize | Dequantize", binding.group.main)
    x, scale = (bound_array(binding, cast("Tensor", tensor).name) for tensor in layer.inputs[:2])
    zero_point = cast("Array", _zero_point(layer))
    output = bound_array(binding, layer.outputs[0].name)
    require_extents(output.shape, x.shape, "output of a quantization")
    scales, zeros = (_along_axis(one, x.ndim, layer.axis) for one in (scale, zero_point))
    if isinstance(layer, Quantize) and binding.rounding is not RoundingMode.HALF_TO_EVEN:
        return functools.partial(_quantize, x, scales, zeros, output, binding.rounding)
    # The native functions for runs take the number itself, which only a constant scale has by now.
    is_one = scale.size == 1 and not is_activation(cast("Tensor", layer.inputs[1]), binding.specs)
    if isinstance(layer, Quantize) and is_one and _is_picture(x, output):
        work = [_picture_work(x, scale.item(), zero_point.item(), output, binding.num_threads)]
        return NativeStep(binding.group.name, work, [binding])
    if isinstance(layer, Quantize) and is_one and _is_run(x, output):
        work = [_run_work(x, np.float32(scale.item()), zero_point.item(), output, binding.num_threads)]
        return NativeStep(binding.group.name, work, [binding])
    work, keeps = _pointwise(layer, x, scales, zeros, output, binding.num_threads)
    return NativeStep(binding.group.name, work, [binding, keeps])


def _pointwise(
    layer: Quantize | Dequantize, x: Array, scales: Array, zeros: Array, output: Array, threads: int
) -> tuple[list[Work], list[Array]]:
    """Work for any strides and any number of scales, and what has to be kept for it."""
    operation = codes.DIV if isinstance(layer, Quantize) else codes.PROD
    if not zeros.any():
        return pointwise_work(operation, [x, scales], output, threads), [x, scales]
    if isinstance(layer, Dequantize):
        # A difference of two bytes is exact in every type of the output.
        distances = pointwise_work(codes.SUB, [x, zeros], output, threads)
        return [*distances, *pointwise_work(codes.PROD, [output, scales], output, threads)], [x, scales, zeros]
    whole = aligned_empty(x.shape, np.float32)
    rounded = pointwise_work(codes.DIV, [x, scales], whole, threads, Function(codes.ROUND, 0.0, 0.0))
    return [*rounded, *pointwise_work(codes.SUM, [whole, zeros], output, threads)], [x, scales, zeros, whole]
