"""The method `tflite-xnnpack`: XNNPACK as TensorFlow Lite's default delegate calls it, and what it leaves to others."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import (
    INTEGER_BIAS,
    ONE_GRID,
    SYMMETRIC_WEIGHTS,
    both,
    float_multipliers,
    has_one_matrix,
    has_one_type,
    has_ratio_of_leaky_shift,
    has_ratios_of_sum_shift,
    is_depthwise,
    is_over_space,
    resizes_by_extents,
)
from dryfit.quantization.methods.definitions.activations import FRACTION_BITS, leaky_relu_by_shift, sigmoid_in_double
from dryfit.quantization.methods.definitions.averages import mean_of_scaled_codes
from dryfit.quantization.methods.definitions.pairs import product
from dryfit.quantization.methods.definitions.requantized import requantized_by_shift
from dryfit.quantization.methods.definitions.resized import resized_by_whole_weights
from dryfit.quantization.methods.definitions.sums import IS_DIFFERENCE, SHIFT_BITS, sum_by_common_shift
from dryfit.quantization.methods.definitions.weighted import LIMIT_ROUNDING, LIMIT_ZERO_POINT_FIRST, weighted
from dryfit.quantization.methods.method import Definition, MethodRule, QuantizeMethod, Requirement
from dryfit_plugins.quantize_methods import tflite_elementwise as elementwise
from dryfit_plugins.quantize_methods import tflite_sixteen_bits as sixteen_bits
from dryfit_plugins.quantize_methods import tflite_unweighted as unweighted
from dryfit_plugins.quantize_methods.records import D1, EVEN, F2, REAL_FLOAT, UP, fixed, formula_of, real, rule_of
from dryfit_plugins.quantize_methods.tflite_weighted import BATCH_MATMUL, REQUANTIZE

LIMITS = {LIMIT_ROUNDING: REAL_FLOAT.rounding.value, LIMIT_ZERO_POINT_FIRST: True}
"""Options: the codes of a fused activation's limits are rte(f32(f32(limit / sy) + zy))."""
_LITERT = "ai-edge-litert 2.3.0, default resolver (XNNPACK)"


def _has_small_multiplier(call: OperatorCall) -> bool:
    return bool(np.all(float_multipliers(call) < 256))


_BELOW_256 = Requirement(text="every multiplier < 256", holds=_has_small_multiplier)


def _sums(operator: str, signed_counts: str, unsigned_counts: str) -> tuple[MethodRule, MethodRule]:
    """The rules on INT8 and on UINT8."""
    signed = MethodRule(
        operator=operator,
        definition=weighted,
        requantization=REAL_FLOAT,
        types=frozenset({DataType.INT8}),
        case=both(has_one_type, has_one_matrix),
        case_text="weights (one matrix) and output of the same type",
        options=LIMITS,
        requirements=(INTEGER_BIAS, SYMMETRIC_WEIGHTS, _BELOW_256),
        formula=formula_of(REAL_FLOAT),
        fidelity="confirmed",
        source=f"{_LITERT}: {signed_counts}; 0 differ",
    )
    unsigned = attrs.evolve(
        signed,
        types=frozenset({DataType.UINT8}),
        per_channel=False,
        requirements=(INTEGER_BIAS, _BELOW_256),
        source=f"{_LITERT}: {unsigned_counts}; 0 differ",
    )
    return signed, unsigned


_UINT8_DEPTHWISE = MethodRule(
    operator="convolution",
    definition=weighted,
    requantization=F2,
    types=frozenset({DataType.UINT8}),
    per_channel=False,
    case=both(has_one_type, is_depthwise),
    case_text="depthwise",
    requirements=(INTEGER_BIAS,),
    formula=formula_of(F2),
    fidelity="confirmed",
    source=f"{_LITERT}: the delegate leaves it to TensorFlow Lite's own kernel; 132,681 compared, 0 differ",
)


def _has_ratio_of_shift(call: OperatorCall) -> bool:
    scale, _ = call.output_grid
    return bool(2.0**-8 <= call.operand(0).one_scale / scale <= 2.0**7)


_REQUANTIZE = MethodRule(
    operator="requantize",
    definition=requantized_by_shift,
    requantization=D1,
    case=has_one_type,
    case_text="to the same type",
    options={FRACTION_BITS: 8},
    requirements=(Requirement(text="input scale / output scale is from 2**-8 to 2**7", holds=_has_ratio_of_shift),),
    formula="clamp(rrs((x - zx) * rte(256 * f32(sx / sy)), 8) + zy)",
    fidelity="confirmed",
    source=f"{_LITERT}: 73,280 compared, 0 differ",
)

_WEIGHTED = (
    _UINT8_DEPTHWISE,
    *_sums("convolution", "240,153 with ties, depthwise 249,312, groups 3,008", "132,063 with ties"),
    *_sums("deconvolution", "243,651", "120,663"),
    *_sums("inner_product", "252,942 with ties", "127,083 with ties"),
    BATCH_MATMUL,
    _REQUANTIZE,
    REQUANTIZE,
)


def _rule(operator: str, definition: Definition, formula: str, counts: str, **given: Any) -> MethodRule:
    return rule_of(operator, definition, formula, f"{_LITERT}: {counts}; 0 differ", **given)


_SUM = _rule(
    "eltwise_sum",
    sum_by_common_shift,
    "clamp(rrs(A * (a - za) + B * (b - zb), h) + zy), A = rte(f32(sa / sy) * 2**h), B likewise, "
    "h = 20 - floor(log2(max(f32(sa / sy), f32(sb / sy))))",
    "ADD, all pairs of codes, 7,864,320",
    requantization=fixed(UP),
    options={SHIFT_BITS: 20, **LIMITS},
    case=both(has_one_type, has_ratios_of_sum_shift),
    case_text="to the input's type, each input scale 2**-10 to below 2**8 output scales",
)


def _left(rule: MethodRule) -> MethodRule:
    """A rule of TensorFlow Lite's own kernel."""
    return attrs.evolve(rule, source=f"{_LITERT}: left to TensorFlow Lite's own kernel; none differ")


_LEFT = {(rule.operator, rule.definition.__name__): _left(rule) for rule in unweighted.TFLITE_RUY}
_LEFT_SUMS = [_left(rule) for rule in unweighted.TFLITE_RUY if rule.operator in ("eltwise_sum", "bias_add")]

_UNWEIGHTED = (
    _LEFT["average_pool", "average_of_codes"],
    _rule(
        "global_average_pool",
        mean_of_scaled_codes,
        "clamp(rte(f32(f32(sum of x * s) + b))), s = f32(f32(sx / sy) * f32(1 / n)), b = f32(zy - f32(n * zx * s))",
        "MEAN, 504,000 with ties",
        requantization=real(EVEN, zero_point_first=True),
        case=both(has_one_type, is_over_space),
        case_text="over all spatial axes, to the input's type",
    ),
    _SUM,
    attrs.evolve(_SUM, operator="bias_add", source=f"{_LITERT}: ADD with broadcasting, 196,608; 0 differ"),
    *_LEFT_SUMS,
    _rule(
        "leaky_relu",
        leaky_relu_by_shift,
        "clamp(rrs((x - zx) * rte(256 * ratio), 8) + zy), ratio = f32(sx / sy), f32(alpha * ratio) below zero",
        "all codes, 76,948",
        requantization=fixed(UP),
        options={FRACTION_BITS: 8},
        case=both(has_one_type, has_ratio_of_leaky_shift),
        case_text="to the input's type, both ratios 1/256 to 128 in magnitude",
    ),
    _LEFT["leaky_relu", "leaky_relu"],
    _LEFT["relu", "relu"],
    _rule(
        "sigmoid",
        sigmoid_in_double,
        "clamp(rte(f32(f32(f32(1 / (1 + exp(-f32(sx * (x - zx))))) / sy) + zy))), 1 / (1 + exp) in f64",
        "LOGISTIC with any output scale, all codes, 256,000, most of them next to ties",
        requantization=real(EVEN, zero_point_first=True),
    ),
    unweighted.QUANTIZE_BY_RECIPROCAL,
    attrs.evolve(
        next(rule for rule in unweighted.TFLITE if rule.operator == "dequantize"),
        source=f"{_LITERT}: all codes, 1,228,800; 0 differ",
    ),
    unweighted.SOFTMAX_BY_TABLE,
    _LEFT["concat", "concatenated"],
    _LEFT["concat", "concatenated_by_line"],
    _rule(
        "resize_bilinear",
        resized_by_whole_weights,
        "rrs(blend, 22) with weights rte(fraction * 2048) at places of FP32 within the input",
        "611,556",
        requantization=fixed(UP),
        case=both(has_one_type, resizes_by_extents),
        case_text="of images, by the output's extents, TensorRT's coordinates",
        requirements=(ONE_GRID,),
    ),
)


_DIFFERENCE = attrs.evolve(
    _SUM,
    operator="eltwise_difference",
    formula=_SUM.formula.replace("+ B", "- B"),
    options={**_SUM.options, IS_DIFFERENCE: True},
    source=f"{_LITERT}: SUB, all pairs of codes, 2,621,440; 0 differ",
)
_OWN = frozenset({"eltwise_difference", "eltwise_product", "global_average_pool", "log_softmax"})
_LEFT_ELEMENTWISE = tuple(_left(rule) for rule in elementwise.TFLITE if rule.operator not in _OWN)
_MEAN = next(rule for rule in _UNWEIGHTED if rule.operator == "global_average_pool")
_ELEMENTWISE = (
    _DIFFERENCE,
    _rule(
        "eltwise_product",
        product,
        formula_of(REAL_FLOAT, sums="(a - za) * (b - zb)"),
        "MUL, all pairs of codes, 2,621,440",
        requantization=REAL_FLOAT,
        options=LIMITS,
    ),
    attrs.evolve(
        _MEAN,
        case=has_one_type,
        case_text="to the input's type",
        source=f"{_LITERT}: MEAN over other axes, 7,880; 0 differ",
    ),
    *_LEFT_ELEMENTWISE,
)


METHOD = QuantizeMethod(
    name="tflite-xnnpack",
    title="TensorFlow Lite, default delegate XNNPACK",
    library="ai-edge-litert 2.3.0",
    rules=(*_WEIGHTED, *_UNWEIGHTED, *_ELEMENTWISE, *sixteen_bits.OPTIMIZED),
    source="measured against ai-edge-litert 2.3.0 on x86-64",
)
"""What the default resolver runs: XNNPACK, requantization in FP32."""
