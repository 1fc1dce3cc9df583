"""Layers that only move values: shuffle, squeeze, unsqueeze, and slice where it stays inside its input.

What such a layer gives is a view of its input, as its numpy reference says; the step copies the view to the output. A
reshape of axes that do not lie one in another gives no view: the input is then first brought into the order in which
they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.shuffle import Shuffle
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.kernels.operands import aligned_empty, bound_array
from dryfit_cpu.steps import NativeStep, Work


def _view(layer: Layer, source: Array, others: Sequence[Array | None]) -> Array | None:
    """What the layer makes of the source, where that is a view of it; None where it is a copy."""
    (moved,) = evaluate(layer, [source, *others])
    return moved if np.may_share_memory(moved, source) else None


def _row_major(source: Array, order: tuple[int, ...]) -> Array:
    """A new array of the source's shape that is row-major once its axes are in this order."""
    axes = order or tuple(range(source.ndim))
    ordered = aligned_empty([source.shape[axis] for axis in axes], source.dtype)
    return ordered.transpose(np.argsort(axes))


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """One layer, whose other inputs (axes, extents, bounds) are known, and which reads nothing outside its input."""
    layer = group.main
    known = all(specs[tensor.name].value is not None for tensor in layer.inputs[1:] if tensor is not None)
    is_inside = not isinstance(layer, Slice) or layer.mode is SampleMode.STRICT_BOUNDS
    return len(group.layers) == 1 and known and is_inside


@kernel(
    "cpu.movement",
    kinds=("shuffle", "slice", "squeeze", "unsqueeze"),
    data_types=FLOATS | {DataType.INT8},
    accepts=_accepts,
)
def move_values(binding: Binding) -> NativeStep:
    """A step that copies what the layer makes of its input.

    Raises:
        ExecutionError: the layer makes no view, though its input lies in order: no such layer is known.
    """
    layer, threads = binding.group.main, binding.num_threads
    source, *others = (None if tensor is None else bound_array(binding, tensor.name) for tensor in layer.inputs)
    source, output = cast("Array", source), bound_array(binding, layer.outputs[0].name)
    work: list[Work] = []
    view = _view(layer, source, others)
    if view is None:
        ordered = _row_major(source, layer.first_transpose if isinstance(layer, Shuffle) else ())
        work += copy_work(source, ordered, threads)
        source, view = ordered, _view(layer, ordered, others)
    if view is None:
        raise ExecutionError("The layer computes values, and cannot be a copy", where=f"layer {layer.name!r}")
    work += copy_work(view, output, threads)
    return NativeStep(binding.group.name, work, [binding, source, view])
