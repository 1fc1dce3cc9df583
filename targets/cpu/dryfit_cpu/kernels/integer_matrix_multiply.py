"""Matrix products of quantized values with constant weights: a convolution over rows that are pixels.

Of two quantized tensors, neither of which is known before the run, the second matrix is packed in each run, as the
weights of a layer are when an engine is built; what follows is the product with constant weights, one for each index of
the other axes.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Shape, Tensor, TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.kernels.dense_operands import Images
from dryfit_cpu.kernels.integer_products import (
    ChannelNumbers,
    Panels,
    bind_integer_product,
    bind_integer_window,
    integer_workspace_bytes,
    read_input,
)
from dryfit_cpu.kernels.integer_stages import Quantized, quantized_source
from dryfit_cpu.kernels.integer_weights import (
    REPEATED,
    UNIT,
    accepted_weights,
    in_bytes,
    integer_weights,
    pack_integer_panels,
    packed_runs,
)
from dryfit_cpu.kernels.operands import ImageOperand, aligned_empty, require_extents
from dryfit_cpu.kernels.requantization import (
    GroupRequantization,
    bound_requantization,
    integer_kernel,
    requantization_of,
)
from dryfit_cpu.kernels.windows import WindowGeometry


def _pack(group: LayerGroup) -> dict[str, Array]:
    weights = accepted_weights(group)
    runs = packed_runs(weights.kernel[:, None, :])
    if not weights.has_zero_points:
        return pack_integer_panels(group, runs)
    runs, repeated = in_bytes(runs, runs.shape[2] // UNIT)
    return {**pack_integer_panels(group, runs), REPEATED: repeated}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, MatrixMultiply) or layer.op0 is not MatrixOperation.NONE:
        return False
    x, weights = (specs[cast("Tensor", tensor).name] for tensor in layer.inputs)
    return (
        layer.op1 is not MatrixOperation.VECTOR
        and x.rank >= 2
        and all(extent == 1 for extent in weights.shape[:-2])
        and 0 not in (*x.shape, *weights.shape)
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


def _workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    x, y = (specs[cast("Tensor", tensor).name].shape for tensor in (group.main.inputs[0], group.main.outputs[0]))
    rows = math.prod(x[:-1])
    return integer_workspace_bytes(window_of_rows((1, x[-1], 1, rows), (1, y[-1], 1, rows)))


@integer_kernel(
    "cpu.integer_matrix_multiply",
    kinds="matrix_multiply",
    accepts=_accepts,
    pack=_pack,
    packs_constants=True,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.LINEAR,
)
def multiply_integers(binding: Binding) -> NativeStep:
    """A step that multiplies rows by the weights."""
    source, steps = accepted_weights(binding.group).source, bound_requantization(binding)
    given, threads = Images.of(binding, source.tensor.name, steps.residual), binding.num_threads
    x, before = pixels_of_rows(given.source, threads, is_read=True)
    y, after = pixels_of_rows(given.output, threads, is_read=False)
    residual = None
    if given.residual is not None:
        residual, work = pixels_of_rows(given.residual, threads, is_read=True)
        before += work
    step = bind_integer_window(binding, window_of_rows(x.shape, y.shape), Images(x, y, residual), steps)
    return NativeStep(step.name, [*before, *step.work, *after], [given, *step.keeps])


def window_of_rows(x: Shape, y: Shape) -> WindowGeometry:
    """Pixels `[1, K, 1, rows]` under a window of one."""
    (N, C, H, W), (_, K, _, _) = x, y
    return WindowGeometry((N, C, H, W), (N, K, H, W), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def pixels_of_rows(array: Array, threads: int, *, is_read: bool) -> tuple[Array, list[Work]]:
    """Rows `[..., K]` as pixels `[1, K, 1, rows]`, and the work that copies them where they do not lie together."""
    rows, work = array, list[Work]()
    if not array.flags.c_contiguous:
        rows = aligned_empty(array.shape, array.dtype)
        work = copy_work(array, rows, threads) if is_read else copy_work(rows, array, threads)
    return rows.reshape(-1, rows.shape[-1]).T[None, :, None, :], work


_PACK = NativeFunction("integer_convolution", "pack")
_LARGEST_SUM = 2**31 - 1
_LARGEST_PRODUCT = 256 * 128


def _operands(group: LayerGroup) -> tuple[Quantized, Quantized] | None:
    """Both matrices, the second one without a zero point."""
    first, second = (quantized_source(tensor, group) for tensor in group.main.inputs[:2])
    return None if first is None or second is None or second.zero_point else (first, second)


def _accepts_two(group: LayerGroup, specs: Specs) -> bool:
    layer, operands = group.main, _operands(group)
    if not isinstance(layer, MatrixMultiply) or operands is None or requantization_of(group) is None:
        return False
    x, y = (specs[one.tensor.name] for one in operands)
    is_dynamic = specs[operands[1].tensor.name].value is None
    return is_dynamic and MatrixOperation.VECTOR not in (layer.op0, layer.op1) and _fits(x, y)


def _fits(x: TensorSpec, y: TensorSpec) -> bool:
    """Whether both are matrices, whose sums of products INT32 holds."""
    is_matrix = min(x.rank, y.rank) >= 2 and 0 not in (*x.shape, *y.shape)
    return is_matrix and max(*x.shape[-2:], *y.shape[-2:]) * _LARGEST_PRODUCT <= _LARGEST_SUM


@integer_kernel(
    "cpu.integer_matrices",
    kinds="matrix_multiply",
    accepts=_accepts_two,
    layout=HostLayout.LINEAR,
)
def multiply_matrices(binding: Binding) -> NativeStep:
    """A step that packs the second matrix and multiplies the rows of the first one by it, for each pair of them."""
    layer = cast("MatrixMultiply", binding.group.main)
    operands = cast("tuple[Quantized, Quantized]", _operands(binding.group))
    steps = bound_requantization(binding)
    given = Images.of(binding, operands[0].tensor.name, steps.residual)
    second = Images.of(binding, operands[1].tensor.name, "").source
    x = _turned(given.source, layer.op0)
    y = _turned(second, layer.op1)
    require_extents(given.output.shape[-2:], (x.shape[-2], y.shape[-1]), "output of a matrix product")
    require_extents(y.shape[-2:-1], x.shape[-1:], "columns of a matrix product")
    batch = given.output.shape[:-2]
    x, y = (np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (x, y))
    scale = operands[0].scale * operands[1].scale
    # One memory for the panels of all pairs, packed and multiplied in turns: so a pair's panels are still in the cache
    # when they are read, and a batch takes no more memory than one of it.
    panels = _memory(y.shape[-2], y.shape[-1], steps.multiplier_of(scale))
    work, keeps = list[Work](), list[object]([binding, given, second, panels])
    for index in np.ndindex(*batch):
        residual = None if given.residual is None else given.residual[index]
        one = Images(x[index], given.output[index], residual)
        step = _pair_product(binding, one, y[index], panels, steps, operands[0].zero_point)
        work += step.work
        keeps.append(step)
    return NativeStep(binding.group.name, work, keeps)


def _turned(array: Array, operation: MatrixOperation) -> Array:
    return array.swapaxes(-1, -2) if operation is MatrixOperation.TRANSPOSE else array


def _memory(rows: int, columns: int, multiplier: float) -> Panels:
    """Room for a packed matrix. What sums begin at is written in each run: here stands the most that it can be."""
    count, units, tier = -(-columns // PANEL_CHANNELS), -(-rows // UNIT), current_tier()
    shape, dtype = (1, count, units, PANEL_CHANNELS, UNIT), np.int8
    if tier.staged_bytes == 2:
        shape, dtype = (1, count, units, 2, PANEL_CHANNELS, 2), np.int16  # type: ignore[assignment]
    values = aligned_empty(shape, dtype)
    starts = aligned_empty((1, count * PANEL_CHANNELS), np.int32)
    starts[:] = min(rows * _LARGEST_PRODUCT, _LARGEST_SUM)
    multipliers = aligned_empty(starts.shape, np.float32)
    multipliers[:] = multiplier
    return Panels(values, ChannelNumbers(starts, multipliers))


def _pair_product(
    binding: Binding, images: Images, matrix: Array, panels: Panels, steps: GroupRequantization, zero_point: int
) -> NativeStep:
    """The product of one pair of matrices."""
    threads = binding.num_threads
    pack = _PACK.work(
        panels.values.shape[1],
        source=matrix.ctypes.data,
        row_stride=matrix.strides[0],
        column_stride=matrix.strides[1],
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        panels=panels.values.ctypes.data,
        starts=panels.numbers.starts.ctypes.data,
        zero_point=zero_point,
    )
    x, before = pixels_of_rows(images.source, threads, is_read=True)
    y, after = pixels_of_rows(images.output, threads, is_read=False)
    residual = None
    if images.residual is not None:
        residual, copy = pixels_of_rows(images.residual, threads, is_read=True)
        before += copy
    window = window_of_rows(x.shape, y.shape)
    read = read_input(binding, window, ImageOperand.of(x), zero_point)
    step = bind_integer_product(binding, window, read, Images(x, y, residual), steps, panels)
    return NativeStep(step.name, [pack, *before, *step.work, *after], [images, matrix, *step.keeps])
