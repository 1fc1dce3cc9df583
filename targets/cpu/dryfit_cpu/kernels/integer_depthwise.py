"""Depthwise convolution of quantized images."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Kernel, Specs, kernel
from dryfit_cpu.codes import INT8, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.constants import filled_channels
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.integer_convolution import window_of
from dryfit_cpu.kernels.integer_products import Images
from dryfit_cpu.kernels.integer_staging import Staged, stage_integers_work
from dryfit_cpu.kernels.integer_weights import IntegerWeights, accepted_weights, integer_weights
from dryfit_cpu.kernels.operands import Operand, Workspace, fp32_bytes
from dryfit_cpu.kernels.requantization import (
    bound_requantization,
    multipliers,
    requantization_of,
    required_requantization,
    takes_requantized,
)
from dryfit_cpu.kernels.windows import pair
from dryfit_cpu.steps import NativeStep

_DEPTHWISE = NativeFunction("integer_depthwise", "depthwise")
_LARGEST_SUM = 2**24
"""Whole numbers up to this are exact in FP32."""
_LARGEST_PRODUCT = 2**15
"""Of a staged byte and a weight."""


def integer_depthwise(name: str) -> Kernel:
    """The kernel."""

    def pack(group: LayerGroup) -> dict[str, Array]:
        """FP32 weights `[window rows, window columns, C]`, INT32 bias and FP32 multipliers `[C]`, zero filled."""
        weights = accepted_weights(group)
        C, window = weights.kernel.shape[0], pair(cast("Convolution", group.main).kernel_size_nd)
        return {
            "weights": filled_channels(np.moveaxis(weights.kernel.reshape(C, *window), 0, -1).astype(np.float32)),
            "bias": filled_channels(weights.bias.astype(np.int32)),
            "weight_sums": filled_channels(weights.kernel.reshape(C, -1).sum(axis=1, dtype=np.int32)),
            "multipliers": filled_channels(multipliers(weights.scales, required_requantization(group).unit)),
        }

    def accepts(group: LayerGroup, specs: Specs) -> bool:
        layer = group.main
        if not isinstance(layer, Convolution) or len(layer.kernel_size_nd) > 2:
            return False
        channels = specs[cast("Tensor", layer.inputs[0]).name].shape[1]
        return (
            layer.num_groups == channels == layer.num_output_maps
            and 0 not in specs[layer.outputs[0].name].shape
            and _is_exact(integer_weights(group))
            and requantization_of(group) is not None
        )

    def workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
        del num_threads
        return fp32_bytes((Staged.of(window_of(group, specs)).words,))

    @kernel(
        name,
        kinds="convolution",
        data_types=[DataType.FLOAT, DataType.INT8],
        accepts=accepts,
        fuses=takes_requantized,
        absorbs_dequantize=True,
        pack=pack,
        packed_parameters=("bias",),
        workspace_bytes=workspace_bytes,
        layout=HostLayout.CHANNELS_LAST,
        priority=10,
    )
    def convolve(binding: Binding) -> NativeStep:
        """A step that stages the image and convolves each channel."""
        return _bind(binding)

    return convolve


def _is_exact(weights: IntegerWeights | None) -> bool:
    """Whether FP32 holds every sum of staged bytes exactly, wherever it begins."""
    if weights is None:
        return False
    taps, bias = int(weights.kernel[0].size), int(np.abs(weights.bias.astype(np.int64)).max())
    return 2 * taps * _LARGEST_PRODUCT + bias <= _LARGEST_SUM


def _bind(binding: Binding) -> NativeStep:
    """A step that stages the image and convolves each channel."""
    threads, steps = binding.num_threads, bound_requantization(binding)
    window = window_of(binding.group, binding.specs)
    images = Images.of(binding, accepted_weights(binding.group).source.tensor.name, steps.residual)
    source, output = Operand.of(images.source), Operand.of(images.output)
    residual = Operand.of(images.residual) if images.residual is not None else None
    staged = Staged.of(window)
    image = Workspace(binding).take((staged.words,))
    image_stride, row_stride, pixel_stride = staged.strides
    padded = -(-output.shape[1] // PANEL_CHANNELS) * PANEL_CHANNELS
    weights = binding.weight("weights", (*window.kernel, padded))
    bias = binding.weight("bias", (padded,), DataType.INT32)
    sums = binding.weight("weight_sums", (padded,), DataType.INT32)
    scales = binding.weight("multipliers", (padded,))
    starts = (bias - 128 * sums if current_tier().staged_bytes == 1 else bias).astype(np.float32)
    added = residual.strides if residual is not None else (0, 0, 0, 0)
    work = _DEPTHWISE.work(
        chunks_for(output.array.size * window.kernel[0] * window.kernel[1], threads),
        source=image.ctypes.data,
        image_stride=image_stride,
        row_stride=row_stride,
        pixel_stride=pixel_stride,
        weights=weights.ctypes.data,
        starts=starts.ctypes.data,
        multipliers=scales.ctypes.data,
        padded_channels=padded,
        **output.output_fields(),
        residual=residual.address if residual is not None else 0,
        residual_image_stride=added[0],
        residual_row_stride=added[2],
        residual_pixel_stride=added[3],
        residual_channel_stride=added[1],
        residual_kind=residual.kind if residual is not None else INT8,
        window_rows=window.kernel[0],
        window_columns=window.kernel[1],
        row_step=window.stride[0],
        column_step=window.stride[1],
        row_dilation=window.dilation[0],
        column_dilation=window.dilation[1],
        **steps.fields(),
    )
    stage = stage_integers_work(window, staged, source, image, threads)
    return NativeStep(binding.group.name, [stage, work], [binding, source, output, residual, image, starts])


convolve_integer_channels = integer_depthwise("cpu.integer_depthwise_convolution")
