"""Fully connected layers: a convolution whose window is the whole image."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.constants import constant_weights, has_constant_weights
from dryfit_cpu.kernels.matrix_products import pack_panels
from dryfit_cpu.kernels.operands import fp32_bytes
from dryfit_cpu.kernels.window_products import bind_window
from dryfit_cpu.kernels.windows import Window
from dryfit_cpu.steps import NativeStep


def _input(group: LayerGroup) -> Tensor:
    return cast("Tensor", group.main.inputs[0])


def image_window(x: TensorSpec, outputs: int) -> Window:
    """The window over a whole image."""
    N, C, H, W = x.shape
    return Window((N, C, H, W), (N, outputs, 1, 1), (H, W), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


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


@kernel(
    "cpu.fully_connected",
    kinds="fully_connected",
    data_types=FLOATS,
    accepts=_accepts,
    fuses=epilogues.fuses,
    pack=_pack,
    packed_parameters=("kernel", "bias", "scale", "shift", "power"),
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def fully_connect(binding: Binding) -> NativeStep:
    """A step that sums over the image."""
    x = _input(binding.group)
    window = image_window(binding.specs[x.name], cast("FullyConnected", binding.group.main).num_output_channels)
    return bind_window(binding, window, x.name)
