"""Softmax over any one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import numpy as np

from dryfit.network.layers.normalization import Softmax
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.operands import bound_array, element_code, require_extents
from dryfit_cpu.steps import NativeStep, Work

_SOFTMAX = NativeFunction("softmax", "softmax")
_OTHER_AXES = 3


def softmax_work(function: NativeFunction, x: Array, y: Array, axis: int, threads: int, **fields: float) -> list[Work]:
    """Work of a native function that goes along one axis, for each index of three others.

    Args:
        function: what is called.
        x: input.
        y: output.
        axis: along which it goes.
        threads: how many will run it.
        fields: what else the function takes.
    """
    require_extents(y.shape, x.shape, "output of a softmax")
    x, y = (np.moveaxis(array, axis, -1) for array in (x, y))
    # More than three other axes: work for each index of those in front.
    front = x.shape[: max(0, x.ndim - 1 - _OTHER_AXES)] if x.size else (0,)
    return [_work(function, x[index], y[index], threads, fields) for index in np.ndindex(*front)]


def _work(function: NativeFunction, x: Array, y: Array, threads: int, fields: Mapping[str, float]) -> Work:
    x, y = (array[(None,) * (1 + _OTHER_AXES - array.ndim)] for array in (x, y))
    extents, strides, outputs = x.shape, x.strides, y.strides
    return function.work(
        min(chunks_for(x.size, threads), math.prod(extents[:3])),
        source=x.ctypes.data,
        source_stride0=strides[0],
        source_stride1=strides[1],
        source_stride2=strides[2],
        source_stride=x.itemsize if extents[3] == 1 else strides[3],
        output=y.ctypes.data,
        output_stride0=outputs[0],
        output_stride1=outputs[1],
        output_stride2=outputs[2],
        output_stride=y.itemsize if extents[3] == 1 else outputs[3],
        output_kind=element_code(y),
        extent0=extents[0],
        extent1=extents[1],
        extent2=extents[2],
        extent=extents[3],
        **fields,
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
    x, y = (bound_array(binding, cast("Tensor", tensor).name) for tensor in (layer.inputs[0], layer.outputs[0]))
    work = softmax_work(_SOFTMAX, x, y, layer.axis, binding.num_threads, kind=element_code(x))
    return NativeStep(binding.group.name, work, [binding])
