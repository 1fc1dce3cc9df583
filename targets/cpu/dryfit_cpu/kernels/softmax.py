"""Softmax over any one axis."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.layers.softmax import Softmax
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.operands import bound_array, element_code
from dryfit_cpu.steps import NativeStep, Work

_SOFTMAX = NativeFunction("softmax", "softmax")
_OTHER_AXES = 3


def _four_axes(array: Array) -> Array:
    return array[(None,) * (1 + _OTHER_AXES - array.ndim)]


def _work(x: Array, y: Array, threads: int) -> Work:
    extents, strides, outputs = x.shape, x.strides, y.strides
    axis = x.itemsize if extents[3] == 1 else strides[3]
    output_axis = y.itemsize if extents[3] == 1 else outputs[3]
    return _SOFTMAX.work(
        min(chunks_for(x.size, threads), math.prod(extents[:3])),
        source=x.ctypes.data,
        source_stride0=strides[0],
        source_stride1=strides[1],
        source_stride2=strides[2],
        source_stride=axis,
        kind=element_code(x),
        output=y.ctypes.data,
        output_stride0=outputs[0],
        output_stride1=outputs[1],
        output_stride2=outputs[2],
        output_stride=output_axis,
        output_kind=element_code(y),
        extent0=extents[0],
        extent1=extents[1],
        extent2=extents[2],
        extent=extents[3],
    )


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    del specs
    return isinstance(group.main, Softmax) and len(group.layers) == 1


@kernel(
    "cpu.softmax",
    kinds="softmax",
    data_types=FLOATS,
    accepts=_accepts,
)
def take_softmax(binding: Binding) -> NativeStep:
    """A step that takes the axis last and the others as three."""
    layer = cast("Softmax", binding.group.main)
    x, y = (
        np.moveaxis(bound_array(binding, tensor.name), layer.axis, -1)
        for tensor in (cast("Tensor", layer.inputs[0]), layer.outputs[0])
    )
    # More than three other axes: work for each index of those in front.
    front = x.shape[: max(0, x.ndim - 1 - _OTHER_AXES)] if x.size else (0,)
    work = [_work(_four_axes(x[index]), _four_axes(y[index]), binding.num_threads) for index in np.ndindex(*front)]
    return NativeStep(binding.group.name, work, [binding])
