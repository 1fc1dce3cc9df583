"""Dynamic quantization: each block by a scale of its own, found in the same pass."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import DynamicQuantize
from dryfit.network.tensor import Tensor
from dryfit.reference.precision import limits
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, NARROW_CODES
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels.copying import chunks_for, copy_work
from dryfit_cpu.kernels.operands import aligned_empty, bound_array, require_extents
from dryfit_cpu.steps import NativeStep, Work

_QUANTIZE_BLOCKS = NativeFunction("narrow_quantization", "quantize_blocks")


def _accepts(group: LayerGroup, specs: Specs) -> bool:
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
    accepts=_accepts,
    layout=HostLayout.LINEAR,
)
def quantize_dynamically(binding: Binding) -> NativeStep:
    """A step that finds the scales and divides by them."""
    layer, threads = cast("DynamicQuantize", binding.group.main), binding.num_threads
    x = bound_array(binding, cast("Tensor", layer.inputs[0]).name)
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


def _code(array: Array) -> int:
    return NARROW_CODES[DataType.from_numpy(array.dtype)]
