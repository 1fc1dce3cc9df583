"""XNNPACK's kernels without weights, as TensorFlow Lite's default delegate calls them, and what it leaves to others."""

from __future__ import annotations

from typing import Any

import attrs

from dryfit.quantization.methods.conditions import both, has_one_type
from dryfit.quantization.methods.definitions.activations import FRACTION_BITS, leaky_relu_by_shift
from dryfit.quantization.methods.definitions.averages import mean_of_scaled_codes
from dryfit.quantization.methods.definitions.resized import resized_by_whole_weights
from dryfit.quantization.methods.definitions.sigmoids import sigmoid_in_double
from dryfit.quantization.methods.definitions.sums import SHIFT_BITS, sum_by_common_shift
from dryfit.quantization.methods.grids import (
    ONE_GRID,
    has_ratio_of_leaky_shift,
    has_ratios_of_sum_shift,
    is_over_space,
    resizes_by_extents,
)
from dryfit.quantization.methods.method import Definition, MethodRule
from dryfit_plugins.quantize_methods.rules.unweighted import tflite
from dryfit_plugins.quantize_methods.rules.unweighted.records import EVEN, UP, fixed, real
from dryfit_plugins.quantize_methods.rules.weighted.xnnpack import LIMITS

_XNNPACK = "ai-edge-litert 2.3.0, default resolver (XNNPACK)"


def _rule(operator: str, definition: Definition, formula: str, counts: str, **given: Any) -> MethodRule:
    return MethodRule(
        operator=operator,
        definition=definition,
        formula=formula,
        source=f"{_XNNPACK}: {counts}; 0 differ",
        **{
            "per_channel": False,
            "case": has_one_type,
            "case_text": "to the input's type",
            "fidelity": "confirmed",
            **given,
        },
    )


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
    return attrs.evolve(rule, source=f"{_XNNPACK}: left to TensorFlow Lite's own kernel; none differ")


_LEFT = {(rule.operator, rule.definition.__name__): _left(rule) for rule in tflite.TFLITE_RUY}
_LEFT_SUMS = [_left(rule) for rule in tflite.TFLITE_RUY if rule.operator in ("eltwise_sum", "bias_add")]

TFLITE_XNNPACK = (
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
    attrs.evolve(_SUM, operator="bias_add", source=f"{_XNNPACK}: ADD with broadcasting, 196,608; 0 differ"),
    *_LEFT_SUMS,
    _rule(
        "leaky_relu",
        leaky_relu_by_shift,
        "clamp(rrs((x - zx) * rte(256 * ratio), 8) + zy), ratio = f32(sx / sy), below zero f32(alpha * that)",
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
    tflite.QUANTIZE_BY_RECIPROCAL,
    attrs.evolve(
        next(rule for rule in tflite.TFLITE if rule.operator == "dequantize"),
        source=f"{_XNNPACK}: all codes, 1,228,800; 0 differ",
    ),
    tflite.SOFTMAX_BY_TABLE,
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
