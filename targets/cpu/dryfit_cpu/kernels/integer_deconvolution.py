"""Deconvolution of quantized images: convolutions with parts of the window, each of which gives some of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.kernels.images import Images
from dryfit_cpu.kernels.integer_depthwise import (
    bind_integer_channels,
    pack_integer_channels,
    sums_are_exact,
)
from dryfit_cpu.kernels.integer_products import bind_integer_window, integer_workspace_bytes
from dryfit_cpu.kernels.integer_stages import SERVED_TYPES
from dryfit_cpu.kernels.integer_staging import weight_runs
from dryfit_cpu.kernels.integer_weights import accepted_weights, integer_weights, pack_integer_panels, packed_runs
from dryfit_cpu.kernels.requantization import (
    Requantization,
    bound_requantization,
    requantization_of,
    takes_requantized,
)
from dryfit_cpu.kernels.transposed_windows import Phase, Places, phase_of, places_of
from dryfit_cpu.kernels.windows import Window
from dryfit_cpu.steps import NativeStep

_BindWindow = Callable[[Binding, Window, Images, Requantization, str], NativeStep]


def _parts(layer: Deconvolution, weights: Array) -> Iterator[tuple[str, tuple[Places, Places], Array]]:
    """For each convolution the end of its weights' names, its places, and its kernel `[K, C / groups, rows, columns]`.

    Where no place falls on an output there is one of zeros.
    """
    whole = weights.reshape(*weights.shape[:2], -1, layer.kernel_size_nd[-1])
    for number, places in enumerate(places_of(layer)):
        rows, columns = (list(axis.places) for axis in places)
        part = whole[:, :, rows][..., columns]
        if not part.size:
            part = np.zeros((*whole.shape[:2], max(len(rows), 1), max(len(columns), 1)), np.int8)
        yield f"_{number}", places, part


def _phases(group: LayerGroup, specs: Specs) -> list[tuple[str, Phase]]:
    """The convolutions that have outputs, with the ends of their weights' names."""
    layer = cast("Deconvolution", group.main)
    x, y = (specs[cast("Tensor", tensor).name].shape for tensor in (layer.inputs[0], layer.outputs[0]))
    found = [(f"_{number}", phase_of(layer, places, x, y)) for number, places in enumerate(places_of(layer))]
    return [(part, phase) for part, phase in found if phase is not None]


def _pack(group: LayerGroup) -> dict[str, Array]:
    layer, packed = cast("Deconvolution", group.main), dict[str, Array]()
    for part, places, values in _parts(layer, accepted_weights(group).kernel):
        K, C, *window = values.shape
        dilation = (places[0].dilation, places[1].dilation)
        form = weight_runs(C * layer.num_groups, (window[0], window[1]), dilation, layer.num_groups)
        runs = packed_runs(np.moveaxis(values, 1, -1).reshape(K, *form))
        packed |= pack_integer_panels(group, runs, layer.num_groups, part)
    return packed


def _pack_channels(group: LayerGroup) -> dict[str, Array]:
    layer, packed = cast("Deconvolution", group.main), dict[str, Array]()
    for part, _, values in _parts(layer, accepted_weights(group).kernel):
        packed |= pack_integer_channels(group, values, part)
    return packed


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    return (
        isinstance(layer, Deconvolution)
        and len(layer.kernel_size_nd) <= 2
        and 0 not in specs[layer.outputs[0].name].shape
        and 0 not in specs[cast("Tensor", layer.inputs[0]).name].shape
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


def _accepts_channels(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Deconvolution) or not _accepts(group, specs):
        return False
    channels = specs[cast("Tensor", layer.inputs[0]).name].shape[1]
    return layer.num_groups == channels == layer.num_output_maps and sums_are_exact(integer_weights(group))


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """That of the convolution which takes most: they run one after the other."""
    del num_threads
    return max(integer_workspace_bytes(phase.window) for _, phase in _phases(group, specs))


def _bind(binding: Binding, bind: _BindWindow) -> NativeStep:
    """A step of all convolutions."""
    steps = bound_requantization(binding)
    images = Images.of(binding, accepted_weights(binding.group).source.tensor.name, steps.residual)
    images = Images(
        _image(images.source), _image(images.output), None if images.residual is None else _image(images.residual)
    )
    made = []
    for part, phase in _phases(binding.group, binding.specs):
        rows, columns = (slice(first, None) for first in phase.first_input)
        source = images.source[:, :, rows, columns]
        outputs = [
            None
            if array is None
            else array[:, :, phase.first_output[0] :: phase.step[0], phase.first_output[1] :: phase.step[1]]
            for array in (images.output, images.residual)
        ]
        made.append(bind(binding, phase.window, Images(source, cast("Array", outputs[0]), outputs[1]), steps, part))
    return NativeStep.joined(binding.group.name, made)


def _image(array: Array) -> Array:
    """An array with rows and columns."""
    return array[:, :, None, :] if array.ndim == 3 else array


@kernel(
    "cpu.integer_deconvolution",
    kinds="deconvolution",
    data_types=SERVED_TYPES,
    accepts=_accepts,
    fuses=takes_requantized,
    absorbs_dequantize=True,
    pack=_pack,
    packs_constants=True,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def deconvolve_integers(binding: Binding) -> NativeStep:
    """A step that deconvolves."""
    return _bind(binding, bind_integer_window)


@kernel(
    "cpu.integer_depthwise_deconvolution",
    kinds="deconvolution",
    data_types=SERVED_TYPES,
    accepts=_accepts_channels,
    fuses=takes_requantized,
    absorbs_dequantize=True,
    pack=_pack_channels,
    packs_constants=True,
    layout=HostLayout.CHANNELS_LAST,
    priority=10,
)
def deconvolve_integer_channels(binding: Binding) -> NativeStep:
    """A step that deconvolves each channel."""
    return _bind(binding, bind_integer_channels)
