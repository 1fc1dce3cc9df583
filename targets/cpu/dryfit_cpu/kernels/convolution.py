"""Convolution over one to three axes, any window, stride, dilation, padding and groups; and fully connected layers.

These are a convolution whose window is the whole image. Of quantized images and volumes sums are exact, and requantized
in the same pass.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution, FullyConnected
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit.target.tactics import Tactics
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.branches import summed_weights
from dryfit_cpu.kernels.constants import WeightedSum, has_constant_weights
from dryfit_cpu.kernels.dilated_windows import (
    bind_places,
    bind_rectangles,
    is_mostly_padding,
    rectangles,
)
from dryfit_cpu.kernels.epilogues import weighted_kernel
from dryfit_cpu.kernels.integer_products import bind_integer_layer, integer_workspace_bytes
from dryfit_cpu.kernels.integer_staging import weight_runs
from dryfit_cpu.kernels.integer_weights import (
    REPEATED,
    UNIT,
    accepted_weights,
    in_bytes,
    integer_weights,
    pack_integer_panels,
    packed_runs,
)
from dryfit_cpu.kernels.matrix_products import pack_panels
from dryfit_cpu.kernels.operands import fp32_bytes, input_of
from dryfit_cpu.kernels.requantization import requantization_of, weighted_integer_kernel
from dryfit_cpu.kernels.window_products import bind_window
from dryfit_cpu.kernels.windows import WindowGeometry, pair
from dryfit_cpu.tactics import product_tactics


def window_of(group: LayerGroup, specs: Specs) -> WindowGeometry:
    """The geometry of a group's convolution; that of a fully connected layer is a window over the whole image."""
    layer, x = group.main, specs[input_of(group).name]
    if not isinstance(layer, FullyConnected):
        return WindowGeometry.of(cast("Convolution", layer), x, specs[layer.outputs[0].name])
    N, C, H, W = x.shape
    output = (N, layer.num_output_channels, 1, 1)
    return WindowGeometry((N, C, H, W), output, (H, W), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def _has_image(group: LayerGroup, specs: Specs) -> bool:
    """Whether a layer is a convolution, or is connected to images."""
    shape = specs[input_of(group).name].shape
    is_image = isinstance(group.main, FullyConnected) and len(shape) == 4 and min(shape[1:]) > 0
    return is_image or isinstance(group.main, Convolution)


def _channels_last(group: LayerGroup, kernel: Array) -> Array:
    """`[K, *window, C / groups]`: in the order in which a pixel's values lie in memory, slice, row, column, channel."""
    if isinstance(group.main, FullyConnected):
        kernel = kernel.reshape(len(kernel), *input_of(group).shape[1:])
    return np.moveaxis(kernel, 1, -1)


def _groups(group: LayerGroup) -> int:
    return group.main.num_groups if isinstance(group.main, Convolution) else 1


def _pack(group: LayerGroup) -> dict[str, Array]:
    """The kernel as panels, with the scales of the group folded in."""
    weights, bias = epilogues.folded(group, *summed_weights(group))
    return pack_panels(_channels_last(group, weights).reshape(len(weights), -1), bias, _groups(group))


def accepts(group: LayerGroup, specs: Specs) -> bool:
    """Weights that are known at build time, and an epilogue of the right form."""
    has_weights = _has_image(group, specs) and has_constant_weights(cast("WeightedSum", group.main), specs)
    return has_weights and epilogues.epilogue_of(group) is not None


def workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    """Room for the staged input and the gathered windows."""
    window, x = window_of(group, specs), specs[input_of(group).name]
    # Narrow types are staged even where it is not padded; other layouts than the kernel's bring their own memory.
    is_copied = x.dtype is not DataType.FLOAT and not window.is_padded
    if isinstance(group.main, FullyConnected):
        pixel = 4 * x.shape[1]
        is_copied |= window.has_conflicts(pixel * x.shape[2] * x.shape[3], pixel)
    return window.workspace_bytes + (fp32_bytes(window.staged_shape) if is_copied else 0)


def _tactics(group: LayerGroup, specs: Specs) -> Tactics:
    """The ways through pixels, words of k and output channels."""
    return product_tactics(*_sizes(window_of(group, specs)), has_blocks=True)


def _integer_tactics(group: LayerGroup, specs: Specs) -> Tactics:
    pixels, depth, outputs = _sizes(window_of(group, specs))
    return product_tactics(pixels, depth * current_tier().staged_bytes // UNIT, outputs, has_blocks=False)


def _sizes(window: WindowGeometry) -> tuple[int, int, int]:
    """Pixels, values that each sums over, and output channels of a group."""
    N, K, H, W = window.output
    places = window.slices.kernel * window.kernel[0] * window.kernel[1]
    return N * H * W, window.input[1] // window.groups * places, K // window.groups


def _bind(binding: Binding) -> NativeStep:
    """A step that convolves, or sums over the image."""
    window, source = window_of(binding.group, binding.specs), input_of(binding.group).name
    return (bind_places if is_mostly_padding(window) else bind_window)(binding, window, source)


convolve, fully_connect = (
    weighted_kernel(
        f"cpu.{kind}",
        kinds=kind,
        accepts=accepts,
        fuses=epilogues.fuses,
        pack=_pack,
        workspace_bytes=workspace_bytes,
        tactics=_tactics,
    )(_bind)
    for kind in ("convolution", "fully_connected")
)


def _pack_integers(group: LayerGroup) -> dict[str, Array]:
    kernel, layer = _channels_last(group, accepted_weights(group).kernel), group.main
    groups, dilation = _groups(group), (1, 1)
    window = kernel.shape[1:-1]
    if isinstance(layer, Convolution):
        window, dilation = layer.kernel_size_nd, pair(layer.dilation_nd)
    _, length = weight_runs(kernel.shape[-1] * groups, pair(window), dilation, groups)
    runs = packed_runs(kernel.reshape(len(kernel), -1, length))
    if not accepted_weights(group).has_zero_points:
        return pack_integer_panels(group, runs, groups)
    pixel = kernel.shape[-1]
    runs, repeated = in_bytes(runs, pixel // UNIT if pixel % UNIT == 0 else runs.shape[2] // UNIT)
    return {**pack_integer_panels(group, runs, groups), REPEATED: repeated}


def _accepts_integers(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    is_empty = isinstance(layer, Convolution) and 0 in specs[layer.outputs[0].name].shape
    weights = integer_weights(group) if _has_image(group, specs) and not is_empty else None
    if weights is None or requantization_of(group) is None:
        return False
    # A register block for each single channel would take longer than real numbers do.
    return not (weights.has_zero_points and _groups(group) > 1 and weights.kernel.shape[1] == 1)


def _bind_integers(binding: Binding) -> NativeStep:
    """A step that convolves, or sums over the image."""
    window = window_of(binding.group, binding.specs)
    parts = rectangles(window)
    return bind_rectangles(binding, window, parts) if parts else bind_integer_layer(binding, window)


convolve_integers, connect_integers = (
    weighted_integer_kernel(
        f"cpu.integer_{kind}",
        kinds=kind,
        accepts=_accepts_integers,
        pack=_pack_integers,
        workspace_bytes=lambda group, specs, threads: integer_workspace_bytes(window_of(group, specs)),
        tactics=_integer_tactics,
    )(_bind_integers)
    for kind in ("convolution", "fully_connected")
)
