"""Caffe2's Int8 operators without weights, on QNNPACK: UINT8.

It resizes by nearest neighbours only, and broadcasts no operand of a sum.
"""

from __future__ import annotations

from typing import Any

from dryfit.quantization.methods.conditions import both, has_one_type
from dryfit.quantization.methods.definitions.activations import leaky_relu_by_ratio, relu_of_codes
from dryfit.quantization.methods.definitions.averages import average_of_sums
from dryfit.quantization.methods.definitions.concatenated import concatenated
from dryfit.quantization.methods.definitions.real_numbers import dequantize, quantize
from dryfit.quantization.methods.definitions.sigmoids import sigmoid
from dryfit.quantization.methods.definitions.softmaxes import softmax_of_integers
from dryfit.quantization.methods.definitions.sums import SHIFT_BITS, sum_by_common_shift
from dryfit.quantization.methods.grids import (
    FIRST_GRID,
    LARGER_RATIO,
    OF_256THS,
    ONE_GRID,
    counts_all,
    is_over_space,
    is_relu,
    is_undilated,
    ratios,
)
from dryfit.quantization.methods.method import Definition, MethodRule
from dryfit.quantization.methods.requantization import Steps
from dryfit_plugins.quantize_methods.rules.unweighted.records import AWAY, EVEN, UINT8, fixed, real

_CAFFE2 = "Caffe2 in torch 1.10.2 (QNNPACK)"
_AVERAGE = "clamp(raz(sum of (x - zx) * s, exactly) + zy), s = f32(sx / f32(sy * n))"
_MEAN = fixed(AWAY, steps=Steps.ONE_STEP)
_SUM_RATIOS = ratios(2.0**-14, 2.0**8, "each input scale is 2**-14 to below 2**8 output scales")
_RATIOS = ratios(2.0**-8, 2.0**8, "the input scale is 2**-8 to below 2**8 output scales")


def _rule(operator: str, definition: Definition, formula: str, counts: str, **given: Any) -> MethodRule:
    return MethodRule(
        operator=operator,
        definition=definition,
        types=UINT8,
        formula=formula,
        source=f"{_CAFFE2}, {counts}; 0 differ",
        **{
            "per_channel": False,
            "case": has_one_type,
            "case_text": "to UINT8",
            "fidelity": "confirmed",
            **given,
        },
    )


CAFFE2 = (
    _rule(
        "average_pool",
        average_of_sums,
        f"{_AVERAGE}, n: all cells of the window; those outside the input count as zero points",
        "Int8AveragePool, 24,252",
        requantization=_MEAN,
        case=both(both(has_one_type, is_undilated), counts_all),
        case_text="to UINT8, padding counted, without dilation",
        requirements=(_RATIOS,),
    ),
    _rule(
        "global_average_pool",
        average_of_sums,
        f"{_AVERAGE}, n: all of the image",
        "Int8AveragePool with global_pooling, 3,700",
        requantization=_MEAN,
        case=both(has_one_type, is_over_space),
        case_text="over all spatial axes, to UINT8",
        requirements=(_RATIOS,),
    ),
    _rule(
        "eltwise_sum",
        sum_by_common_shift,
        "clamp(rdbp(A * (a - za) + B * (b - zb), h) + zy), A = rte(f32(sa / sy) * 2**h), B likewise, "
        "h = 21 - floor(log2(max(f32(sa / sy), f32(sb / sy))))",
        "Int8Add and Int8AddRelu, all pairs of codes, 2,621,440",
        requantization=fixed(AWAY),
        options={SHIFT_BITS: 21},
        requirements=(_SUM_RATIOS, LARGER_RATIO),
    ),
    _rule(
        "leaky_relu",
        leaky_relu_by_ratio,
        "rte(clamp(z < 0 ? f32(z * alpha) : z)) + zy, z = f32(f32(sx / sy) * (x - zx))",
        "Int8LeakyRelu, all codes, 25,600",
        requantization=real(EVEN, clamp_first=True),
        requirements=(_RATIOS,),
    ),
    _rule(
        "relu",
        relu_of_codes,
        "max(x, zx)",
        "Int8Relu, all codes, 25,600",
        case=both(has_one_type, is_relu),
        case_text="to UINT8, without an upper limit",
        requirements=(ONE_GRID,),
    ),
    _rule(
        "sigmoid",
        sigmoid,
        "min(rte(f32(256 / f32(1 + exp(-f32(sx * (x - zx)))))), 255)",
        "Int8Sigmoid, all codes, 25,600",
        requantization=real(EVEN),
        requirements=(OF_256THS,),
    ),
    _rule(
        "quantize",
        quantize,
        "clamp(rte(f32(x / sy)) + zy); what is 2**31 steps or more saturates, where the library's conversion overflows",
        "Int8Quantize, 409,600",
        requantization=real(EVEN),
        case=None,
        case_text="",
    ),
    _rule(
        "dequantize",
        dequantize,
        "f32(sx * (q - zx))",
        "Int8Dequantize, 409,600",
        case=None,
        case_text="",
    ),
    _rule(
        "softmax",
        softmax_of_integers,
        "min((256 * e + sum div 2) div sum, 255), e = rte(q * exp((x - max) * sx)), "
        "q = min((2**32 - 1) / C, 2**23 - 1)",
        "Int8Softmax, 186,624",
        requirements=(OF_256THS,),
    ),
    _rule(
        "concat",
        concatenated,
        "x: a copy; the scales of all inputs but the first are not read",
        "Int8Concat, 2,700",
        requirements=(FIRST_GRID,),
    ),
)
