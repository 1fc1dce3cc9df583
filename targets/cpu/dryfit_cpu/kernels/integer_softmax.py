"""Softmax of quantized values: integers from a table of 256, exact sums.

    e[d] = round(2**30 * exp(-scale * d))            d = 0 ... 255, in FP64, to nearest even: INT64
    sum = exact sum of e[largest - q] along the axis
    x = FP32(e[largest - q]) / FP32(sum) * FP32(1 / output scale)
    the result is round(limit(x)) + zero_point

Every step after the sum is one FP32 operation of IEEE 754, rounded to nearest even. So results do not depend on the
order of the axis, nor on the machine. Beside the softmax of real numbers, sums of up to 2**20 values are right to a
thousandth of the largest result.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Softmax
from dryfit.quantization.rounding import round_values
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import SampleSteps
from dryfit_cpu.kernels.integer_stages import SERVED_TYPES, Quantized, quantized_source
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.kernels.requantization import (
    Requantization,
    bound_requantization,
    requantization_of,
    takes_scaled,
)
from dryfit_cpu.kernels.softmax import softmax_work
from dryfit_cpu.steps import NativeStep

_SOFTMAX = NativeFunction("integer_softmax", "softmax")
_ONE = 2.0**30
"""What 1 is as an integer."""


def exponentials(scale: float) -> Array:
    """INT64 `[256]`: the exponentials of values in units of a scale below 0."""
    return np.rint(_ONE * np.exp(-scale * np.arange(256, dtype=np.float64))).astype(np.int64)


def normalized(values: Array, axis: int, table: Array, steps: Requantization) -> Array:
    """The definition in numpy: INT8 results.

    Args:
        values: INT8.
        axis: over which results sum to 1.
        table: what `exponentials` gave.
        steps: what happens to the quotients.
    """
    wide = values.astype(np.int64)
    powers = table[wide.max(axis=axis, keepdims=True) - wide]
    quotients = powers.astype(np.float32) / powers.sum(axis=axis, keepdims=True).astype(np.float32)
    low, high = (np.float32(limit) for limit in steps.limits)
    x = np.minimum(np.maximum(quotients * _multiplier(steps), low), high)
    return (round_values(x, steps.rounding) + steps.zero_point).astype(np.int8)


def _multiplier(steps: Requantization) -> np.float32:
    return np.float32(1.0 / steps.unit)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    del specs
    steps = requantization_of(group)
    is_known = isinstance(group.main, Softmax) and quantized_source(group.main.inputs[0], group) is not None
    return is_known and steps is not None and steps.only_scales


def _pack(group: LayerGroup) -> dict[str, Array]:
    source = cast("Quantized", quantized_source(group.main.inputs[0], group))
    return {"exponentials": exponentials(source.scale)}


@kernel(
    "cpu.integer_softmax",
    kinds="softmax",
    data_types=SERVED_TYPES,
    accepts=_accepts,
    fuses=takes_scaled,
    absorbs_dequantize=True,
    pack=_pack,
)
def normalize_integers(binding: Binding) -> NativeStep:
    """A step that goes along the axis for each index of the others."""
    group, steps = binding.group, bound_requantization(binding)
    source = cast("Quantized", quantized_source(group.main.inputs[0], group))
    values, output = (bound_array(binding, tensor.name) for tensor in (source.tensor, group.outputs[0]))
    table = binding.weight("exponentials", (256,), DataType.INT64)
    work = softmax_work(
        _SOFTMAX,
        values,
        output,
        cast("Softmax", group.main).axis,
        binding.num_threads,
        exponentials=table.ctypes.data,
        steps=SampleSteps(
            multiplier=float(_multiplier(steps)),
            low=steps.limits[0],
            high=steps.limits[1],
            zero_point=steps.zero_point,
            rounding=steps.rounding_code,
        ),
    )
    return NativeStep(group.name, work, [binding, table])
