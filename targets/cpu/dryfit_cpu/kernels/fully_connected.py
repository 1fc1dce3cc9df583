"""Fully connected layers, of real and of quantized values: a convolution whose window is the whole image."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.constants import constant_weights, has_constant_weights
from dryfit_cpu.kernels.epilogues import weighted_kernel
from dryfit_cpu.kernels.integer_products import bind_integer_layer, integer_workspace_bytes
from dryfit_cpu.kernels.integer_staging import weight_runs
from dryfit_cpu.kernels.integer_weights import (
    accepted_weights,
    integer_weights,
    pack_integer_panels,
    packed_runs,
)
from dryfit_cpu.kernels.matrix_products import pack_panels
from dryfit_cpu.kernels.operands import fp32_bytes
from dryfit_cpu.kernels.requantization import (
    integer_kernel,
    requantization_of,
)
from dryfit_cpu.kernels.window_products import bind_window
from dryfit_cpu.kernels.windows import WindowGeometry


def _input(group: LayerGroup) -> Tensor:
    return cast("Tensor", group.main.inputs[0])


def image_window(x: TensorSpec, outputs: int) -> WindowGeometry:
    """The window over a whole image."""
    N, C, H, W = x.shape
    return WindowGeometry((N, C, H, W), (N, outputs, 1, 1), (H, W), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def _pack(group: LayerGroup) -> dict[str, Array]:
    layer = cast("FullyConnected", group.main)
    kernel, bias = constant_weights(layer)
    _, C, H, W = _input(group).shape
    weights, offsets = epilogues.folded(group, kernel.reshape(layer.num_output_channels, C, H, W), bias)
    weights = np.moveaxis(weights, 1, -1)
    return pack_panels(weights.reshape(weights.shape[0], -1), offsets, 1)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    shape = specs[_input(group).name].shape
    return (
        isinstance(layer, FullyConnected)
        and len(shape) == 4
        and min(shape[1:]) > 0
        and has_constant_weights(layer, specs)
        and epilogues.epilogue_of(group) is not None
    )


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del num_threads
    x = specs[_input(group).name]
    window = image_window(x, cast("FullyConnected", group.main).num_output_channels)
    pixel = 4 * x.shape[1]
    is_copied = x.dtype is not DataType.FLOAT or window.has_conflicts(pixel * x.shape[2] * x.shape[3], pixel)
    return fp32_bytes(window.staged_shape) if is_copied else 0


@weighted_kernel(
    "cpu.fully_connected",
    kinds="fully_connected",
    accepts=_accepts,
    fuses=epilogues.fuses,
    pack=_pack,
    workspace_bytes=_workspace_bytes,
)
def fully_connect(binding: Binding) -> NativeStep:
    """A step that sums over the image."""
    x = _input(binding.group)
    window = image_window(binding.specs[x.name], cast("FullyConnected", binding.group.main).num_output_channels)
    return bind_window(binding, window, x.name)


def _pack_integers(group: LayerGroup) -> dict[str, Array]:
    weights = accepted_weights(group)
    _, C, H, W = cast("Tensor", group.main.inputs[0]).shape
    kernel = np.moveaxis(weights.kernel.reshape(-1, C, H, W), 1, -1)
    runs = packed_runs(kernel.reshape(kernel.shape[0], *weight_runs(C, (H, W), (1, 1), 1)))
    return pack_integer_panels(group, runs)


def _accepts_integers(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    shape = specs[cast("Tensor", layer.inputs[0]).name].shape
    return (
        isinstance(layer, FullyConnected)
        and len(shape) == 4
        and min(shape[1:]) > 0
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


@integer_kernel(
    "cpu.integer_fully_connected",
    kinds="fully_connected",
    accepts=_accepts_integers,
    pack=_pack_integers,
    packs_constants=True,
    workspace_bytes=lambda group, specs, threads: integer_workspace_bytes(_window(group, specs)),
    layout=HostLayout.CHANNELS_LAST,
)
def connect_integers(binding: Binding) -> NativeStep:
    """A step that sums over the image."""
    return bind_integer_layer(binding, _window(binding.group, binding.specs))


def _window(group: LayerGroup, specs: Specs) -> WindowGeometry:
    layer = cast("FullyConnected", group.main)
    return image_window(specs[cast("Tensor", layer.inputs[0]).name], layer.num_output_channels)
