"""Softmax over any one axis."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from dryfit.network.layers.normalization import Softmax
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import Elements, Extents
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.operands import bound_array, element_code, require_extents
from dryfit_cpu.steps import NativeStep, Work

_SOFTMAX = NativeFunction("softmax", "softmax")
_OTHER_AXES = 3


def softmax_work(function: NativeFunction, x: Array, y: Array, axis: int, threads: int, **arguments: Any) -> list[Work]:
    """Work of a native function that goes along one axis, for each index of three others.

    Args:
        function: what is called.
        x: input.
        y: output.
        axis: along which it goes.
        threads: how many will run it.
        arguments: what else the function takes.
    """
    require_extents(y.shape, x.shape, "output of a softmax")
    x, y = (np.moveaxis(array, axis, -1) for array in (x, y))
    # More than three other axes: work for each index of those in front.
    front = x.shape[: max(0, x.ndim - 1 - _OTHER_AXES)] if x.size else (0,)
    work = []
    for index in np.ndindex(*front):
        source, output = (array[index][(None,) * (1 + _OTHER_AXES - array[index].ndim)] for array in (x, y))
        chunks = min(chunks_for(source.size, threads), math.prod(source.shape[:3]))
        extents = Extents(*source.shape)
        work.append(
            function.work(chunks, source=_elements(source), output=_elements(output), extents=extents, **arguments)
        )
    return work


def _elements(array: Array) -> Elements:
    """An array of four axes; along one of extent 1 it is made to look dense."""
    stride0, stride1, stride2, last = array.strides
    last = array.itemsize if array.shape[3] == 1 else last
    return Elements(array.ctypes.data, element_code(array), stride0, stride1, stride2, last)


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
    work = softmax_work(_SOFTMAX, x, y, layer.axis, binding.num_threads)
    return NativeStep(binding.group.name, work, [binding])
