"""Deconvolution to few channels: each pixel times the whole window, then each output collects what falls on it.

The convolutions of `convolution.py` would fill vectors with few channels each. Here the places of the window fill
them, times the channels; that sums are collected from memory then costs less than what is saved.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.codes import FP32, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels import deconvolution
from dryfit_cpu.kernels.collection import Products, can_collect, collect_work, fuses, pixels_of
from dryfit_cpu.kernels.epilogues import Epilogue, weighted_kernel
from dryfit_cpu.kernels.matrix_products import Axis, MatrixProduct, pack_panels
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, bound_array, fp32_bytes, require_extents
from dryfit_cpu.kernels.window_products import needs_staging, stage_work
from dryfit_cpu.kernels.windows import images_of, pair

_FEW_CHANNELS = 16
"""Measured with windows of 4x4 in steps of 2 on 64 channels, AVX512: with 16 channels the convolutions take three
quarters of this kernel's time, with 8 four thirds."""


def _products_shape(layer: Deconvolution, shape: Shape) -> tuple[int, int]:
    N, _, H, W = images_of(shape)
    window = pair(layer.kernel_size_nd)
    return (N * H * W, window[0] * window[1] * layer.num_output_maps)


def _pack(group: LayerGroup) -> dict[str, Array]:
    """Each group's panels of `[window row, window column, K]` columns, zeros to begin their sums with, and the bias."""
    layer = cast("Deconvolution", group.main)
    weights, offsets = deconvolution.folded_kernel(group)
    G, (K, depth) = layer.num_groups, weights.shape[:2]
    # `[window row, window column, K]` along the panel: so the collection reads the channels of a place together.
    columns = weights.reshape(G, K // G, depth, -1).transpose(0, 3, 1, 2).reshape(-1, depth)
    packed = pack_panels(columns, np.zeros(len(columns), np.float32), G)
    padded = pack_panels(np.zeros((K, 1), np.float32), offsets, G)
    return {"panels": packed["panels"], "zeros": packed["bias"][:1], "bias": padded["bias"]}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """Fewer channels of a group than the vectors of most machines have lanes."""
    if not deconvolution.accepts(group, specs) or not can_collect(group):
        return False
    layer = cast("Deconvolution", group.main)
    return layer.num_output_maps // layer.num_groups < _FEW_CHANNELS


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del num_threads
    layer = cast("Deconvolution", group.main)
    x = specs[cast("Tensor", layer.inputs[0]).name]
    staged = fp32_bytes(pixels_of(x.shape).staged_shape) if x.dtype is not DataType.FLOAT else 0
    return staged + fp32_bytes(_products_shape(layer, x.shape))


@weighted_kernel(
    "cpu.deconvolution_to_few_channels",
    kinds="deconvolution",
    accepts=_accepts,
    fuses=fuses,
    pack=_pack,
    workspace_bytes=_workspace_bytes,
    priority=5,
)
def deconvolve_to_few_channels(binding: Binding) -> NativeStep:
    """A step of staging where it is needed, the product, and the collection."""
    layer, threads = cast("Deconvolution", binding.group.main), binding.num_threads
    workspace, work = Workspace(binding), list[Work]()
    source = ImageOperand.of(bound_array(binding, cast("Tensor", layer.inputs[0]).name))
    output = ImageOperand.of(bound_array(binding, binding.group.outputs[0].name))
    products = workspace.take(_products_shape(layer, source.shape))
    keeps: list[object] = [binding, source, output, products]
    strides, address = (source.strides[0], source.strides[2], source.strides[3]), source.address
    pixels = pixels_of(source.shape)
    if needs_staging(pixels, source):
        staged = workspace.take(pixels.staged_shape)
        work.append(stage_work(pixels, source, staged, threads))
        address, strides = staged.ctypes.data, (staged.strides[0], staged.strides[1], staged.strides[2])
        keeps.append(staged)

    require_extents(output.shape[1:2], (layer.num_output_maps,), "output of a deconvolution")
    N, C, H, W = source.shape
    G, K, pitch = layer.num_groups, output.shape[1] // layer.num_groups, products.strides[0]
    columns = products.shape[1] // G
    count = -(-columns // PANEL_CHANNELS)
    panels = binding.weight("panels", (G, count, C // G, PANEL_CHANNELS))
    zeros = binding.weight("zeros", (1, count * PANEL_CHANNELS))
    bias = binding.weight("bias", (G, -(-K // PANEL_CHANNELS) * PANEL_CHANNELS))
    # All places of the window are columns of one matrix: with 3 channels and a window of 4 x 4 that is 48 of them,
    # where the channels alone would fill 3 lanes of 16.
    product = MatrixProduct(
        axes=[
            Axis(N, strides[0], H * W * pitch),
            Axis(H, strides[1], W * pitch),
            Axis(W, strides[2], pitch),
        ],
        input=address,
        output=products.ctypes.data,
        residual=0,
        output_kind=FP32,
        residual_kind=FP32,
        segments=[0],
        segment_length=C // G,
        weights=panels.ctypes.data,
        bias=zeros.ctypes.data,
        group_outputs=columns,
        group_offsets=[(g * panels.strides[0], 0, g * C // G * 4, g * columns * 4, 0) for g in range(G)],
        epilogue=Epilogue(),
    )
    main, tables = product.work(threads)
    collections = list[Work]()
    for g in range(G):
        part = ImageOperand.of(output.array[:, g * K : (g + 1) * K])
        given = Products(products[:, g * columns :].ctypes.data, pitch, 4 * K)
        more, kept = collect_work(layer, binding, source, part, given, bias[g])
        collections += more
        keeps += kept
    return NativeStep(binding.group.name, [*work, main, *collections], [*keeps, *tables])
