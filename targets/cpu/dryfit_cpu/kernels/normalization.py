"""Normalization over any axes: layer, instance and group normalization."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Normalization
from dryfit.network.layers.shape_inference import axes_in
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import Table
from dryfit_cpu.kernels.axes import ReducedAxes
from dryfit_cpu.kernels.copying import chunks_for, copy_work
from dryfit_cpu.kernels.functions import can_end_with, final_function, has_known_end
from dryfit_cpu.kernels.operands import aligned_empty, bound_array
from dryfit_cpu.steps import NativeStep, Work

_NORMALIZE = NativeFunction("normalization", "normalize")


def _grouped(array: Array, groups: int, channels: int) -> Array:
    """`[N, C, ...]` as `[N, groups, C / groups, ...]`; C may be 1 or one a group."""
    if array.shape[1] == channels:
        return array.reshape(array.shape[0], groups, channels // groups, *array.shape[2:])
    return array[:, :, None]


def _factor(binding: Binding, layer: Normalization, index: int, neutral: float) -> tuple[Array, list[Work]]:
    """Scale or bias as FP32, and the work that widens it."""
    tensor = layer.inputs[index] if index < len(layer.inputs) else None
    if tensor is None:
        rank = len(binding.specs[layer.outputs[0].name].shape)
        return np.full((1,) * rank, neutral, np.float32), []
    given = bound_array(binding, tensor.name)
    if given.dtype == np.float32:
        return given, []
    wide = aligned_empty(given.shape, np.float32)
    return wide, copy_work(given, wide, binding.num_threads)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    tensors = [tensor for tensor in layer.inputs if tensor is not None]
    return (
        isinstance(layer, Normalization)
        and layer.compute_precision is DataType.FLOAT
        and all(specs[tensor.name].dtype in codes.FLOATS for tensor in tensors)
        and has_known_end(group)
    )


@kernel("cpu.normalization", kinds="normalization", data_types=codes.FLOATS, accepts=_accepts, fuses=can_end_with)
def normalize(binding: Binding) -> NativeStep:
    """A step that normalizes, and applies what function follows."""
    layer, threads = cast("Normalization", binding.group.main), binding.num_threads
    x = bound_array(binding, layer.inputs[0].name)  # type: ignore[union-attr]
    y = bound_array(binding, binding.group.outputs[0].name)
    (scale, work), (bias, widening) = (
        _factor(binding, layer, index, neutral) for index, neutral in ((1, 1.0), (2, 0.0))
    )
    arrays, reduced = [x, y, scale, bias], axes_in(layer.axes)
    if layer.num_groups > 1:
        arrays = [_grouped(array, layer.num_groups, x.shape[1]) for array in arrays]
        reduced = (2, *(axis + 1 for axis in reduced))
    walk = ReducedAxes.of([np.broadcast_to(array, arrays[0].shape) for array in arrays], reduced)
    chunks = min(chunks_for(x.size, threads), walk.most_chunks)
    work = [*work, *widening]
    work += [
        _NORMALIZE.work(
            chunks,
            **dict(zip(("source", "output", "scale", "bias"), walk.elements(base), strict=True)),
            extents=walk.extents,
            places=Table(walk.places.ctypes.data, len(walk.places)),
            is_across=int(walk.is_across),
            epsilon=layer.epsilon,
            function=final_function(binding.group),
        )
        for base in walk.bases
    ]
    return NativeStep(binding.group.name, work, [binding, walk, scale, bias])
