"""Resizing quantized images, requantized in the same pass.

In FP32, each step one operation, rounded to nearest even; a, b are the codes above and below on the left, c, d those on
the right:

    left, right = a * w0 + b * w1, c * w0 + d * w1       w0, w1: weights of the rows, their sum is 1
    x = left * v0 + right * v1                           v0, v1: weights of the columns; x = a for the nearest pixel
    x = (x - zero_point) * multiplier                    scale of the input / scale of the output, rounded once
    the result is round(limit(x)) + zero_point of the output
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, HostLayout, Specs, kernel
from dryfit_cpu.descriptors import SampleSteps
from dryfit_cpu.kernels.integer_stages import SERVED_TYPES, Quantized, quantized_source
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.kernels.requantization import (
    bound_requantization,
    in_units,
    requantization_of,
    takes_scaled,
)
from dryfit_cpu.kernels.resize import bind_resize, can_resize
from dryfit_cpu.steps import NativeStep


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer, steps = group.main, requantization_of(group)
    x, y = specs[cast("Tensor", layer.inputs[0]).name], specs[layer.outputs[0].name]
    is_known = quantized_source(layer.inputs[0], group) is not None and steps is not None and steps.only_scales
    return is_known and can_resize(layer, x, y)


@kernel(
    "cpu.integer_resize",
    kinds="resize",
    data_types=SERVED_TYPES,
    accepts=_accepts,
    fuses=takes_scaled,
    absorbs_dequantize=True,
    layout=HostLayout.CHANNELS_LAST,
)
def resize_integers(binding: Binding) -> NativeStep:
    """A step that samples the image and requantizes."""
    group, steps = binding.group, bound_requantization(binding)
    source = cast("Quantized", quantized_source(group.main.inputs[0], group))
    x, y = (bound_array(binding, tensor.name) for tensor in (source.tensor, group.outputs[0]))
    sampled = SampleSteps(
        source_zero=source.zero_point,
        multiplier=float(in_units(np.array([source.scale]), steps.unit)[0]),
        low=steps.limits[0],
        high=steps.limits[1],
        zero_point=steps.zero_point,
        rounding=steps.rounding_code,
    )
    return bind_resize(binding, x, y, sampled)
