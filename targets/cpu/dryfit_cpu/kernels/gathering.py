"""Gather with indices that are known only when the network runs: rows of an embedding, the last token of each sequence.

Slices of one axis, or sub-tensors by vectors of indices. An index that is outside is found by the native code, which
must not read there; the step's check then raises what the reference raises.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.indexing import Gather, GatherMode
from dryfit.network.tensor import Shape, Tensor
from dryfit.reference.indexing import from_start
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, WORD_INT32, WORD_INT64
from dryfit_cpu.compiler.native import NativeFunction, NativeStep
from dryfit_cpu.kernels.copying import bit_copy_work, chunks_for
from dryfit_cpu.kernels.operands import aligned_empty, bound_array, require_extents

_GATHER = NativeFunction("lookup", "gather")
_INDEX_KINDS = {np.dtype(np.int32): WORD_INT32, np.dtype(np.int64): WORD_INT64}
_TYPES = FLOATS | {DataType.INT8, DataType.UINT8, DataType.INT32, DataType.INT64, DataType.BOOL}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if len(group.layers) > 1 or not isinstance(layer, Gather) or layer.num_elementwise_dims:
        return False
    data, indices = (specs[cast("Tensor", tensor).name] for tensor in layer.inputs)
    is_served = layer.mode is not GatherMode.ELEMENT and indices.dtype.numpy in _INDEX_KINDS
    return is_served and 0 not in (*data.shape, *indices.shape)


def _seen(group: LayerGroup, specs: Specs, data: Array) -> Array | None:
    """What one known index gives, where that lies together: such as one of queries, keys and values."""
    layer = cast("Gather", group.main)
    indices = specs[cast("Tensor", layer.inputs[1]).name].value
    if indices is None or indices.size != 1 or layer.mode is not GatherMode.DEFAULT:
        return None
    index, extent = int(indices.reshape(-1)[0]), data.shape[layer.axis]
    if not -extent <= index < extent:
        return None
    part = data[(slice(None),) * layer.axis + (slice(index % extent, index % extent + 1),)]
    return part.reshape(specs[layer.outputs[0].name].shape) if part.flags.c_contiguous else None


@kernel(
    "cpu.gathering",
    kinds="gather",
    data_types=_TYPES,
    accepts=_accepts,
    view=_seen,
    layout=HostLayout.LINEAR,
    priority=-10,
)
def gather_rows(binding: Binding) -> NativeStep:
    """A step that copies what the indices say, and checks these; none where the output is there."""
    layer, threads = cast("Gather", binding.group.main), binding.num_threads
    data, indices = (bound_array(binding, cast("Tensor", tensor).name) for tensor in layer.inputs)
    output = bound_array(binding, layer.outputs[0].name)
    if np.may_share_memory(data, output):
        return NativeStep(binding.group.name, [], [binding])
    work, after = [], []
    source, places, target = (
        array if array.flags.c_contiguous else aligned_empty(array.shape, array.dtype)
        for array in (data, indices, output)
    )
    for given, ordered in ((data, source), (indices, places)):
        work += bit_copy_work(given, ordered, threads) if ordered is not given else []
    after = bit_copy_work(target, output, threads) if target is not output else []
    first, width, vectors = _gathered_axes(layer, places.shape)
    outer = math.prod(source.shape[:first])
    size = math.prod(source.shape[first + width :]) * source.itemsize
    require_extents((outer * vectors * size,), (target.nbytes,), "bytes that are gathered")
    axes = np.array([(source.shape[axis], source.strides[axis]) for axis in range(first, first + width)], np.int64)
    fault = np.zeros(2, np.int64)
    gather = _GATHER.work(
        chunks_for(target.size, threads),
        source=source.ctypes.data,
        outer=outer,
        outer_bytes=source.nbytes // outer,
        indices=places.ctypes.data,
        index_kind=_INDEX_KINDS[places.dtype],
        width=width,
        vectors=vectors,
        axes=axes.ctypes.data,
        output=target.ctypes.data,
        size=size,
        fault=fault.ctypes.data,
    )

    def check() -> None:
        if fault[0]:
            fault[0] = 0
            given = places.reshape(vectors, width)
            for number, extent in enumerate(source.shape[first : first + width]):
                from_start(layer, given[:, number], extent)

    keeps = [binding, source, places, target, axes, fault]
    return NativeStep(binding.group.name, [*work, gather, *after], keeps, check)


def _gathered_axes(layer: Gather, indices: Shape) -> tuple[int, int, int]:
    """The first axis of the data that indices are of, how many such axes there are, and vectors of indices."""
    if layer.mode is GatherMode.DEFAULT:
        return layer.axis, 1, math.prod(indices)
    return 0, indices[-1], math.prod(indices[:-1])
