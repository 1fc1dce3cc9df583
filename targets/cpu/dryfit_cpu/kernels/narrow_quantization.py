"""Quantize and dequantize layers of INT4, FP8, FP4, and of INT8 in blocks, with scales of any floating-point type.

And dynamic quantization: each block by a scale of its own, found in the same pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Dequantize, DynamicQuantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.precision import limits
from dryfit.reference.quantization import spread
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, NARROW_CODES
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.kernels.copying import chunks_for, copy_work
from dryfit_cpu.kernels.operands import aligned_empty, aligned_in_order, bound_array, input_of, require_extents
from dryfit_cpu.kernels.quantization import quantized, scale_and_round
from dryfit_cpu.kernels.scale_geometry import ScaleGeometry, is_dense, memory_order, scale_blocks

_QUANTIZE = NativeFunction("quantization", "quantize_numbers")
_DEQUANTIZE = NativeFunction("quantization", "dequantize_numbers")

QUANTIZED = frozenset({DataType.INT8, DataType.INT4, DataType.FP8, DataType.FP4})
SCALES = FLOATS | {DataType.FP8, DataType.E8M0}
"""Types of quantized numbers, and of scales, that there are native functions for."""


def can_convert(layer: Quantize | Dequantize, specs: Specs) -> bool:
    """Whether a native function quantizes or dequantizes as this layer does."""
    if len(layer.inputs) != 2 or (isinstance(layer, Quantize) and not layer.saturate):
        return False
    x, scale = (specs[cast("Tensor", tensor).name] for tensor in layer.inputs)
    types = (x.dtype, layer.to_type) if isinstance(layer, Dequantize) else (layer.to_type, x.dtype)
    is_known = types[0] in QUANTIZED and types[1] in FLOATS and scale.dtype in SCALES
    return is_known and scale_blocks(layer, specs) is not None


def conversion_work(
    layer: Quantize | Dequantize, x: Array, scale: Array, output: Array, threads: int
) -> tuple[list[Work], list[Array]]:
    """Work that quantizes or dequantizes, and the arrays that have to be kept for it.

    The layer is one that `can_convert`. The output is of its output type, or FP32, of any strides.
    """
    require_extents(output.shape, x.shape, "output of a quantization")
    if not x.size:
        return [], []
    before, after = list[Work](), list[Work]()
    order = memory_order(output)
    source, target = x, output
    if not is_dense(output, order):
        order = list(range(x.ndim))
        target = aligned_empty(output.shape, output.dtype)
        after = _copying(target, output, threads)
    if not is_dense(x, order):
        source = aligned_in_order(x, order)
        before = _copying(x, source, threads)
    scales = scale if scale.ndim < max(x.ndim, 2) else np.transpose(scale, order)
    if not scales.flags.c_contiguous:
        # Its own memory is written in each run where it is not constant.
        ordered = aligned_empty(scales.shape, scales.dtype)
        before += _copying(scales, ordered, threads)
        scales = ordered
    shape = tuple(x.shape[axis] for axis in order)
    blocks = layer.block_shape or _even_blocks(x, scale)
    blocks = tuple(blocks[axis] for axis in order) if blocks else ()
    axis = order.index(layer.axis) if scales.ndim == 1 and scales.size > 1 and x.ndim > 1 else -1
    geometry = ScaleGeometry.of(shape, scales, axis, blocks)
    require_extents((scales.size,), (geometry.scales,), "scales of a quantization")
    function = _QUANTIZE if isinstance(layer, Quantize) else _DEQUANTIZE
    work = function.work(
        chunks_for(x.size, threads),
        source=source.ctypes.data,
        source_kind=_code(x),
        scales=geometry.scales_at(scales, _code(scales)),
        output=target.ctypes.data,
        output_kind=_code(output),
        count=geometry.count,
        outer=geometry.outer,
        rows=geometry.rows,
        inner=geometry.inner,
    )
    return [*before, work, *after], [source, scales, target]


def _even_blocks(x: Array, scale: Array) -> tuple[int, ...]:
    """Blocks that divide the data evenly; () where a scale has another rank."""
    if scale.ndim != x.ndim or scale.size == 1:
        return ()
    return tuple(extent // count for extent, count in zip(x.shape, scale.shape, strict=True))


def _code(array: Array) -> int:
    return NARROW_CODES[DataType.from_numpy(array.dtype)]


def _copying(source: Array, destination: Array, threads: int) -> list[Work]:
    """Work that copies; elements of one byte as they are."""
    if source.itemsize == 1:
        source, destination = source.view(np.int8), destination.view(np.int8)
    return copy_work(source, destination, threads)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """A layer that stands alone, and that the kernel for INT8 leaves."""
    layer = group.main
    if not isinstance(layer, (Quantize, Dequantize)) or len(group.layers) > 1:
        return False
    types = {specs[tensor.name].dtype for tensor in (*group.inputs, *group.outputs)}
    is_plain = types <= scale_and_round.data_types and scale_and_round.accepts(group, specs)
    return not is_plain and can_convert(layer, specs)


@kernel(
    "cpu.narrow_quantization",
    kinds=["quantize", "dequantize"],
    data_types=QUANTIZED | SCALES,
    accepts=_accepts,
    layout=HostLayout.ANY,
)
def convert_numbers(binding: Binding) -> NativeStep | Callable[[], None]:
    """A step that divides by scales and rounds, or multiplies by them.

    Ties go to the even number; where the device rounds INT8 otherwise, numpy does it.
    """
    layer = cast("Quantize | Dequantize", binding.group.main)
    x, scale = (bound_array(binding, cast("Tensor", tensor).name) for tensor in layer.inputs)
    output = bound_array(binding, layer.outputs[0].name)
    if output.dtype == np.int8 and binding.rounding is not RoundingMode.HALF_TO_EVEN:

        def round_otherwise() -> None:
            factor = spread(layer, scale.astype(np.float32), x.shape, layer.axis, layer.block_shape)
            np.copyto(output, quantized(x, factor, binding.rounding))

        return round_otherwise
    work, keeps = conversion_work(layer, x, scale, output, binding.num_threads)
    return NativeStep(binding.group.name, work, [binding, keeps])


_QUANTIZE_BLOCKS = NativeFunction("quantization", "quantize_blocks")


def _accepts_dynamic(group: LayerGroup, specs: Specs) -> bool:
    """A scale of scales that is known when the kernel is bound, or none."""
    layer = group.main
    if not isinstance(layer, DynamicQuantize) or len(group.layers) > 1:
        return False
    outer = layer.inputs[1] if len(layer.inputs) > 1 else None
    return outer is None or specs[outer.name].value is not None


@kernel(
    "cpu.dynamic_quantization",
    kinds="dynamic_quantize",
    data_types=FLOATS | {DataType.FP8, DataType.FP4, DataType.E8M0},
    accepts=_accepts_dynamic,
    layout=HostLayout.LINEAR,
)
def quantize_dynamically(binding: Binding) -> NativeStep:
    """A step that finds the scales and divides by them."""
    layer, threads = cast("DynamicQuantize", binding.group.main), binding.num_threads
    x = bound_array(binding, input_of(binding.group).name)
    given = [bound_array(binding, tensor.name) for tensor in layer.outputs]
    before, after = list[Work](), list[Work]()
    source = x
    if not x.flags.c_contiguous:
        source = aligned_empty(x.shape, x.dtype)
        before = copy_work(x, source, threads)
    made: list[Array] = []
    for output in given:
        made.append(output if output.flags.c_contiguous else aligned_empty(output.shape, output.dtype))
        if made[-1] is not output:
            after += copy_work(made[-1].view(np.int8), output.view(np.int8), threads)
    data, scales = made
    blocks = [extent // layer.block_size if axis == layer.axis else extent for axis, extent in enumerate(x.shape)]
    require_extents(data.shape, x.shape, "output of a quantization")
    require_extents(scales.shape, blocks, "scales of a quantization")
    outer = layer.inputs[1] if len(layer.inputs) > 1 else None
    global_scale = 1.0 if outer is None else float(bound_array(binding, outer.name).astype(np.float32).reshape(()))
    main = _QUANTIZE_BLOCKS.work(
        chunks_for(x.size, threads),
        source=source.ctypes.data,
        source_kind=_code(source),
        scales=scales.ctypes.data,
        scale_kind=_code(scales),
        output=data.ctypes.data,
        output_kind=_code(data),
        outer=math.prod(x.shape[: layer.axis]) * (x.shape[layer.axis] // layer.block_size),
        block=layer.block_size,
        inner=math.prod(x.shape[layer.axis + 1 :]),
        largest=limits(layer.to_type)[1],
        global_scale=global_scale,
    )
    return NativeStep(binding.group.name, [*before, main, *after], [binding, source, made])
