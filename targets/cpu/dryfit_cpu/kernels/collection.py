"""The second half of a deconvolution: each output collects what the inputs' windows lay on it.

Depthwise deconvolution is nothing but that: as many groups as channels, products made while they are collected.
"""

from __future__ import annotations

import math
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.descriptors import WindowAxis
from dryfit_cpu.kernels import deconvolution, epilogues
from dryfit_cpu.kernels.constants import constant_weights, filled_channels
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.epilogues import weighted_kernel
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, bound_array, fp32_bytes, require_extents
from dryfit_cpu.kernels.window_products import needs_staging, stage_work
from dryfit_cpu.kernels.windows import WindowGeometry, images_of, pair

_COLLECT = NativeFunction("convolution", "collect")


@attrs.frozen(eq=False)
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


@attrs.frozen
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
    channels = specs[cast("Tensor", layer.inputs[0]).name].shape[1]
    return layer.num_groups == channels == layer.num_output_maps


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """Room for the widened input."""
    del num_threads
    x = specs[cast("Tensor", group.main.inputs[0]).name]
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
    source = ImageOperand.of(bound_array(binding, cast("Tensor", layer.inputs[0]).name))
    output = ImageOperand.of(bound_array(binding, binding.group.outputs[0].name))
    _, C, H, W = source.shape
    require_extents(output.shape[1:2], (C,), "output of a window for each channel")
    pixels, address, pitch, work = pixels_of(source.shape), source.address, source.strides[3], list[Work]()
    keeps: list[object] = [binding, source, output]
    is_even = source.strides[2] == W * pitch and source.strides[0] == H * W * pitch
    if needs_staging(pixels, source) or not is_even:
        staged = Workspace(binding).take(pixels.staged_shape)
        work.append(stage_work(pixels, source, staged, binding.num_threads))
        address, pitch = staged.ctypes.data, staged.strides[2]
        keeps.append(staged)
    places, padded = int(np.prod(layer.kernel_size_nd)), -(-C // PANEL_CHANNELS) * PANEL_CHANNELS
    weights, bias = binding.weight("weights", (places, padded)), binding.weight("bias", (padded,))
    products = Products(address, pitch, 0, weights.ctypes.data, weights.strides[0])
    more, kept = collect_work(layer, binding, source, output, products, bias)
    work += more
    keeps += kept
    return NativeStep(binding.group.name, work, keeps)
