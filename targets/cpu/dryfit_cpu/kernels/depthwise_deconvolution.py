"""Depthwise deconvolution: as many groups as channels, each output the sum of what its neighbours lay on it."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS
from dryfit_cpu.kernels import deconvolution, epilogues
from dryfit_cpu.kernels.collection import Products, can_collect, collect_work, fuses, pixels_of
from dryfit_cpu.kernels.constants import constant_weights, filled_channels
from dryfit_cpu.kernels.operands import Operand, Workspace, bound_array, fp32_bytes, require_extents
from dryfit_cpu.kernels.window_products import needs_staging, stage_work
from dryfit_cpu.steps import NativeStep, Work


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


@kernel(
    "cpu.depthwise_deconvolution",
    kinds="deconvolution",
    data_types=FLOATS,
    accepts=_accepts,
    fuses=fuses,
    pack=_pack,
    packed_parameters=("kernel", "bias", "scale", "shift", "power"),
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
    priority=10,
)
def deconvolve_channels(binding: Binding) -> NativeStep:
    """A step that brings the input into order where it is not, and deconvolves each channel."""
    layer = cast("Deconvolution", binding.group.main)
    source = Operand.of(bound_array(binding, cast("Tensor", layer.inputs[0]).name))
    output = Operand.of(bound_array(binding, binding.group.outputs[0].name))
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
