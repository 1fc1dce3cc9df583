"""Matrix products of two quantized tensors, neither of which is known before the run.

The second matrix is packed in each run, as the weights of a layer are when an engine is built; what follows is the
product with constant weights, one for each index of the other axes.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.dense_operands import Images
from dryfit_cpu.kernels.integer_matrix_multiply import pixels_of_rows, window_of_rows
from dryfit_cpu.kernels.integer_products import ChannelNumbers, Panels, bind_integer_product, read_input
from dryfit_cpu.kernels.integer_stages import Quantized, quantized_source
from dryfit_cpu.kernels.integer_weights import UNIT
from dryfit_cpu.kernels.operands import ImageOperand, aligned_empty, require_extents
from dryfit_cpu.kernels.requantization import (
    GroupRequantization,
    bound_requantization,
    in_units,
    integer_kernel,
    requantization_of,
)

_PACK = NativeFunction("integer_convolution", "pack")
_LARGEST_SUM = 2**31 - 1
_LARGEST_PRODUCT = 256 * 128


def _operands(group: LayerGroup) -> tuple[Quantized, Quantized] | None:
    """Both matrices, the second one without a zero point."""
    first, second = (quantized_source(tensor, group) for tensor in group.main.inputs[:2])
    return None if first is None or second is None or second.zero_point else (first, second)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
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
    accepts=_accepts,
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
    panels = _memory(y.shape[-2], y.shape[-1], float(in_units(np.array([scale]), steps.unit)[0]))
    work, keeps = list[Work](), list[object]([binding, given, second, panels])
    for index in np.ndindex(*batch):
        residual = None if given.residual is None else given.residual[index]
        one = Images(x[index], given.output[index], residual)
        step = _product(binding, one, y[index], panels, steps, operands[0].zero_point)
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


def _product(
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
