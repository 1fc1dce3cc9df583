"""Softmax over any one axis; of quantized values by integers from a table of 256, with exact sums.

    e[d] = round(2**30 * exp(-scale * d))            d = 0 ... 255, in FP64, to nearest even: INT64
    sum = exact sum of e[largest - q] along the axis
    x = FP32(e[largest - q]) / FP32(sum) * FP32(1 / output scale)
    the result is round(limit(x)) + zero_point

Every step after the sum is one FP32 operation of IEEE 754, rounded to nearest even. So results do not depend on the
order of the axis, nor on the machine. Beside the softmax of real numbers, sums of up to 2**20 values are right to a
thousandth of the largest result.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Softmax
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.descriptors import Elements, Extents
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.integer_stages import Quantized, StageGrid
from dryfit_cpu.kernels.operands import bound_array, element_code, require_extents
from dryfit_cpu.kernels.requantization import bound_requantization, scaled_source, scaling_kernel

_SOFTMAX = NativeFunction("reduction", "softmax")
_OTHER_AXES = 3


def softmax_work(function: NativeFunction, x: Array, y: Array, axis: int, threads: int, **arguments: Any) -> list[Work]:
    """Work of a native function that goes along one axis, for each index of three others."""
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


def _accepts(group: LayerGroup, _specs: Specs) -> bool:
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


_INTEGER_SOFTMAX = NativeFunction("reduction", "softmax_of_codes")
# 30 bits: 2**33 of them can be summed in 64 bits without overflow.
_ONE = 2.0**30
"""What 1 is as an integer."""


def exponentials(scale: float) -> Array:
    """INT64 `[256]`: the exponentials of values in units of a scale below 0."""
    return np.rint(_ONE * np.exp(-scale * np.arange(256, dtype=np.float64))).astype(np.int64)


def _accepts_integers(group: LayerGroup, _specs: Specs) -> bool:
    return isinstance(group.main, Softmax) and scaled_source(group) is not None


def _pack(group: LayerGroup) -> dict[str, Array]:
    source = cast("Quantized", scaled_source(group))
    return {"exponentials": exponentials(source.scale)}


@scaling_kernel("cpu.integer_softmax", kinds="softmax", accepts=_accepts_integers, pack=_pack)
def normalize_integers(binding: Binding) -> NativeStep:
    """A step that goes along the axis for each index of the others."""
    group, steps = binding.group, bound_requantization(binding)
    source = cast("Quantized", scaled_source(group))
    values, output = (bound_array(binding, tensor.name) for tensor in (source.tensor, group.outputs[0]))
    table = binding.weight("exponentials", (256,), DataType.INT64)
    work = softmax_work(
        _INTEGER_SOFTMAX,
        values,
        output,
        cast("Softmax", group.main).axis,
        binding.num_threads,
        exponentials=table.ctypes.data,
        # The table has the scale of what is read: quotients of its sums are numbers of scale 1.
        steps=steps.sampled(StageGrid(1.0)),
    )
    return NativeStep(group.name, work, [binding, table])
