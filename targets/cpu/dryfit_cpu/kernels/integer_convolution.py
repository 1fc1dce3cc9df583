"""Convolution of quantized images and volumes: exact integer sums, requantized in the same pass."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.layers.convolution import Convolution
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.kernels.integer_products import bind_integer_layer, integer_workspace_bytes
from dryfit_cpu.kernels.integer_staging import weight_runs
from dryfit_cpu.kernels.integer_weights import (
    accepted_weights,
    integer_weights,
    pack_integer_panels,
    packed_runs,
)
from dryfit_cpu.kernels.requantization import (
    integer_kernel,
    requantization_of,
)
from dryfit_cpu.kernels.windows import WindowGeometry, pair


def _pack(group: LayerGroup) -> dict[str, Array]:
    layer, weights = cast("Convolution", group.main), accepted_weights(group)
    kernel = np.moveaxis(weights.kernel, 1, -1)
    channels = kernel.shape[-1] * layer.num_groups
    _, length = weight_runs(channels, pair(layer.kernel_size_nd), pair(layer.dilation_nd), layer.num_groups)
    runs = packed_runs(kernel.reshape(kernel.shape[0], -1, length))
    return pack_integer_panels(group, runs, layer.num_groups)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    return (
        isinstance(layer, Convolution)
        and 0 not in specs[layer.outputs[0].name].shape
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


@integer_kernel(
    "cpu.integer_convolution",
    kinds="convolution",
    accepts=_accepts,
    pack=_pack,
    packs_constants=True,
    workspace_bytes=lambda group, specs, threads: integer_workspace_bytes(window_of(group, specs)),
    layout=HostLayout.CHANNELS_LAST,
)
def convolve_integers(binding: Binding) -> NativeStep:
    """A step that convolves."""
    return bind_integer_layer(binding, window_of(binding.group, binding.specs))


def window_of(group: LayerGroup, specs: Specs) -> WindowGeometry:
    """The geometry of a group's convolution."""
    layer = cast("Convolution", group.main)
    x, y = layer.inputs[0], layer.outputs[0]
    return WindowGeometry.of(layer, specs[x.name if x is not None else ""], specs[y.name])
