"""Layers of whole numbers: sums, comparisons and casts of ids, masks and positions; and their sums along axes.

Bit for bit what the references give: INT32 and INT64 wrap around.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction, NativeStep
from dryfit_cpu.descriptors import Elements, WordTable
from dryfit_cpu.kernels.copying import chunks_for, placed_arguments
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.kernels.reduction import ReducedAxes

_COMPUTE = NativeFunction("whole_numbers", "compute")
_ACCUMULATE = NativeFunction("whole_numbers", "accumulate")

_WHOLE = frozenset({DataType.INT32, DataType.INT64})
_KINDS = {
    DataType.BOOL: codes.WORD_BYTES,
    DataType.INT32: codes.WORD_INT32,
    DataType.INT64: codes.WORD_INT64,
    DataType.FLOAT: codes.WORD_FP32,
}
_OPERATIONS = {
    ElementWiseOperation.SUM: codes.SUM,
    ElementWiseOperation.SUB: codes.SUB,
    ElementWiseOperation.PROD: codes.PROD,
    ElementWiseOperation.MAX: codes.MAX,
    ElementWiseOperation.MIN: codes.MIN,
    ElementWiseOperation.EQUAL: codes.EQUAL,
    ElementWiseOperation.GREATER: codes.GREATER,
    ElementWiseOperation.LESS: codes.LESS,
    ElementWiseOperation.GREATER_EQUAL: codes.GREATER_EQUAL,
    ElementWiseOperation.LESS_EQUAL: codes.LESS_EQUAL,
}
_REDUCTIONS = {
    ReduceOperation.SUM: codes.SUM,
    ReduceOperation.PROD: codes.PROD,
    ReduceOperation.MAX: codes.MAX,
    ReduceOperation.MIN: codes.MIN,
}


def _kind(array: Array) -> int:
    return _KINDS[DataType.from_numpy(array.dtype)]


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    tensors = [cast("Tensor", tensor) for tensor in (*layer.inputs, *layer.outputs)]
    types = [specs[tensor.name].dtype for tensor in tensors]
    if len(group.layers) > 1 or any(dtype not in _KINDS for dtype in types):
        return False
    if isinstance(layer, Cast):
        # Casts of real numbers to BOOL ask whether they are zero, not their whole parts.
        return types[0] is not types[1] and bool(_WHOLE & set(types))
    return isinstance(layer, Elementwise) and layer.op in _OPERATIONS and {types[0], types[1]} <= _WHOLE


@kernel("cpu.whole_numbers", kinds=("elementwise", "cast"), data_types=frozenset(_KINDS), accepts=_accepts)
def compute_whole_numbers(binding: Binding) -> NativeStep:
    """A step that computes element by element, in 64 bits."""
    layer = binding.group.main
    output = bound_array(binding, layer.outputs[0].name)
    operands = [
        np.broadcast_to(bound_array(binding, cast("Tensor", tensor).name), output.shape) for tensor in layer.inputs
    ]
    arrays = {"output": output, "a": operands[0], "b": operands[-1]}
    operation = _OPERATIONS[layer.op] if isinstance(layer, Elementwise) else codes.FIRST
    work = []
    for chunks, arguments in placed_arguments(arrays, binding.num_threads, has_kinds=False):
        for name, array in arrays.items():
            arguments[name] = cast("Elements", arguments[name])._replace(kind=_kind(array))
        work.append(_COMPUTE.work(chunks, operation=operation, is_truth=output.dtype == np.bool_, **arguments))
    return NativeStep(binding.group.name, work, [binding, arrays])


def _sums_up(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    dtype = specs[cast("Tensor", layer.inputs[0]).name].dtype
    is_served = isinstance(layer, Reduce) and layer.op in _REDUCTIONS and dtype in _WHOLE
    return is_served and len(group.layers) == 1 and 0 not in specs[cast("Tensor", layer.inputs[0]).name].shape


@kernel("cpu.whole_number_reduction", kinds="reduce", data_types=_WHOLE, accepts=_sums_up)
def reduce_whole_numbers(binding: Binding) -> NativeStep:
    """A step that reduces, in 64 bits."""
    layer = cast("Reduce", binding.group.main)
    x = bound_array(binding, cast("Tensor", layer.inputs[0]).name)
    y = bound_array(binding, layer.outputs[0].name)
    reduced = axes_in(layer.axes)
    kept = y if layer.keep_dims else np.expand_dims(y, reduced)
    walk = ReducedAxes.of([x, np.broadcast_to(kept, x.shape)], reduced, has_kinds=False)
    chunks = min(chunks_for(x.size, binding.num_threads), walk.most_chunks)
    work = []
    for base in walk.bases:
        source, output = (elements._replace(kind=_kind(x)) for elements in walk.elements(base))
        places = WordTable(walk.places.ctypes.data, len(walk.places))
        work.append(
            _ACCUMULATE.work(
                chunks,
                operation=_REDUCTIONS[layer.op],
                source=source,
                output=output,
                extents=walk.extents,
                places=places,
                place_words=walk.places.shape[1],
            )
        )
    return NativeStep(binding.group.name, work, [binding, walk])
