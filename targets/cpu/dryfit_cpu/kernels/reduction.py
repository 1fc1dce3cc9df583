"""Reductions over any axes. Those over images that `cpu.global_pooling` takes are its own: it goes before.

Layer, instance and group normalization walk the same axes: some are kept, the others are runs of memory.

Local response normalization goes across channels: the squares with zeros around them, then their sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Lrn, Normalization
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.network.tensor import Shape
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS, PROD
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import Elements, Extents, WordTable
from dryfit_cpu.kernels.copying import chunks_for, copy_work, joined_axes, pointwise_work
from dryfit_cpu.kernels.epilogues import can_end_with, final_function, has_known_end
from dryfit_cpu.kernels.operands import (
    ImageOperand,
    Workspace,
    aligned_empty,
    bound_array,
    element_code,
    fp32_bytes,
    input_of,
    require_extents,
)

_KEPT_AXES = 3


@frozen(eq=False)
class ReducedAxes:
    """How arrays of one shape are walked, the first array first.

    Attributes:
        kinds: element codes of the arrays.
        bases: addresses of the arrays, once for each index of the axes beyond three that are kept.
        extents: of the last three kept axes, and of a run.
        strides: bytes along these, of each array.
        places: byte offsets int64[places, arrays] of the runs.
        is_across: whether a vector lies along the last kept axis, rather than along a run.
    """

    kinds: Sequence[int]
    bases: Sequence[Sequence[int]]
    extents: Extents
    strides: Sequence[Sequence[int]]
    places: Array
    is_across: bool

    @property
    def most_chunks(self) -> int:
        """How many results there are to share: a result is never cut."""
        return max(1, math.prod(self.extents[:_KEPT_AXES]))

    def elements(self, base: Sequence[int]) -> list[Elements]:
        """What native functions are told about the arrays that begin at these addresses."""
        return [
            Elements(address, self.kinds[number], *(strides[number] for strides in self.strides))
            for number, address in enumerate(base)
        ]

    @classmethod
    def of(cls, arrays: Sequence[Array], reduced: Sequence[int], *, has_kinds: bool = True) -> ReducedAxes:
        """The walk over arrays of one shape, of which these axes are reduced.

        Axes that all arrays step over evenly are joined. Without `has_kinds` the element codes are 0.
        """
        for array in arrays:
            require_extents(array.shape, arrays[0].shape, "operand of a reduction")
        kept = joined_axes([_along(array, set(range(array.ndim)) - set(reduced)) for array in arrays])
        *outer, (run, run_strides) = joined_axes([_along(array, set(reduced)) for array in arrays])
        bases = [
            [array.ctypes.data + _offset(index, kept[:-_KEPT_AXES], number) for number, array in enumerate(arrays)]
            for index in np.ndindex(*(extent for extent, _ in kept[:-_KEPT_AXES]))
        ]
        inner = [(1, [0] * len(arrays))] * (_KEPT_AXES - len(kept)) + kept[-_KEPT_AXES:]
        places = [
            [_offset(index, outer, number) for number in range(len(arrays))]
            for index in np.ndindex(*(extent for extent, _ in outer))
        ]
        axes = [*inner, (run, run_strides)]
        last, last_strides = inner[-1]
        # Along the run a vector has to be added up at its end, across it each lane is a result of its own. So vectors
        # lie where memory is dense, and across short runs in any case: one that does not fill a vector would be mostly
        # masked.
        is_across = last > 1 and (abs(last_strides[0]) < abs(run_strides[0]) or 2 * run <= current_tier().lanes < last)
        return cls(
            kinds=[element_code(array) if has_kinds else 0 for array in arrays],
            bases=bases,
            extents=Extents(*(extent for extent, _ in axes)),
            strides=[strides for _, strides in axes],
            places=np.array(places, np.int64).reshape(-1, len(arrays)),
            is_across=is_across,
        )


def _along(array: Array, axes: set[int]) -> Array:
    """The array's first elements along some axes."""
    chosen = sorted(axes)
    shape, strides = ([whole[axis] for axis in chosen] for whole in (array.shape, array.strides))
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _offset(index: Sequence[int], axes: Sequence[tuple[int, Sequence[int]]], number: int) -> int:
    return sum(i * strides[number] for i, (_, strides) in zip(index, axes, strict=True))


_REDUCE = NativeFunction("reduction", "reduce")
_OPERATIONS = {
    ReduceOperation.SUM: codes.SUM,
    ReduceOperation.AVG: codes.SUM,
    ReduceOperation.PROD: codes.PROD,
    ReduceOperation.MAX: codes.MAX,
    ReduceOperation.MIN: codes.MIN,
}


def _accepts(group: LayerGroup, _specs: Specs) -> bool:
    return isinstance(group.main, Reduce) and has_known_end(group)


@kernel("cpu.reduction", kinds="reduce", data_types=codes.FLOATS, accepts=_accepts, fuses=can_end_with, priority=-10)
def reduce_axes(binding: Binding) -> NativeStep:
    """A step that reduces, and applies what function follows."""
    layer = cast("Reduce", binding.group.main)
    x = bound_array(binding, input_of(binding.group).name)
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
                places=WordTable(walk.places.ctypes.data, len(walk.places)),
                place_words=walk.places.shape[1],
                is_across=int(walk.is_across),
                divisor=counted if layer.op is ReduceOperation.AVG else 1.0,
                function=final_function(binding.group),
            )
        )
    return NativeStep(binding.group.name, work, [binding, walk])


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


def _can_normalize(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    tensors = [tensor for tensor in layer.inputs if tensor is not None]
    return (
        isinstance(layer, Normalization)
        and layer.compute_precision is DataType.FLOAT
        and all(specs[tensor.name].dtype in codes.FLOATS for tensor in tensors)
        and has_known_end(group)
    )


@kernel("cpu.normalization", kinds="normalization", data_types=codes.FLOATS, accepts=_can_normalize, fuses=can_end_with)
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
            places=WordTable(walk.places.ctypes.data, len(walk.places)),
            is_across=int(walk.is_across),
            epsilon=layer.epsilon,
            function=final_function(binding.group),
        )
        for base in walk.bases
    ]
    return NativeStep(binding.group.name, work, [binding, walk, scale, bias])


_NORMALIZE_LOCALLY = NativeFunction("normalization", "normalize_locally")
_RANKS = (2, 3, 4)


def _reach(layer: Lrn, channels: int) -> tuple[int, int]:
    """Neighbours that are summed before and after a channel; beyond the channels there are only zeros."""
    before, after = (layer.window_size - 1) // 2, layer.window_size // 2
    return min(before, channels), min(after, channels)


def _squares_shape(layer: Lrn, shape: Shape) -> tuple[int, int, int]:
    """(N, pixels, channels with their neighbours); the last vector of channels may be read as a whole."""
    N, C, *spatial = shape
    return (N, math.prod(map(int, spatial)), sum(_reach(layer, C)) + -(-C // PANEL_CHANNELS) * PANEL_CHANNELS)


def _accepts_local(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    return isinstance(layer, Lrn) and specs[input_of(group).name].rank in _RANKS


def _workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    """Room for the squares."""
    return fp32_bytes(_squares_shape(cast("Lrn", group.main), specs[input_of(group).name].shape))


def _as_image(array: Array) -> Array:
    """`[N, C, H, W]` of an array with up to two spatial axes."""
    return array[(..., *(None,) * (4 - array.ndim))] if array.ndim < 3 else array


@kernel(
    "cpu.lrn",
    kinds="lrn",
    data_types=FLOATS,
    accepts=_accepts_local,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def normalize_locally(binding: Binding) -> NativeStep:
    """A step of the squares, zeros around them, and the quotients."""
    layer, threads = cast("Lrn", binding.group.main), binding.num_threads
    x = ImageOperand.of(_as_image(bound_array(binding, input_of(binding.group).name)))
    y = ImageOperand.of(_as_image(bound_array(binding, layer.outputs[0].name)))
    require_extents(y.shape, x.shape, "output of a normalization")
    N, C, H, W = x.shape
    before, after = _reach(layer, C)
    squares = Workspace(binding).take(_squares_shape(layer, x.shape))
    # Squares with zeros beside the channels: the sums then have no border. A line of padding is cheaper than a question
    # for each channel.
    inside = squares[:, :, before : before + C].reshape(N, H, W, C).transpose(0, 3, 1, 2)
    zero = np.zeros(1, np.float32)
    work = [
        *copy_work(zero, squares[:, :, :before], threads),
        *copy_work(zero, squares[:, :, before + C :], threads),
        *pointwise_work(PROD, [x.array, x.array], inside, threads),
    ]
    work.append(
        _NORMALIZE_LOCALLY.work(
            min(chunks_for(x.array.size * layer.window_size, threads), max(1, N * H * W)),
            squares=squares.ctypes.data,
            square_pitch=squares.strides[1],
            source=x.image,
            output=y.image,
            window=before + after + 1,
            factor=layer.alpha / layer.window_size,
            offset=layer.k,
            exponent=layer.beta,
        )
    )
    return NativeStep(binding.group.name, work, [binding, x, y, squares, zero])
