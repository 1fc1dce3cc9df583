"""Deconvolution over one to three spatial axes, any window, stride, dilation, padding and groups.

It is convolutions with parts of the window, each of which gives some of the outputs; see `transposed_windows.py`. They
read one copy of the input, with as much padding as the one that reads furthest needs.

Quantized images and volumes are deconvolved in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.tensor import Shape
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.constants import constant_weights, has_constant_weights
from dryfit_cpu.kernels.dense_operands import DenseOperands, Images
from dryfit_cpu.kernels.epilogues import weighted_kernel
from dryfit_cpu.kernels.integer_depthwise import bind_integer_channels, pack_integer_channels, sums_are_exact
from dryfit_cpu.kernels.integer_products import bind_integer_window, integer_workspace_bytes
from dryfit_cpu.kernels.integer_staging import weight_runs
from dryfit_cpu.kernels.integer_weights import accepted_weights, integer_weights, pack_integer_panels, packed_runs
from dryfit_cpu.kernels.matrix_products import pack_panels
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, fp32_bytes, input_of
from dryfit_cpu.kernels.requantization import (
    GroupRequantization,
    bound_requantization,
    requantization_of,
    weighted_integer_kernel,
)
from dryfit_cpu.kernels.transposed_windows import Phase, parts_of, phases_of
from dryfit_cpu.kernels.window_products import WindowInput, bind_product, needs_staging, stage_work
from dryfit_cpu.kernels.windows import Slices, WindowGeometry, images_of

_NO_PADDING = ((0, 0), (0, 0))


def folded_kernel(group: LayerGroup) -> tuple[Array, Array]:
    """FP32 weights `[K, C / groups, *window]` and bias `[K]`, with the scales of the group multiplied in."""
    layer = cast("Deconvolution", group.main)
    kernel, bias = constant_weights(layer)
    G, K, (C, _, *window) = layer.num_groups, layer.num_output_maps, kernel.shape
    by_output = kernel.reshape(G, C // G, K // G, *window).swapaxes(1, 2).reshape(K, C // G, *window)
    return epilogues.folded(group, by_output, bias)


def _pack(group: LayerGroup) -> dict[str, Array]:
    layer, packed = cast("Deconvolution", group.main), dict[str, Array]()
    weights, bias = folded_kernel(group)
    for part in parts_of(layer):
        values = np.moveaxis(part.kernel(weights), 1, -1)
        panels = pack_panels(values.reshape(len(values), -1), bias, layer.num_groups)
        packed |= {f"panels{part.name}": panels["panels"], "bias": panels["bias"]}
    return packed


def accepts(group: LayerGroup, specs: Specs) -> bool:
    """Weights that are known at build time, and an epilogue of the right form."""
    layer = group.main
    return (
        isinstance(layer, Deconvolution)
        and has_constant_weights(layer, specs)
        and epilogues.epilogue_of(group) is not None
    )


def _margin(shape: Shape, phases: Sequence[Phase]) -> WindowGeometry:
    """A window of one pixel over images of a shape, with the padding that the convolutions need."""
    images = images_of(shape)
    sides = [(phase.window.slices.padding, *phase.window.padding) for phase in phases]
    slices, rows, columns = (
        (max((one[axis][0] for one in sides), default=0), max((one[axis][1] for one in sides), default=0))
        for axis in range(3)
    )
    return WindowGeometry(images, images, (1, 1), (1, 1), (1, 1), (rows, columns), 1, Slices(padding=slices))


def _staged(margin: WindowGeometry, source: Array, workspace: Workspace, threads: int) -> tuple[Array, list[Work]]:
    """Images with that padding, channels last, and the work that copies them; as they are where that will do."""
    operand = ImageOperand.of(source)
    if not needs_staging(margin, operand):
        return source, []
    copy = workspace.take(margin.staged_shape)
    work = stage_work(margin, operand, copy, threads)
    return np.moveaxis(copy[..., : source.shape[1]], -1, 1), [work]


def _seen(phase: Phase, margin: WindowGeometry, staged: Array) -> tuple[WindowGeometry, Array]:
    """What a convolution reads of the copy, and its geometry there, where nothing is padded any more."""
    window = phase.window
    N, _, H, W = window.input
    margins, sides = (margin.slices.padding, *margin.padding), (window.slices.padding, *window.padding)
    axes = zip(margins, phase.first_input, sides, (N, H, W), strict=True)
    images, rows, columns = (
        slice(room + first - pre, room + first + extent + post) for (room, _), first, (pre, post), extent in axes
    )
    seen = staged[images, :, rows, columns]
    slices = attrs.evolve(window.slices, padding=(0, 0))
    return attrs.evolve(window, input=seen.shape, padding=_NO_PADDING, slices=slices), seen


def _workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    """Room for the copy, and for the windows that one convolution after the other gathers."""
    phases, x = phases_of(group, specs), specs[input_of(group).name]
    margin = _margin(x.shape, phases)
    staged = fp32_bytes(margin.staged_shape) if margin.is_padded or x.dtype is not DataType.FLOAT else 0
    shapes = [phase.window.windows_shape for phase in phases]
    return staged + max((fp32_bytes(shape) for shape in shapes if shape is not None), default=0)


@weighted_kernel(
    "cpu.deconvolution",
    kinds="deconvolution",
    accepts=accepts,
    fuses=epilogues.fuses,
    pack=_pack,
    workspace_bytes=_workspace_bytes,
)
def deconvolve(binding: Binding) -> NativeStep:
    """A step of all convolutions, of images or of one volume after the other."""
    epilogue, threads = epilogues.required_epilogue(binding), binding.num_threads
    phases, name = phases_of(binding.group, binding.specs), input_of(binding.group).name
    residual = epilogue.residual.name if epilogue.residual is not None else ""
    margin, made = _margin(binding.specs[name].shape, phases), []
    for images in Images.of(binding, name, residual).batches():
        workspace, dense = (
            Workspace(binding),
            DenseOperands.between(images.output, images.residual, threads, np.float32),
        )
        staged, work = _staged(margin, images.source, workspace, threads)
        steps = [NativeStep(binding.group.name, work, [staged])]
        for phase in phases:
            window, seen = _seen(phase, margin, staged)
            read = WindowInput.of(window, seen, workspace.branch(), threads)
            target = ImageOperand.of(phase.outputs(dense.output.array))
            added = ImageOperand.of(phase.outputs(dense.residual.array)) if dense.residual is not None else None
            steps.append(bind_product(binding, window, read, target, added, epilogue, phase.part.name))
        made.append(dense.around(steps))
    return NativeStep.joined(binding.group.name, made)


_BindWindow = Callable[[Binding, WindowGeometry, Images, GroupRequantization, str], NativeStep]


def _pack_integers(group: LayerGroup) -> dict[str, Array]:
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


def _accepts_integers(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if (
        not isinstance(layer, Deconvolution)
        or 0 in specs[layer.outputs[0].name].shape + specs[input_of(group).name].shape
    ):
        return False
    weights = integer_weights(group)
    return weights is not None and not weights.has_zero_points and requantization_of(group) is not None


def _accepts_channels(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Deconvolution) or not _accepts_integers(group, specs) or len(layer.kernel_size_nd) > 2:
        return False
    channels = specs[input_of(group).name].shape[1]
    return layer.num_groups == channels == layer.num_output_maps and sums_are_exact(integer_weights(group))


def _integer_workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    """That of the convolution which takes most: they run one after the other."""
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


@weighted_integer_kernel(
    "cpu.integer_deconvolution",
    kinds="deconvolution",
    accepts=_accepts_integers,
    pack=_pack_integers,
    workspace_bytes=_integer_workspace_bytes,
)
def deconvolve_integers(binding: Binding) -> NativeStep:
    """A step that deconvolves."""
    return _bind(binding, bind_integer_window)


@weighted_integer_kernel(
    "cpu.integer_depthwise_deconvolution",
    kinds="deconvolution",
    accepts=_accepts_channels,
    pack=_pack_channels,
    priority=10,
)
def deconvolve_integer_channels(binding: Binding) -> NativeStep:
    """A step that deconvolves each channel."""
    return _bind(binding, bind_integer_channels)
