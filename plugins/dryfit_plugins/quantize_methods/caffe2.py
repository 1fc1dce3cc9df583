"""The method `caffe2`: Caffe2, Int8 operators on QNNPACK, which are of UINT8 with one scale a tensor.

It resizes by nearest neighbours only, and broadcasts no operand of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import (
    FIRST_GRID,
    INTEGER_BIAS,
    LARGER_RATIO,
    OF_256THS,
    ONE_GRID,
    both,
    counts_all,
    float_multipliers,
    has_one_matrix,
    has_one_type,
    is_over_space,
    is_relu,
    is_undilated,
    ratios,
)
from dryfit.quantization.methods.definitions.activations import leaky_relu_by_ratio, relu_of_codes, sigmoid
from dryfit.quantization.methods.definitions.averages import average_of_sums
from dryfit.quantization.methods.definitions.real_numbers import dequantize, in_real_numbers, quantize
from dryfit.quantization.methods.definitions.requantized import concatenated
from dryfit.quantization.methods.definitions.softmaxes import softmax_of_integers
from dryfit.quantization.methods.definitions.sums import SHIFT_BITS, sum_by_common_shift
from dryfit.quantization.methods.definitions.weighted import weighted
from dryfit.quantization.methods.method import Definition, MethodRule, QuantizeMethod, Requirement
from dryfit.quantization.methods.requantization import Steps
from dryfit_plugins.quantize_methods.records import AWAY, EVEN, FF2, REAL_FLOAT, UINT8, fixed, formula_of, real, rule_of

_CAFFE2 = "Caffe2 in torch 1.10.2 (QNNPACK)"
_COUNTS = {
    "convolution": "Int8Conv and Int8ConvRelu: 76,800 with ties and 365,456 others, depthwise 76,800 and 183,296, "
    "groups 180,568",
    "deconvolution": "Int8ConvTranspose: 76,800 with ties, 34,649 others",
    "inner_product": "Int8FC: 76,800 with ties, 20,590 others",
}


def _has_multiplier_below_one(call: OperatorCall) -> bool:
    found = float_multipliers(call)
    return bool(np.all((found >= 2.0**-32) & (found < 1)))


_BELOW_ONE = Requirement(text="2**-32 <= multiplier < 1", holds=_has_multiplier_below_one)

_WEIGHTED = (
    *(
        MethodRule(
            operator=operator,
            definition=weighted,
            requantization=FF2,
            types=UINT8,
            per_channel=False,
            case=both(has_one_type, has_one_matrix),
            case_text="weights and output of UINT8",
            requirements=(INTEGER_BIAS, _BELOW_ONE),
            formula=formula_of(FF2),
            fidelity="confirmed",
            source=f"{_CAFFE2}, {counts}; 0 differ",
        )
        for operator, counts in _COUNTS.items()
    ),
    MethodRule(
        operator="requantize",
        definition=in_real_numbers,
        requantization=REAL_FLOAT,
        types=UINT8,
        case=has_one_type,
        case_text="to UINT8",
        formula="clamp(round_half_to_even(f32(f32(sx * (x - zx)) / sy)) + zy)",
        fidelity="confirmed",
        source=f"{_CAFFE2}, Int8Dequantize and Int8Quantize, in sequence: 409,600 each; 0 differ",
    ),
)


_AVERAGE = "clamp(raz(sum of (x - zx) * s, exactly) + zy), s = f32(sx / f32(sy * n))"
_MEAN = fixed(AWAY, steps=Steps.ONE_STEP)
_SUM_RATIOS = ratios(2.0**-14, 2.0**8, "each input scale is 2**-14 to below 2**8 output scales")
_RATIOS = ratios(2.0**-8, 2.0**8, "the input scale is 2**-8 to below 2**8 output scales")


def _rule(operator: str, definition: Definition, formula: str, counts: str, **given: Any) -> MethodRule:
    fields = {"types": UINT8, "case_text": "to UINT8", **given}
    return rule_of(operator, definition, formula, f"{_CAFFE2}, {counts}; 0 differ", **fields)


_UNWEIGHTED = (
    _rule(
        "average_pool",
        average_of_sums,
        f"{_AVERAGE}, n: all cells of the window; cells outside the input count as zero points",
        "Int8AveragePool, 24,252",
        requantization=_MEAN,
        case=both(both(has_one_type, is_undilated), counts_all),
        case_text="to UINT8, padding counted, without dilation",
        requirements=(_RATIOS,),
    ),
    _rule(
        "global_average_pool",
        average_of_sums,
        f"{_AVERAGE}, n: the whole image",
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
        "clamp(rte(f32(x / sy)) + zy); values of 2**31 steps or more saturate; the library's conversion overflows",
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
        "x: a copy; only the first input's scale is used",
        "Int8Concat, 2,700",
        requirements=(FIRST_GRID,),
    ),
)


def _for_int8_too(rules: Sequence[MethodRule], library: str) -> tuple[MethodRule, ...]:
    """Rules of UINT8, and behind them the same of INT8.

    An INT8 tensor is the UINT8 tensor of the same numbers with codes and zero points 128 lower, which is how whoever
    gives it to the library hands it over. What comes back is 128 lower too: definitions read codes by their distance
    from zero points and from the ends of their type. Nothing ran in INT8, so these rules are inferred.

    Args:
        rules: of UINT8, with definitions and conditions that name no type.
        library: its name.
    """
    return (*rules, *(_of_int8(rule, library) for rule in rules))


def _of_int8(rule: MethodRule, library: str) -> MethodRule:
    return attrs.evolve(
        rule,
        types=frozenset({DataType.INT8}),
        case_text=rule.case_text.replace("UINT8", "INT8"),
        formula=f"as UINT8, with codes and zero points 128 higher: {rule.formula}",
        fidelity="inferred",
        source=f"{library} supports only UINT8, where the same numbers have codes 128 higher; for those {rule.source}",
    )


METHOD = QuantizeMethod(
    name="caffe2",
    title="Caffe2, Int8 operators on QNNPACK",
    library="torch 1.10.2",
    rules=_for_int8_too((*_WEIGHTED, *_UNWEIGHTED), "Caffe2"),
    source="measured against torch 1.10.2 on x86-64",
)
"""One scale a tensor; scales in FP32, two roundings. INT8 codes are computed as the UINT8 ones of the same numbers."""
