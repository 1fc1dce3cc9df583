"""Convolution over one to three spatial axes, any window, stride, dilation, padding and groups."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.constants import constant_weights, has_constant_weights
from dryfit_cpu.kernels.epilogues import weighted_kernel
from dryfit_cpu.kernels.matrix_products import pack_panels
from dryfit_cpu.kernels.operands import fp32_bytes
from dryfit_cpu.kernels.window_products import bind_window
from dryfit_cpu.kernels.windows import WindowGeometry


def _input(group: LayerGroup) -> Tensor:
    return cast("Tensor", group.main.inputs[0])


def _window(group: LayerGroup, specs: Specs) -> WindowGeometry:
    layer = cast("Convolution", group.main)
    return WindowGeometry.of(layer, specs[_input(group).name], specs[layer.outputs[0].name])


def pack(group: LayerGroup) -> dict[str, Array]:
    """The kernel as panels, with the scales of the group folded in.

    A panel's rows are in the order in which a pixel's values lie in memory: slice, row, column, channel.
    """
    layer = cast("Convolution", group.main)
    weights, bias = epilogues.folded(group, *constant_weights(layer))
    weights = np.moveaxis(weights, 1, -1)
    return pack_panels(weights.reshape(weights.shape[0], -1), bias, layer.num_groups)


def accepts(group: LayerGroup, specs: Specs) -> bool:
    """Weights that are known at build time, and an epilogue of the right form."""
    layer = group.main
    return (
        isinstance(layer, Convolution)
        and has_constant_weights(layer, specs)
        and epilogues.epilogue_of(group) is not None
    )


def workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """Room for the staged input and the gathered windows."""
    del num_threads
    window, x = _window(group, specs), specs[_input(group).name]
    # Narrow types are staged even where it is not padded; other layouts than the kernel's bring their own memory.
    widened = fp32_bytes(window.staged_shape) if x.dtype is not DataType.FLOAT and not window.is_padded else 0
    return window.workspace_bytes + widened


@weighted_kernel(
    "cpu.convolution",
    kinds="convolution",
    accepts=accepts,
    fuses=epilogues.fuses,
    pack=pack,
    workspace_bytes=workspace_bytes,
)
def convolve(binding: Binding) -> NativeStep:
    """A step that convolves."""
    return bind_window(binding, _window(binding.group, binding.specs), _input(binding.group).name)
