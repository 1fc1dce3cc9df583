"""Reductions over any axes. Those over images that `cpu.global_pooling` takes are its own: it goes before."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import Table
from dryfit_cpu.kernels.axes import ReducedAxes
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.functions import can_end_with, final_function, has_known_end
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.steps import NativeStep

_REDUCE = NativeFunction("reduction", "reduce")
_OPERATIONS = {
    ReduceOperation.SUM: codes.SUM,
    ReduceOperation.AVG: codes.SUM,
    ReduceOperation.PROD: codes.PROD,
    ReduceOperation.MAX: codes.MAX,
    ReduceOperation.MIN: codes.MIN,
}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    del specs
    return isinstance(group.main, Reduce) and has_known_end(group)


@kernel("cpu.reduction", kinds="reduce", data_types=codes.FLOATS, accepts=_accepts, fuses=can_end_with, priority=-10)
def reduce_axes(binding: Binding) -> NativeStep:
    """A step that reduces, and applies what function follows."""
    layer = cast("Reduce", binding.group.main)
    x = bound_array(binding, cast("Tensor", layer.inputs[0]).name)
    y = bound_array(binding, binding.group.outputs[0].name)
    reduced = axes_in(layer.axes)
    kept = y if layer.keep_dims else np.expand_dims(y, reduced)
    walk = ReducedAxes.of([x, np.broadcast_to(kept, x.shape)], reduced)
    counted = math.prod(x.shape[axis] for axis in reduced)
    chunks = min(chunks_for(x.size, binding.num_threads), walk.most_chunks)
    work = []
    for base in walk.bases:
        source, output = walk.elements(base)
        work.append(
            _REDUCE.work(
                chunks,
                operation=_OPERATIONS[layer.op],
                source=source,
                output=output,
                extents=walk.extents,
                places=Table(walk.places.ctypes.data, len(walk.places)),
                place_words=walk.places.shape[1],
                is_across=int(walk.is_across),
                divisor=counted if layer.op is ReduceOperation.AVG else 1.0,
                function=final_function(binding.group),
            )
        )
    return NativeStep(binding.group.name, work, [binding, walk])
