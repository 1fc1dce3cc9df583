"""Fully connected layers of quantized values: a convolution whose window is the whole image."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.kernels.fully_connected import image_window
from dryfit_cpu.kernels.integer_products import bind_integer_layer, integer_workspace_bytes
from dryfit_cpu.kernels.integer_stages import SERVED_TYPES
from dryfit_cpu.kernels.integer_staging import weight_runs
from dryfit_cpu.kernels.integer_weights import (
    accepted_weights,
    integer_weights,
    pack_integer_panels,
    packed_runs,
)
from dryfit_cpu.kernels.requantization import (
    requantization_of,
    takes_requantized,
)
from dryfit_cpu.kernels.windows import Window
from dryfit_cpu.steps import NativeStep


def _pack(group: LayerGroup) -> dict[str, Array]:
    weights = accepted_weights(group)
    _, C, H, W = cast("Tensor", group.main.inputs[0]).shape
    kernel = np.moveaxis(weights.kernel.reshape(-1, C, H, W), 1, -1)
    runs = packed_runs(kernel.reshape(kernel.shape[0], *weight_runs(C, (H, W), (1, 1), 1)))
    return pack_integer_panels(group, runs)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    shape = specs[cast("Tensor", layer.inputs[0]).name].shape
    return (
        isinstance(layer, FullyConnected)
        and len(shape) == 4
        and min(shape[1:]) > 0
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


@kernel(
    "cpu.integer_fully_connected",
    kinds="fully_connected",
    data_types=SERVED_TYPES,
    accepts=_accepts,
    fuses=takes_requantized,
    absorbs_dequantize=True,
    pack=_pack,
    packs_constants=True,
    workspace_bytes=lambda group, specs, threads: integer_workspace_bytes(_window(group, specs)),
    layout=HostLayout.CHANNELS_LAST,
)
def connect_integers(binding: Binding) -> NativeStep:
    """A step that sums over the image."""
    return bind_integer_layer(binding, _window(binding.group, binding.specs))


def _window(group: LayerGroup, specs: Specs) -> Window:
    layer = cast("FullyConnected", group.main)
    return image_window(specs[cast("Tensor", layer.inputs[0]).name], layer.num_output_channels)
