"""The second half of a deconvolution: each output collects what the inputs' windows lay on it.

Depthwise deconvolution is nothing but that: as many groups as channels, products made while they are collected.

Deconvolution to few channels multiplies each pixel by the whole window first. The convolutions of `deconvolution.py`
would fill vectors with few channels each. Here the places of the window fill
them, times the channels; that sums are collected from memory then costs less than what is saved.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.tensor import Shape
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.descriptors import WindowAxis
from dryfit_cpu.kernels import deconvolution, epilogues
from dryfit_cpu.kernels.constants import constant_weights, filled_channels
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.epilogues import weighted_kernel
from dryfit_cpu.kernels.matrix_products import Axis, MatrixProduct, pack_panels
from dryfit_cpu.kernels.operands import (
    ImageOperand,
    Workspace,
    bound_array,
    fp32_bytes,
    input_of,
    pixels_at,
    require_extents,
)
from dryfit_cpu.kernels.window_products import staged
from dryfit_cpu.kernels.windows import WindowGeometry, images_of, pair

_COLLECT = NativeFunction("convolution", "collect")


@frozen(eq=False)
class Products:
    """What falls on the outputs of a group of channels.

    Attributes:
        address: of the first product.
        pixel_bytes, tap_bytes: from one pixel of the input to the next, and from one place in the window to the next.
        weights: address of what the products have yet to be multiplied with; 0 where they are whole.
        weight_bytes: from one place in the window to the next.
    """

    address: int
    pixel_bytes: int
    tap_bytes: int
    weights: int = 0
    weight_bytes: int = 0


def collect_work(
    layer: Deconvolution, binding: Binding, source: ImageOperand, output: ImageOperand, products: Products, bias: Array
) -> tuple[list[Work], list[Array]]:
    """Work that sums the products, and finishes the outputs; and what has to be kept for it.

    Outputs as many as a step, side by side with all their channels, read runs of places in the window:

        window of 4, step of 2      places 0 1 of a pixel and 2 3 of the one before: both outputs at once

    Where they lie together they are collected as one pixel with the channels of all, and vectors are filled better.
    What is beside such runs at the ends of a row is collected pixel by pixel.
    """
    require_extents(output.shape[:1], source.shape[:1], "output of a deconvolution")
    W, step = output.shape[3], pair(layer.stride_nd)[1]
    # With few channels a vector would be mostly empty: a picture of 3 channels in steps of 2 has 6 values side by side
    # for a pixel of the input.
    joined = step if _can_join(layer, output, products) else 1
    first = -_left(layer) % joined
    behind = first + (W - first) // joined * joined
    long_bias = np.zeros(-(-joined * output.shape[1] // PANEL_CHANNELS) * PANEL_CHANNELS, np.float32)
    long_bias[: joined * output.shape[1]] = np.tile(bias[: output.shape[1]], joined)
    work = []
    for start, stop, together in ((0, first, 1), (first, behind, joined), (behind, W, 1)):
        if start < stop:
            columns = _Columns(start, (stop - start) // together, together)
            work.append(_part_work(layer, binding, source, output, products, long_bias, columns))
    return work, [long_bias]


@frozen
class _Columns:
    """Columns of the output: the first, how many, and how many outputs each of them joins."""

    first: int
    count: int
    joined: int


def _can_join(layer: Deconvolution, output: ImageOperand, products: Products) -> bool:
    """Whether outputs a step wide lie together, as do the products that fall on them."""
    is_even = pair(layer.kernel_size_nd)[1] % pair(layer.stride_nd)[1] == 0 and pair(layer.dilation_nd)[1] == 1
    is_dense = output.has_dense_channels and output.strides[3] == output.shape[1] * output.size
    return is_even and is_dense and not products.weights and products.tap_bytes == 4 * output.shape[1]


def _left(layer: Deconvolution) -> int:
    """Columns that the layer cuts off on the left."""
    return layer.paddings(layer.kernel_size_nd)[-1][0]


def _part_work(
    layer: Deconvolution,
    binding: Binding,
    source: ImageOperand,
    output: ImageOperand,
    products: Products,
    bias: Array,
    columns: _Columns,
) -> Work:
    N, C, H, _ = output.shape
    paddings = [*[(0, 0)] * (2 - len(layer.kernel_size_nd)), *layer.paddings(layer.kernel_size_nd)]
    window, joined = pair(layer.kernel_size_nd), columns.joined
    step, dilation = pair(layer.stride_nd), pair(layer.dilation_nd)
    image = output.image._replace(
        address=output.address + columns.first * output.strides[3],
        pixel_stride=output.strides[3] * joined,
        columns=columns.count,
        channels=C * joined,
    )
    return _COLLECT.work(
        chunks_for(N * C * H * columns.count * joined * window[0] * window[1], binding.num_threads),
        products=products.address,
        pixel_bytes=products.pixel_bytes,
        tap_bytes=products.tap_bytes * joined,
        weights=products.weights,
        weight_bytes=products.weight_bytes,
        source_rows=source.shape[2],
        source_columns=source.shape[3],
        bias=bias.ctypes.data,
        output=image,
        window_rows=WindowAxis(window[0], step[0], dilation[0], paddings[0][0]),
        window_columns=WindowAxis(
            window[1] // joined, step[1] // joined, dilation[1], (_left(layer) + columns.first) // joined
        ),
        row_hop=_hop(step[0], dilation[0]),
        column_hop=_hop(step[1] // joined, dilation[1]),
        function=epilogues.required_epilogue(binding).outer,
    )


def _hop(step: int, dilation: int) -> int:
    """How many places apart those of a window are that fall on the same output."""
    return step // math.gcd(step, dilation)


def pixels_of(shape: Shape) -> WindowGeometry:
    """The input as a window of one pixel sees it, for staging."""
    images = images_of(shape)
    return WindowGeometry(images, images, (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def can_collect(group: LayerGroup) -> bool:
    """Whether what follows a deconvolution's sums can be done to each: no sum of branches; and its axes are two."""
    epilogue = epilogues.epilogue_of(group)
    is_flat = len(cast("Deconvolution", group.main).kernel_size_nd) <= 2
    return is_flat and epilogue is not None and epilogue.residual is None


def fuses(group: LayerGroup, layer: Layer) -> bool:
    """Scales and activations, not a sum of branches."""
    return layer.kind != "elementwise" and epilogues.fuses(group, layer)


def _pack(group: LayerGroup) -> dict[str, Array]:
    """Weights `[places in the window, C]` and bias `[C]`, C filled up with zeros to whole vectors."""
    weights, bias = epilogues.folded(group, *constant_weights(cast("Deconvolution", group.main)))
    return {"weights": filled_channels(weights.reshape(len(weights), -1).T), "bias": filled_channels(bias)}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Deconvolution) or not deconvolution.accepts(group, specs) or not can_collect(group):
        return False
    channels = specs[input_of(group).name].shape[1]
    return 1 < layer.num_groups == channels == layer.num_output_maps


def _workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    """Room for the widened input."""
    x = specs[input_of(group).name]
    return fp32_bytes(pixels_of(x.shape).staged_shape) if x.dtype is not DataType.FLOAT else 0


@weighted_kernel(
    "cpu.depthwise_deconvolution",
    kinds="deconvolution",
    accepts=_accepts,
    fuses=fuses,
    pack=_pack,
    workspace_bytes=_workspace_bytes,
    priority=10,
)
def deconvolve_channels(binding: Binding) -> NativeStep:
    """A step that brings the input into order where it is not, and deconvolves each channel."""
    layer = cast("Deconvolution", binding.group.main)
    source = ImageOperand.of(bound_array(binding, input_of(binding.group).name))
    output = ImageOperand.of(bound_array(binding, binding.group.outputs[0].name))
    _, C, H, W = source.shape
    require_extents(output.shape[1:2], (C,), "output of a window for each channel")
    is_even = source.strides[2] == W * source.strides[3] and source.strides[0] == H * W * source.strides[3]
    address, (_, _, pitch), work, keeps = staged(
        pixels_of(source.shape), source, Workspace(binding), binding.num_threads, must_copy=not is_even
    )
    places, padded = int(np.prod(layer.kernel_size_nd)), -(-C // PANEL_CHANNELS) * PANEL_CHANNELS
    weights, bias = binding.weight("weights", (places, padded)), binding.weight("bias", (padded,))
    products = Products(address, pitch, 0, weights.ctypes.data, weights.strides[0])
    more, kept = collect_work(layer, binding, source, output, products, bias)
    return NativeStep(binding.group.name, [*work, *more], [binding, *keeps, output, *kept])


_FEW_CHANNELS = 16
"""Measured with windows of 4x4 in steps of 2 on 64 channels, AVX512: with 16 channels the convolutions take three
quarters of this kernel's time, with 8 four thirds."""


def _products_shape(layer: Deconvolution, shape: Shape) -> tuple[int, int]:
    N, _, H, W = images_of(shape)
    window = pair(layer.kernel_size_nd)
    return (N * H * W, window[0] * window[1] * layer.num_output_maps)


def _pack_windows(group: LayerGroup) -> dict[str, Array]:
    """Each group's panels of `[window row, window column, K]` columns, zeros to begin their sums with, and the bias."""
    layer = cast("Deconvolution", group.main)
    weights, offsets = deconvolution.folded_kernel(group)
    G, (K, depth) = layer.num_groups, weights.shape[:2]
    # `[window row, window column, K]` along the panel: so the collection reads the channels of a place together.
    columns = weights.reshape(G, K // G, depth, -1).transpose(0, 3, 1, 2).reshape(-1, depth)
    packed = pack_panels(columns, np.zeros(len(columns), np.float32), G)
    padded = pack_panels(np.zeros((K, 1), np.float32), offsets, G)
    return {"panels": packed["panels"], "zeros": packed["bias"][:1], "bias": padded["bias"]}


def _accepts_few_channels(group: LayerGroup, specs: Specs) -> bool:
    """Fewer channels of a group than the vectors of most machines have lanes."""
    if not deconvolution.accepts(group, specs) or not can_collect(group):
        return False
    layer = cast("Deconvolution", group.main)
    return layer.num_output_maps // layer.num_groups < _FEW_CHANNELS


def _products_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    layer = cast("Deconvolution", group.main)
    x = specs[input_of(group).name]
    staged = fp32_bytes(pixels_of(x.shape).staged_shape) if x.dtype is not DataType.FLOAT else 0
    return staged + fp32_bytes(_products_shape(layer, x.shape))


@weighted_kernel(
    "cpu.deconvolution_to_few_channels",
    kinds="deconvolution",
    accepts=_accepts_few_channels,
    fuses=fuses,
    pack=_pack_windows,
    workspace_bytes=_products_bytes,
    priority=5,
)
def deconvolve_to_few_channels(binding: Binding) -> NativeStep:
    """A step of staging where it is needed, the product, and the collection."""
    layer, threads = cast("Deconvolution", binding.group.main), binding.num_threads
    workspace = Workspace(binding)
    source = ImageOperand.of(bound_array(binding, input_of(binding.group).name))
    output = ImageOperand.of(bound_array(binding, binding.group.outputs[0].name))
    products = workspace.take(_products_shape(layer, source.shape))
    address, strides, work, keeps = staged(pixels_of(source.shape), source, workspace, threads)
    keeps += [binding, output, products]
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
        axes=[Axis(N, strides[0], H * W * pitch), Axis(H, strides[1], W * pitch), Axis(W, strides[2], pitch)],
        input=address,
        output=pixels_at(products),
        segment_length=C // G,
        weights=panels.ctypes.data,
        bias=zeros.ctypes.data,
        group_outputs=columns,
        group_offsets=[(g * panels.strides[0], 0, g * C // G * 4, g * columns * 4, 0) for g in range(G)],
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
