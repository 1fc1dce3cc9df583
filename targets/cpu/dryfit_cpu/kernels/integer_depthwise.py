"""Depthwise convolution of quantized images."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.codes import INT8, ROUNDS_LAST, SCALES
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.window_variants import (
    DISTANCES,
    LEAST_CHANNELS,
    SUMS,
    TO_BIASED_BYTES,
    TO_BYTES,
    TO_BYTES_AGAIN,
    TO_SCALED_SUMS,
    Variants,
)
from dryfit_cpu.descriptors import WordTable
from dryfit_cpu.kernels.convolution import window_of
from dryfit_cpu.kernels.copying import chunks_for, copy_work
from dryfit_cpu.kernels.dense_operands import Images, channels_last
from dryfit_cpu.kernels.integer_endings import (
    PackedFixedPoint,
    channel_scales,
    ending_of,
    largest,
    without_needless_rounding,
)
from dryfit_cpu.kernels.integer_weights import REAL_BIAS, IntegerWeights, accepted_weights, integer_weights
from dryfit_cpu.kernels.operands import ImageOperand, image_of, input_of, require_extents
from dryfit_cpu.kernels.requantization import (
    GroupRequantization,
    bound_requantization,
    requantization_of,
    required_requantization,
    weighted_integer_kernel,
)
from dryfit_cpu.kernels.window_panels import Limits, block_table, outside_of, packed_panel
from dryfit_cpu.kernels.windows import WindowGeometry, pair

_DEPTHWISE = NativeFunction("integer_depthwise", "depthwise")
_OF_DISTANCES = (
    NativeFunction("integer_depthwise", "depthwise_of_distances") if current_tier().has_byte_products else _DEPTHWISE
)
_LARGEST_SUM = 2**24
"""Whole numbers up to this are exact in FP32."""
_LARGEST_PRODUCT = 2**14
"""Of two INT8 values; of one and a distance from a zero point twice as much."""
_FORMS = {SCALES: TO_BYTES, ROUNDS_LAST: TO_BYTES_AGAIN}


def pack_integer_channels(group: LayerGroup, kernel: Array, part: str = "") -> dict[str, Array]:
    """INT8 weights `[window rows, window columns, C]`; by channel INT32 starts, FP32 multipliers and real bias.

    The kernel is INT8 `[C, 1, window rows, window columns]`, or distances from zero points, which are packed in FP32.
    Where a layer has several, `part` ends the names of what belongs to this one alone.
    """
    weights, unit = accepted_weights(group), required_requantization(group).unit
    real_bias, dtype = weights.bias_in(unit), _weight_type(weights).numpy
    return {
        f"weights{part}": np.ascontiguousarray(np.moveaxis(kernel[:, 0], 0, -1), dtype),
        f"bias{part}": weights.starts(kernel.reshape(len(kernel), -1).sum(axis=1, dtype=np.int32)),
        "multipliers": weights.multipliers(unit),
        **weights.fixed_point(),
        **({REAL_BIAS: real_bias} if real_bias is not None else {}),
    }


def _weight_type(weights: IntegerWeights) -> DataType:
    """The type of packed weights."""
    return DataType.FLOAT if weights.has_zero_points else DataType.INT8


def _pack(group: LayerGroup) -> dict[str, Array]:
    kernel, window = accepted_weights(group).kernel, pair(cast("Convolution", group.main).kernel_size_nd)
    return pack_integer_channels(group, kernel.reshape(*kernel.shape[:2], *window))


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Convolution) or len(layer.kernel_size_nd) > 2:
        return False
    channels = specs[input_of(group).name].shape[1]
    return (
        layer.num_groups == channels == layer.num_output_maps
        and 0 not in specs[layer.outputs[0].name].shape
        and sums_are_exact(integer_weights(group))
        and requantization_of(group) is not None
    )


def sums_are_exact(weights: IntegerWeights | None) -> bool:
    """Whether FP32 holds every sum exactly, wherever it begins."""
    if weights is None:
        return False
    taps, bias = int(weights.kernel[0].size), int(np.abs(weights.bias.astype(np.int64)).max())
    doubled = (weights.source.zero_point != 0) + weights.has_zero_points
    return taps * (_LARGEST_PRODUCT << doubled) + bias <= _LARGEST_SUM


@weighted_integer_kernel(
    "cpu.integer_depthwise_convolution",
    kinds="convolution",
    accepts=_accepts,
    pack=_pack,
    priority=10,
)
def convolve_integer_channels(binding: Binding) -> NativeStep:
    """A step that convolves each channel."""
    steps = bound_requantization(binding)
    images = Images.of(binding, accepted_weights(binding.group).source.tensor.name, steps.residual)
    return bind_integer_channels(binding, window_of(binding.group, binding.specs), images, steps)


def bind_integer_channels(
    binding: Binding, window: WindowGeometry, images: Images, steps: GroupRequantization, part: str = ""
) -> NativeStep:
    """A step that convolves each channel of an image.

    The weights are what `pack_integer_channels` gave for this part.
    """
    threads, steps = binding.num_threads, without_needless_rounding(steps)
    output = ImageOperand.of(images.output)
    residual = ImageOperand.of(images.residual) if images.residual is not None else None
    zero_point = accepted_weights(binding.group).source.zero_point
    require_extents(images.source.shape, window.input, "input of a window")
    require_extents(output.shape, window.output, "output of a window")
    require_extents(output.shape[:2], images.source.shape[:2], "output of a window for each channel")
    source, before = _with_whole_blocks(ImageOperand.of(images.source), threads)
    weights, outside = _ChannelWeights.of(binding, window, source.shape[1], part), outside_of(zero_point)
    last = steps.last_limits if steps.rounds_last else steps.limits
    panels = weights.panels(Limits(steps.limits, steps.last_multiplier, last, steps.zero_point))
    fixed = PackedFixedPoint.of(binding, (window.input[1],), source.shape[1])
    rows, columns = window.axes
    blocks = block_table(weights.variants, source.shape[1], rows, columns, panels)
    work = (_DEPTHWISE if weights.kernel.dtype == np.int8 else _OF_DISTANCES).work(
        chunks_for(output.array.size * window.kernel[0] * window.kernel[1], threads),
        source=source.image,
        outside=outside.ctypes.data,
        blocks=WordTable(blocks.ctypes.data, len(blocks)),
        form=_form(steps, output, weights),
        scales=channel_scales(weights.multipliers, fixed, steps.scaling),
        output=output.image,
        residual=image_of(residual, INT8),
        window_rows=rows,
        window_columns=columns,
        steps=steps.descriptor,
    )
    return NativeStep(
        binding.group.name, [*before, work], [binding, source, output, residual, blocks, panels, outside, fixed]
    )


def _with_whole_blocks(source: ImageOperand, threads: int) -> tuple[ImageOperand, list[Work]]:
    """An image whose channels lie together and fill a block: the one that is given, or a copy and the work for it."""
    N, C, H, W = source.shape
    filled = max(C, LEAST_CHANNELS)
    if source.has_dense_channels and filled == C:
        return source, []
    copy = channels_last((N, filled, H, W), np.int8)
    # Channels that are filled up are computed and not written: their weights are zeros, and so is what they read.
    copy[:, C:] = 0
    return ImageOperand.of(copy), copy_work(source.array, copy[:, :C], threads)


@frozen(eq=False)
class _ChannelWeights:
    """Packed weights, filled up with channels of zeros that the layer lacks.

    Attributes:
        kernel: INT8 `[window rows, window columns, C]`, or FP32 distances from zero points.
        bias: INT32 `[C]`.
        multipliers: FP32 `[C]`.
        real_bias: FP32 `[C]`; None for none.
    """

    kernel: Array
    bias: Array
    multipliers: Array
    real_bias: Array | None

    @classmethod
    def of(cls, binding: Binding, window: WindowGeometry, channels: int, part: str) -> _ChannelWeights:
        """Those of a binding, for so many channels."""
        C = window.input[1]

        def filled(name: str, *axes: int, dtype: DataType) -> Array:
            values = binding.weight(name, (*axes, C), dtype)
            return np.pad(values, [*[(0, 0)] * len(axes), (0, channels - C)])

        return cls(
            filled(f"weights{part}", *window.kernel, dtype=_weight_type(accepted_weights(binding.group))),
            filled(f"bias{part}", dtype=DataType.INT32),
            filled("multipliers", dtype=DataType.FLOAT),
            filled(REAL_BIAS, dtype=DataType.FLOAT) if REAL_BIAS in binding.weights else None,
        )

    @property
    def variants(self) -> Variants:
        """The code that sums these."""
        return SUMS if self.kernel.dtype == np.int8 else DISTANCES

    def panels(self, limits: Limits) -> list[Array]:
        """The panels of blocks that cover all channels."""
        blocks = [slice(first, first + width) for first, width in self.variants.blocks(len(self.bias))]
        added = self.real_bias
        return [
            packed_panel(
                self.kernel[..., here],
                self.bias[here],
                self.multipliers[here],
                limits,
                None if added is None else added[here],
            )
            for here in blocks
        ]

    @property
    def largest_scaled(self) -> float:
        """What no scaled sum with its bias exceeds, without its sign."""
        # By these weights and not by the largest there can be: an ending in registers is allowed for nearly every layer
        # then.
        products = 128.0 * np.abs(self.kernel.astype(np.float64)).sum(axis=(0, 1))
        largest_sum = float((products + np.abs(self.bias.astype(np.float64))).max())
        return largest_sum * largest(self.multipliers) + largest(self.real_bias)


def _form(steps: GroupRequantization, output: ImageOperand, weights: _ChannelWeights) -> int:
    """How sums are written: at once where they become bytes that lie together, in one of the common ways."""
    if not output.has_dense_channels or output.shape[1] < LEAST_CHANNELS:
        return TO_SCALED_SUMS
    ending = ending_of(steps, output.kind, INT8, weights.largest_scaled)
    if ending == SCALES and weights.real_bias is not None:
        return TO_BIASED_BYTES
    return _FORMS.get(ending, TO_SCALED_SUMS)
