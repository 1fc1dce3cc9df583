"""Pooling of quantized images, and reductions over them, requantized in the same pass.

Maxima and sums of the distances from the zero point are exact. An average is `(sum / count) * multiplier`: two FP32
operations, each rounded to nearest even.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.pooling import Pooling
from dryfit.network.tensor import TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, HostLayout, Kernel, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.descriptors import Function
from dryfit_cpu.kernels.integer_stages import SERVED_TYPES, Quantized, quantized_source
from dryfit_cpu.kernels.pooling import PoolingEnd, bind_pooling, bind_reduction, can_pool, can_reduce
from dryfit_cpu.kernels.requantization import (
    bound_requantization,
    in_units,
    requantization_of,
    takes_scaled,
)

_LARGEST_COUNT = 2**24 // 256
"""Values whose sum FP32 holds exactly."""


def _places(layer: Layer, x: TensorSpec) -> int:
    """Values that a result is made of, at most."""
    return math.prod(layer.window_size_nd) if isinstance(layer, Pooling) else abs(math.prod(x.shape[2:]))


def integer_pooling(
    name: str,
    kind: str,
    bind_to: Callable[[Binding, PoolingEnd], NativeStep],
    can_run: Callable[[Layer, TensorSpec], bool],
) -> Kernel:
    """The kernel of a kind of layer that pools."""

    def accepts(group: LayerGroup, specs: Specs) -> bool:
        source = quantized_source(group.main.inputs[0], group)
        steps = requantization_of(group)
        if source is None or steps is None or not steps.only_scales:
            return False
        x = specs[source.tensor.name]
        return can_run(group.main, x) and _places(group.main, x) < _LARGEST_COUNT

    @kernel(
        name,
        kinds=kind,
        data_types=SERVED_TYPES,
        accepts=accepts,
        fuses=takes_scaled,
        absorbs_dequantize=True,
        layout=HostLayout.CHANNELS_LAST,
    )
    def pool(binding: Binding) -> NativeStep:
        """A step that pools."""
        group = binding.group
        source = cast("Quantized", quantized_source(group.main.inputs[0], group))
        steps = bound_requantization(binding)
        ending = PoolingEnd(
            source.tensor.name,
            activation=Function(codes.CLIP, *steps.limits),
            multiplier=float(in_units(np.array([source.scale]), steps.unit)[0]),
            rounding=steps.rounding_code,
            source_zero=source.zero_point,
            zero_point=steps.zero_point,
        )
        return bind_to(binding, ending)

    return pool


pool_integers = integer_pooling("cpu.integer_pooling", "pooling", bind_pooling, can_pool)
pool_integer_images = integer_pooling("cpu.integer_global_pooling", "reduce", bind_reduction, can_reduce)
