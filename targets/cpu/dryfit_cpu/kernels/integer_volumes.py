"""Convolution of quantized volumes: with three spatial axes, or more exactly with slices of images.

A volume is staged slice by slice, with slices of padding before and behind. An output pixel then sums over the runs of
its window in several slices, as it does in one slice over several rows; and the slices of a volume are to the register
block what the images of a batch are.
"""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.integer_products import Images, Input, Panels, bind_integer_product
from dryfit_cpu.kernels.integer_stages import SERVED_TYPES
from dryfit_cpu.kernels.integer_staging import Staged, stage_integers_work, weight_runs
from dryfit_cpu.kernels.integer_weights import accepted_weights, integer_weights, pack_integer_panels, packed_runs
from dryfit_cpu.kernels.operands import Operand, Workspace, fp32_bytes
from dryfit_cpu.kernels.requantization import bound_requantization, requantization_of, takes_requantized
from dryfit_cpu.kernels.windows import Window, read_paddings
from dryfit_cpu.steps import NativeStep


@attrs.frozen
class _Volume:
    """The geometry of one volume.

    Attributes:
        window: in a slice; its images are the slices of the input and of the output.
        kernel, stride, dilation: along the slices.
        padding: slices before and behind.
    """

    window: Window
    kernel: int
    stride: int
    dilation: int
    padding: tuple[int, int]

    @classmethod
    def of(cls, layer: Convolution, x: TensorSpec, y: TensorSpec) -> _Volume:
        """The geometry for these shapes."""
        depth, rows, columns = read_paddings(layer, x.shape, y.shape)
        (_, *kernel), (_, *stride), (_, *dilation) = layer.kernel_size_nd, layer.stride_nd, layer.dilation_nd
        (_, C, D, H, W), (_, K, *outputs) = x.shape, y.shape
        window = Window(
            (D, C, H, W),
            (outputs[0], K, outputs[1], outputs[2]),
            (kernel[0], kernel[1]),
            (stride[0], stride[1]),
            (dilation[0], dilation[1]),
            (rows, columns),
            layer.num_groups,
        )
        return cls(window, layer.kernel_size_nd[0], layer.stride_nd[0], layer.dilation_nd[0], depth)

    @property
    def words(self) -> int:
        """Words of four bytes that it takes when it is staged."""
        slices = self.window.input[0] + sum(self.padding)
        return -(-slices * Staged.of(self.window).strides[0] // 4)


def _volume(group: LayerGroup, specs: Specs) -> _Volume:
    layer = cast("Convolution", group.main)
    return _Volume.of(layer, specs[cast("Tensor", layer.inputs[0]).name], specs[layer.outputs[0].name])


def _pack(group: LayerGroup) -> dict[str, Array]:
    layer = cast("Convolution", group.main)
    by_channel = np.moveaxis(accepted_weights(group).kernel, 1, -1)
    K, depth, rows, columns, C = by_channel.shape
    dilation = (layer.dilation_nd[1], layer.dilation_nd[2])
    count, length = weight_runs(C * layer.num_groups, (rows, columns), dilation, layer.num_groups)
    return pack_integer_panels(group, packed_runs(by_channel.reshape(K, depth * count, length)), layer.num_groups)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    return (
        isinstance(layer, Convolution)
        and len(layer.kernel_size_nd) == 3
        and 0 not in specs[layer.outputs[0].name].shape
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


@kernel(
    "cpu.integer_volume_convolution",
    kinds="convolution",
    data_types=SERVED_TYPES,
    accepts=_accepts,
    fuses=takes_requantized,
    absorbs_dequantize=True,
    pack=_pack,
    packs_constants=True,
    workspace_bytes=lambda group, specs, threads: fp32_bytes((_volume(group, specs).words,)),
)
def convolve_integer_volumes(binding: Binding) -> NativeStep:
    """A step that stages and convolves one volume after the other."""
    source, steps = accepted_weights(binding.group).source, bound_requantization(binding)
    images = Images.of(binding, source.tensor.name, steps.residual)
    volume = _volume(binding.group, binding.specs)
    window = volume.window
    memory = Workspace(binding).take((volume.words,))
    made = []
    for x, y, number in zip(images.source, images.output, range(len(images.output)), strict=True):
        residual = None if images.residual is None else _slices(images.residual[number])
        one = Images(_slices(x), _slices(y), residual)
        read = _staged(volume, one.source, memory, source.zero_point, binding.num_threads)
        made.append(bind_integer_product(binding, window, read, one, steps, Panels.of(binding, window, read)))
    work = [work for step in made for work in step.work]
    return NativeStep(binding.group.name, work, [binding, images, memory, *made])


def _slices(array: Array) -> Array:
    """A volume `[C, D, H, W]` as images `[D, C, H, W]`."""
    return array.swapaxes(0, 1)


def _staged(volume: _Volume, slices: Array, memory: Array, fill: int, threads: int) -> Input:
    """The slices of a volume in memory, and what an output pixel sums over there."""
    window, form = volume.window, Staged.of(volume.window)
    slice_bytes, row, pixel = form.strides
    D, C, H, W = window.input
    nothing = np.full(C, fill, np.int8)
    work, start, place = [], -volume.padding[0], memory.view(np.uint8)
    for count, is_inside in ((volume.padding[0], False), (D, True), (volume.padding[1], False)):
        here = place[(start + volume.padding[0]) * slice_bytes :]
        if count:
            shown = slices if is_inside else np.broadcast_to(nothing[:, None, None], (count, C, H, W))
            part = attrs.evolve(window, input=(count, C, H, W))
            staged = attrs.evolve(form, shape=(count, *form.shape[1:]))
            work.append(stage_integers_work(part, staged, Operand.of(shown), here, threads, fill=fill))
        start += count
    segments = [depth * volume.dilation * slice_bytes + run for depth in range(volume.kernel) for run in form.runs]
    return Input(
        memory.ctypes.data,
        (volume.stride * slice_bytes, window.stride[0] * row, window.stride[1] * pixel),
        np.array(segments, np.int64),
        form.run_units * current_tier().staged_bytes,
        work,
        [memory, slices, nothing],
    )
