"""TensorFlow Lite's kernels without weights: the reference ones, and the optimized ones where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from dryfit.quantization.methods.conditions import (
    OF_256THS,
    ONE_GRID,
    SUM_BELOW_ONE,
    SUMS_IN_INT16,
    both,
    counts_inside,
    has_one_type,
    is_over_space,
    is_relu_or_relu6,
    is_undilated,
    resizes_by_extents,
)
from dryfit.quantization.methods.definitions.activations import leaky_relu, relu, sigmoid
from dryfit.quantization.methods.definitions.averages import (
    CUT_OFFSET,
    average_of_codes,
    mean_by_divided_multiplier,
    mean_of_codes,
)
from dryfit.quantization.methods.definitions.real_numbers import (
    TIMES_RECIPROCAL,
    dequantize,
    dequantize_by_line,
    quantize,
)
from dryfit.quantization.methods.definitions.requantized import concatenated, concatenated_by_line
from dryfit.quantization.methods.definitions.resized import (
    resized_by_products_of_weights,
    resized_by_whole_places,
    resized_in_real_numbers,
)
from dryfit.quantization.methods.definitions.softmaxes import softmax_by_table, softmax_in_fixed_point
from dryfit.quantization.methods.definitions.sums import CUT_OPERANDS, sum_by_three_multipliers
from dryfit.quantization.methods.definitions.weighted import TAIL_ROUNDING, VECTOR_CHANNELS, VECTOR_ELEMENTS
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import ScaleRule
from dryfit_plugins.quantize_methods.records import AWAY, EVEN, INT8, UINT8, UP, fixed, real, rule_of

_LITERT = "ai-edge-litert 2.3.0, reference kernels (BUILTIN_REF)"
_TWO_STEP = fixed(AWAY)
_DOUBLE = fixed(AWAY, ScaleRule.DOUBLE)
_SUM = (
    "clamp(two_step(two_step((a - za) << 20, qmul(sa / T)) + two_step((b - zb) << 20, qmul(sb / T)), "
    "qmul(T / (2**20 * sy))) + zy), T = 2 * max(sa, sb) in f64; two_step(v, (M, S)) = rdbp(srdhm(v << max(S, 0), M), "
    "max(-S, 0))"
)


def _confirmed(counts: str) -> str:
    return f"{_LITERT}: {counts}; 0 differ"


_AVERAGES = (
    rule_of(
        "average_pool",
        average_of_codes,
        "clamp(trunc((sum of x +- n div 2) / n)), + for positive sums; n: the cells inside the input",
        _confirmed("143,254"),
        case=both(both(has_one_type, is_undilated), counts_inside),
        case_text="to the input's type, padding not counted, without dilation",
        requirements=(ONE_GRID,),
    ),
    rule_of(
        "global_average_pool",
        mean_by_divided_multiplier,
        "clamp(two_step(sum of (x - zx), ((M << h) div n, S - h)) + zy), (M, S) = qmul(f64(sx) / f64(sy)), "
        "h = min(floor(log2 n), 32, 31 + S)",
        _confirmed("MEAN, 7,864 and 9,600"),
        requantization=_DOUBLE,
        case=both(has_one_type, is_over_space),
        case_text="over all spatial axes, to the input's type",
    ),
)
_SUMS = (
    rule_of(
        "eltwise_sum",
        sum_by_three_multipliers,
        _SUM,
        _confirmed("ADD, all pairs of codes, 7,864,320"),
        requantization=_DOUBLE,
        requirements=(SUM_BELOW_ONE,),
    ),
    rule_of(
        "bias_add",
        sum_by_three_multipliers,
        _SUM,
        _confirmed("ADD with broadcasting, 196,608"),
        requantization=_DOUBLE,
        requirements=(SUM_BELOW_ONE,),
    ),
)
_ACTIVATIONS = (
    rule_of(
        "leaky_relu",
        leaky_relu,
        "clamp(two_step(v, qmul(v < 0 ? f32(f32(sx * alpha) / sy) : f32(sx / sy))) + zy), v = x - zx",
        _confirmed("all codes, 76,948"),
        requantization=_TWO_STEP,
    ),
    rule_of(
        "relu",
        relu,
        "clamp(two_step(x - zx, qmul(f32(sx / sy))) + zy) to [zy, zy + raz(f32(6 / sy))]",
        _confirmed("RELU and RELU6, all codes, 231,588"),
        requantization=_TWO_STEP,
        case=both(has_one_type, is_relu_or_relu6),
        case_text="to the input's type, without an upper limit or with 6",
    ),
    rule_of(
        "sigmoid",
        sigmoid,
        "clamp(raz(f32(256 * f32(1 / f32(1 + exp(-f32(sx * (x - zx))))))) + zy)",
        _confirmed("LOGISTIC, all codes, 51,200"),
        requantization=real(AWAY),
        requirements=(OF_256THS,),
    ),
)
_OVERFLOW = "values of 2**31 steps or more saturate; the library's conversion overflows"
_QUANTIZE = rule_of(
    "quantize",
    quantize,
    f"clamp(raz(f32(x / sy)) + zy); {_OVERFLOW}",
    _confirmed("1,228,800"),
    requantization=real(AWAY),
    case=None,
    case_text="",
)
_DEQUANTIZE = rule_of(
    "dequantize",
    dequantize,
    "f32(f64(sx) * (q - zx)), which is f32(sx * (q - zx))",
    _confirmed("1,228,800"),
    case=None,
    case_text="",
)
_SOFTMAX = rule_of(
    "softmax",
    softmax_in_fixed_point,
    "clamp(rdbp(srdhm(1 / sum, e), nb + 23) + lowest), in fixed point: e = exp(x - max) in Q0.31 of differences in "
    "Q5.26, their sum in Q12.19, its reciprocal by 3 Newton steps, nb = floor(log2 sum)",
    _confirmed("SOFTMAX, 1,673,664")
    + "; a sum of 512 or more aborts the library's process, and gives the lowest code here",
    requirements=(OF_256THS,),
)
_CONCATS = (
    rule_of(
        "concat",
        concatenated,
        "x: a copy",
        _confirmed("36,804"),
        types=INT8,
        requirements=(ONE_GRID,),
    ),
    rule_of(
        "concat",
        concatenated_by_line,
        "clamp(raz(f32(f32(x * r) + b)) + zy), r = f32(sx * f32(1 / sy)), b = f32(-zx * r); a copy where the grids "
        "are the same",
        _confirmed("35,172"),
        types=UINT8,
        requantization=real(AWAY),
    ),
)
_IMAGES: dict[str, Any] = {
    "case": both(has_one_type, resizes_by_extents),
    "case_text": "of images, by the output's extents, TensorRT's coordinates",
    "requirements": (ONE_GRID,),
}
_RESIZES = (
    rule_of(
        "resize_bilinear",
        resized_by_whole_places,
        "raz(blend / 2**20) with places and weights of 10 bits: s = (1024 * in + out div 2) div out, p = i * s "
        "(+ s div 2 - 512 for half pixels)",
        _confirmed("232,938"),
        types=INT8,
        requantization=_TWO_STEP,
        **_IMAGES,
    ),
    rule_of(
        "resize_bilinear",
        resized_in_real_numbers,
        "trunc(f32(blend + 0.5)) in FP32, p = i * s or (i + 0.5) * s - 0.5, s = f32(in / out)",
        _confirmed("299,462"),
        types=UINT8,
        **_IMAGES,
    ),
)

TFLITE = (
    *_AVERAGES,
    *_SUMS,
    *_ACTIVATIONS,
    _QUANTIZE,
    _DEQUANTIZE,
    _SOFTMAX,
    *_CONCATS,
    *_RESIZES,
)
"""The reference kernels of LiteRT."""


TFLITE_2_14 = tuple(
    attrs.evolve(rule, source=f"tflite-runtime 2.14.0, reference kernels: same as {_LITERT}; none differ")
    for rule in TFLITE
)
"""The reference kernels before LiteRT."""

_RUY = "ai-edge-litert 2.3.0, optimized kernels on x86 (BUILTIN_WITHOUT_DEFAULT_DELEGATES)"
_OPTIMIZED_MEAN = rule_of(
    "global_average_pool",
    mean_of_codes,
    "clamp(two_step(sum of x, qmul(sx / (n * sy))) + zy - raz(f32(f32(zx * sx) / sy))); for INT8 the last step rounds "
    "half up in vectors of 16 channels",
    f"{_RUY}: MEAN, 20,148; 0 differ",
    types=INT8,
    requantization=fixed(UP, ScaleRule.DOUBLE),
    options={VECTOR_CHANNELS: 16, TAIL_ROUNDING: AWAY.value},
    case=both(has_one_type, is_over_space),
    case_text="over all spatial axes, to the input's type",
)
QUANTIZE_BY_RECIPROCAL = rule_of(
    "quantize",
    quantize,
    f"clamp(rte(f32(x * f32(1 / sy))) + zy); {_OVERFLOW}",
    "ai-edge-litert 2.3.0, default resolver and optimized kernels: 1,228,800; 0 differ",
    requantization=real(EVEN),
    options={TIMES_RECIPROCAL: True},
    case=None,
    case_text="",
)
SOFTMAX_BY_TABLE = rule_of(
    "softmax",
    softmax_by_table,
    "clamp(raz(f32(e * f32(1 / f32(sum of e * sy)))) + zy), e = f32(exp(-f32(sx * (max - x)))), FP32 in the order of "
    "the axis",
    "ai-edge-litert 2.3.0, default resolver and optimized kernels: SOFTMAX, 1.67 million; 0 differ",
    requantization=real(AWAY),
    requirements=(OF_256THS,),
)


def _as_reference(rules: Sequence[MethodRule], what: str) -> tuple[MethodRule, ...]:
    """The same arithmetic in kernels of another version or kind."""
    return tuple(attrs.evolve(rule, source=f"{what}: same as the reference kernels; none differ") for rule in rules)


_CUT = "; vectors of 8 elements truncate in the first shifts, toward minus infinity"


def _optimized_sums(what: str) -> tuple[MethodRule, ...]:
    """Those of two tensors of UINT8 cut; all others are the reference's."""
    elementwise, bias = _as_reference(_SUMS, what)
    cut = attrs.evolve(
        elementwise,
        types=UINT8,
        formula=elementwise.formula + _CUT,
        options={CUT_OPERANDS: True, VECTOR_ELEMENTS: 8},
        requirements=(SUM_BELOW_ONE, SUMS_IN_INT16),
        source=f"{what}: ADD, all pairs of codes; 0 differ",
    )
    whole = attrs.evolve(elementwise, types=INT8, requirements=(SUM_BELOW_ONE, SUMS_IN_INT16))
    return (whole, cut, bias)


_OPTIMIZED_RESIZE = rule_of(
    "resize_bilinear",
    resized_by_products_of_weights,
    "trunc(f32(blend + 0.5)) in FP32, the two weights multiplied first; places as in the reference kernels",
    f"{_RUY}: 23,436; 0 differ",
    types=UINT8,
    **_IMAGES,
)
_DEQUANTIZE_BY_LINE = rule_of(
    "dequantize",
    dequantize_by_line,
    "f32(f32(sx * q) + f32(-zx * sx))",
    f"{_RUY}: all codes, 15,360; 0 differ",
    case=None,
    case_text="",
)

TFLITE_RUY = (
    *_as_reference(_AVERAGES[:1], _RUY),
    _OPTIMIZED_MEAN,
    attrs.evolve(_OPTIMIZED_MEAN, types=UINT8, requantization=_DOUBLE, options={}),
    *_optimized_sums(_RUY),
    *_as_reference(_ACTIVATIONS, _RUY),
    QUANTIZE_BY_RECIPROCAL,
    _DEQUANTIZE_BY_LINE,
    SOFTMAX_BY_TABLE,
    *_as_reference((*_CONCATS, _RESIZES[0]), _RUY),
    _OPTIMIZED_RESIZE,
)
"""The optimized kernels of LiteRT without a delegate, on x86."""

_TF_2_5 = "TensorFlow 2.5.0, default kernels on x86"
_CUT_MEAN = attrs.evolve(
    _OPTIMIZED_MEAN,
    formula=_OPTIMIZED_MEAN.formula.replace("raz(", "trunc("),
    options={**_OPTIMIZED_MEAN.options, CUT_OFFSET: True},
    source=f"{_TF_2_5}: MEAN, 4,440; 0 differ",
)
TFLITE_2_5 = (
    *_as_reference(_AVERAGES[:1], _TF_2_5),
    _CUT_MEAN,
    attrs.evolve(_CUT_MEAN, types=UINT8, requantization=_DOUBLE, options={CUT_OFFSET: True}),
    *_optimized_sums(_TF_2_5),
    *_as_reference(_ACTIVATIONS, _TF_2_5),
    attrs.evolve(QUANTIZE_BY_RECIPROCAL, source=f"{_TF_2_5}: 102,360; 0 differ"),
    attrs.evolve(_DEQUANTIZE_BY_LINE, source=f"{_TF_2_5}: all codes, 30,720; 0 differ"),
    attrs.evolve(SOFTMAX_BY_TABLE, source=f"{_TF_2_5}: SOFTMAX, 99,000 with ties; 0 differ"),
    *_as_reference((*_CONCATS, _RESIZES[0]), _TF_2_5),
    attrs.evolve(_OPTIMIZED_RESIZE, source=f"{_TF_2_5}: 17,475; 0 differ"),
)
"""The default kernels of TensorFlow 2.5."""
