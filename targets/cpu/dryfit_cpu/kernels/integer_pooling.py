"""Pooling of quantized images, and reductions over them, requantized in the same pass.

Maxima and sums of the distances from the zero point are exact. An average is `(sum / count) * multiplier`: two FP32
operations, each rounded to nearest even.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from dryfit.network.layer import Layer
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.tensor import TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, HostLayout, Kernel, Specs
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.descriptors import Function
from dryfit_cpu.kernels.dense_operands import VOLUME_RANK, Images
from dryfit_cpu.kernels.integer_pointwise import requantize_work
from dryfit_cpu.kernels.integer_stages import Quantized
from dryfit_cpu.kernels.operands import ImageOperand, bound_array
from dryfit_cpu.kernels.pooling import (
    PoolingEnd,
    bind_pooling,
    bind_reduction,
    can_pool,
    can_reduce,
    has_whole_blocks,
)
from dryfit_cpu.kernels.requantization import bound_requantization, scaled_source, scaling_kernel

_LARGEST_COUNT = 2**24 // 256
"""Values whose sum FP32 holds exactly."""


def _places(layer: Layer, x: TensorSpec) -> int:
    """Values that a result is made of, at most."""
    return math.prod(layer.window_size_nd) if isinstance(layer, Pooling) else abs(math.prod(x.shape[2:]))


def _takes_byte_maxima(binding: Binding, source: Quantized) -> bool:
    """Whether a layer is a maximum over windows of bytes that lie together, none of which has nothing but padding."""
    layer = binding.group.main
    if not isinstance(layer, Pooling) or layer.pooling_type is not PoolingType.MAX or layer.may_hold_only_padding:
        return False
    images = Images.of(binding, source.tensor.name)
    arrays = [array for batch in images.batches() for array in (batch.source, batch.output)]
    return images.source.ndim < VOLUME_RANK and all(has_whole_blocks(ImageOperand.of(array)) for array in arrays)


def integer_pooling(
    name: str,
    kind: str,
    bind_to: Callable[[Binding, PoolingEnd], NativeStep],
    can_run: Callable[[Layer, TensorSpec], bool],
) -> Kernel:
    """The kernel of a kind of layer that pools."""

    def accepts(group: LayerGroup, specs: Specs) -> bool:
        source = scaled_source(group)
        if source is None:
            return False
        x = specs[source.tensor.name]
        return can_run(group.main, x) and _places(group.main, x) < _LARGEST_COUNT

    @scaling_kernel(name, kinds=kind, accepts=accepts, layout=HostLayout.CHANNELS_LAST)
    def pool(binding: Binding) -> NativeStep:
        """A step that pools."""
        source, steps = cast("Quantized", scaled_source(binding.group)), bound_requantization(binding)
        if steps.is_quantized and _takes_byte_maxima(binding, source):
            # Codes stay codes until the maxima are known, which are fewer, and are scaled where they lie.
            maxima = bind_to(binding, PoolingEnd.of_codes(source.tensor.name, source.zero_point))
            output = bound_array(binding, binding.group.outputs[0].name)
            scaling = requantize_work(output, source.grid, steps, None, output, binding.num_threads)
            return NativeStep(binding.group.name, [*maxima.work, *scaling], [maxima])
        ending = PoolingEnd(source.tensor.name, Function(codes.CLIP, *steps.limits), steps.sampled(source.grid))
        return bind_to(binding, ending)

    return pool


pool_integers = integer_pooling("cpu.integer_pooling", "pooling", bind_pooling, can_pool)
pool_integer_images = integer_pooling("cpu.integer_global_pooling", "reduce", bind_reduction, can_reduce)
