"""Deconvolution of quantized images and volumes: convolutions with parts of the window, each of which gives outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import numpy as np

from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.kernels.dense_operands import Images
from dryfit_cpu.kernels.integer_depthwise import (
    bind_integer_channels,
    pack_integer_channels,
    sums_are_exact,
)
from dryfit_cpu.kernels.integer_products import bind_integer_window, integer_workspace_bytes
from dryfit_cpu.kernels.integer_staging import weight_runs
from dryfit_cpu.kernels.integer_weights import accepted_weights, integer_weights, pack_integer_panels, packed_runs
from dryfit_cpu.kernels.requantization import (
    GroupRequantization,
    bound_requantization,
    integer_kernel,
    requantization_of,
)
from dryfit_cpu.kernels.transposed_windows import parts_of, phases_of
from dryfit_cpu.kernels.windows import WindowGeometry

_BindWindow = Callable[[Binding, WindowGeometry, Images, GroupRequantization, str], NativeStep]


def _pack(group: LayerGroup) -> dict[str, Array]:
    layer, packed, weights = cast("Deconvolution", group.main), dict[str, Array](), accepted_weights(group).kernel
    for part in parts_of(layer):
        values = np.moveaxis(part.kernel(weights), 1, -1)
        K, _, rows, columns, C = values.shape
        dilation = (part.axes[1].dilation, part.axes[2].dilation)
        _, length = weight_runs(C * layer.num_groups, (rows, columns), dilation, layer.num_groups)
        packed |= pack_integer_panels(group, packed_runs(values.reshape(K, -1, length)), layer.num_groups, part.name)
    return packed


def _pack_channels(group: LayerGroup) -> dict[str, Array]:
    layer, packed, weights = cast("Deconvolution", group.main), dict[str, Array](), accepted_weights(group).kernel
    for part in parts_of(layer):
        packed |= pack_integer_channels(group, part.kernel(weights)[:, :, 0], part.name)
    return packed


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    return (
        isinstance(layer, Deconvolution)
        and 0 not in specs[layer.outputs[0].name].shape
        and 0 not in specs[cast("Tensor", layer.inputs[0]).name].shape
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


def _accepts_channels(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Deconvolution) or not _accepts(group, specs) or len(layer.kernel_size_nd) > 2:
        return False
    channels = specs[cast("Tensor", layer.inputs[0]).name].shape[1]
    return layer.num_groups == channels == layer.num_output_maps and sums_are_exact(integer_weights(group))


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """That of the convolution which takes most: they run one after the other."""
    del num_threads
    return max(integer_workspace_bytes(phase.window) for phase in phases_of(group, specs))


def _bind(binding: Binding, bind: _BindWindow) -> NativeStep:
    """A step of all convolutions."""
    steps, phases = bound_requantization(binding), phases_of(binding.group, binding.specs)
    made = []
    for images in Images.of(binding, accepted_weights(binding.group).source.tensor.name, steps.residual).batches():
        for phase in phases:
            residual = phase.outputs(images.residual) if images.residual is not None else None
            part = attrs.evolve(
                images, source=phase.inputs(images.source), output=phase.outputs(images.output), residual=residual
            )
            made.append(bind(binding, phase.window, part, steps, phase.part.name))
    return NativeStep.joined(binding.group.name, made)


@integer_kernel(
    "cpu.integer_deconvolution",
    kinds="deconvolution",
    accepts=_accepts,
    pack=_pack,
    packs_constants=True,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def deconvolve_integers(binding: Binding) -> NativeStep:
    """A step that deconvolves."""
    return _bind(binding, bind_integer_window)


@integer_kernel(
    "cpu.integer_depthwise_deconvolution",
    kinds="deconvolution",
    accepts=_accepts_channels,
    pack=_pack_channels,
    packs_constants=True,
    layout=HostLayout.CHANNELS_LAST,
    priority=10,
)
def deconvolve_integer_channels(binding: Binding) -> NativeStep:
    """A step that deconvolves each channel."""
    return _bind(binding, bind_integer_channels)
