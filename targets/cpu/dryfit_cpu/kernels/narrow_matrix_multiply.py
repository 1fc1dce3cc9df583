"""Matrix products, fully connected layers of vectors, and convolution, with weights that stay narrow in memory.

They are INT4, FP4, INT8 or FP8; what they multiply is real, quantized, or FP8 images.
"""

from __future__ import annotations

import functools
import math
from typing import cast

import numpy as np

from dryfit.network.layers.convolution import Convolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Shape
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels.convolution import window_of
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.kernels.dense_operands import DenseOperands
from dryfit_cpu.kernels.epilogues import require_one_shape
from dryfit_cpu.kernels.matrix_products import Axis
from dryfit_cpu.kernels.narrow_products import (
    IMAGE_RANK,
    NarrowProduct,
    ending_work,
    product_bytes,
    real_input,
    real_output,
)
from dryfit_cpu.kernels.narrow_weights import (
    NARROW_TYPES,
    NarrowGroup,
    accepts_narrow,
    fuses_narrow,
    narrow_group,
    pack_narrow,
)
from dryfit_cpu.kernels.operands import (
    Workspace,
    aligned_empty,
    bound_array,
    element_code,
    fp32_bytes,
    input_of,
    pixels_at,
    require_extents,
)
from dryfit_cpu.kernels.window_products import WindowInput, pixel_axes
from dryfit_cpu.kernels.windows import pixel_pitch, share_sets

_narrow_kernel = functools.partial(
    kernel,
    data_types=NARROW_TYPES,
    fuses=fuses_narrow,
    absorbs_dequantize=True,
    pack=pack_narrow,
    packed_parameters=("bias",),
    packs_constants=True,
)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    x = specs[input_of(group).name]
    if isinstance(layer, FullyConnected):
        return x.rank >= 3 and x.shape[-2:] == (1, 1) and accepts_narrow(group, specs)
    is_row = isinstance(layer, MatrixMultiply) and layer.op0 is MatrixOperation.NONE and x.rank >= 2
    return is_row and accepts_narrow(group, specs)


def _rows_shape(shape: Shape, values: int) -> tuple[int, int]:
    """The shape of a copy of what is read, as rows of so many values that are apart in the cache."""
    return (math.prod(shape) // values, pixel_pitch(values, 4))


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    found, x = cast("NarrowGroup", narrow_group(group)), specs[input_of(group).name]
    return fp32_bytes(_rows_shape(x.shape, found.weights.shape[2])) + product_bytes(group, specs, num_threads)


@_narrow_kernel(
    "cpu.narrow_matrix_multiply",
    kinds=["matrix_multiply", "fully_connected"],
    accepts=_accepts,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.LINEAR,
)
def multiply_by_narrow_weights(binding: Binding) -> NativeStep:
    """A step that dequantizes what is read, multiplies, and quantizes the result, as far as the group does."""
    found, threads = cast("NarrowGroup", narrow_group(binding.group)), binding.num_threads
    layer = cast("MatrixMultiply | FullyConnected", binding.group.main)
    workspace = Workspace(binding)
    N, _, K = found.weights.shape
    x, work, keeps = real_input(binding, found, workspace)
    require_one_shape(binding)
    made = real_output(binding, found, workspace)
    target = made if made.flags.c_contiguous else aligned_empty(made.shape, made.dtype)
    rows = target.reshape(-1, N)
    residual, more = _residual(binding, found, layer, rows)
    work += more
    require_extents((x.size,), (len(rows) * K,), "rows of a matrix product")
    if x.dtype != np.float32 or not x.flags.c_contiguous or share_sets(len(rows), 4 * K, N):
        values = workspace.take(_rows_shape(x.shape, K))[:, :K]
        work += copy_work(x, values.reshape(x.shape), threads)
    else:
        values = x.reshape(-1, K)
    product = NarrowProduct(
        axes=[Axis(len(rows), values.strides[0], rows.strides[0], 0 if residual is None else residual.strides[0])],
        input=values.ctypes.data,
        output=pixels_at(rows),
        residual=pixels_at(residual, element_code(rows)),
        runs=[0],
    )
    main, tables = product.work(binding, found, workspace)
    after = copy_work(target, made, threads) if target is not made else []
    ending, kept = ending_work(binding, found, made)
    tables = [*tables, *kept]
    work += [main, *after, *ending]
    return NativeStep(binding.group.name, work, [binding, *keeps, x, values, made, target, residual, *tables])


def _residual(
    binding: Binding, found: NarrowGroup, layer: MatrixMultiply | FullyConnected, rows: Array
) -> tuple[Array | None, list[Work]]:
    """What is added to the rows `[rows, N]`, of stride 0 where it is the same for all, and the work that copies it."""
    if found.epilogue.residual is None:
        return None, []
    added = bound_array(binding, found.epilogue.residual.name)
    shape = binding.specs[layer.outputs[0].name].shape
    if added.size == rows.shape[1] and added.flags.c_contiguous:
        return np.broadcast_to(added.reshape(1, -1), rows.shape), []
    whole = np.broadcast_to(added, shape)
    if whole.flags.c_contiguous:
        return whole.reshape(rows.shape), []
    dense = aligned_empty(shape, added.dtype)
    return dense.reshape(rows.shape), copy_work(whole, dense, binding.num_threads)


def _accepts_windows(group: LayerGroup, specs: Specs) -> bool:
    """Two spatial axes, and one group."""
    layer = group.main
    is_image = isinstance(layer, Convolution) and layer.num_groups == 1
    rank = specs[input_of(group).name].rank
    return is_image and rank == IMAGE_RANK and accepts_narrow(group, specs)


def _window_workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    window = window_of(group, specs)
    staged = 0 if window.is_padded else fp32_bytes(window.staged_shape)
    return product_bytes(group, specs, num_threads) + window.workspace_bytes + staged


@_narrow_kernel(
    "cpu.narrow_convolution",
    kinds="convolution",
    accepts=_accepts_windows,
    workspace_bytes=_window_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def convolve_by_narrow_weights(binding: Binding) -> NativeStep:
    """A step that dequantizes the image, convolves, and quantizes the result, as far as the group does."""
    found, window = cast("NarrowGroup", narrow_group(binding.group)), window_of(binding.group, binding.specs)
    require_one_shape(binding)
    workspace = Workspace(binding)
    x, work, keeps = real_input(binding, found, workspace)
    made = real_output(binding, found, workspace)
    read = WindowInput.of(window, x, workspace, binding.num_threads)
    dense = DenseOperands.of(binding, found.epilogue, made)
    target, residual = dense.output, dense.residual
    channels, places = window.input[1], window.kernel[0] * window.kernel[1]
    require_extents(target.shape, window.output, "output of a window")
    require_extents(found.weights.shape, (window.output[1], places, channels), "weights of a window")
    product = NarrowProduct(
        axes=pixel_axes(window, read.strides, target, residual),
        input=read.address,
        output=pixels_at(target),
        residual=pixels_at(residual),
        # Weights lie place by place of the window; a segment may be several places that lie together.
        runs=[start + 4 * k for start in read.segments for k in range(0, read.length, channels)],
    )
    main, tables = product.work(binding, found, workspace)
    ending, kept = ending_work(binding, found, made)
    steps = [*work, *read.work, *dense.before, main, *dense.after, *ending]
    return NativeStep(binding.group.name, steps, [binding, *keeps, made, *read.keeps, dense, *tables, *kept])
