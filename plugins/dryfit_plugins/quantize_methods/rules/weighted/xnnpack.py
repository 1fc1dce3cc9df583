"""XNNPACK's kernels, as TensorFlow Lite's default delegate calls them, and what it leaves to others."""

from __future__ import annotations

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import (
    INTEGER_BIAS,
    SYMMETRIC_WEIGHTS,
    both,
    float_multipliers,
    has_one_matrix,
    has_one_type,
    is_depthwise,
)
from dryfit.quantization.methods.definitions.activations import FRACTION_BITS
from dryfit.quantization.methods.definitions.output_codes import LIMIT_ROUNDING, LIMIT_ZERO_POINT_FIRST
from dryfit.quantization.methods.definitions.requantized import requantized_by_shift
from dryfit.quantization.methods.definitions.weighted import weighted
from dryfit.quantization.methods.method import MethodRule, Requirement
from dryfit_plugins.quantize_methods.rules.weighted.records import D1, F2, REAL_FLOAT, formula_of
from dryfit_plugins.quantize_methods.rules.weighted.tflite import BATCH_MATMUL
from dryfit_plugins.quantize_methods.rules.weighted.tflite_optimized import REQUANTIZE

LIMITS = {LIMIT_ROUNDING: REAL_FLOAT.rounding.value, LIMIT_ZERO_POINT_FIRST: True}
"""Options: the codes of a fused activation's limits are rte(f32(f32(limit / sy) + zy))."""
_LITERT = "ai-edge-litert 2.3.0, default resolver (XNNPACK)"


def _has_small_multiplier(call: OperatorCall) -> bool:
    return bool(np.all(float_multipliers(call) < 256))


_BELOW_256 = Requirement(text="every multiplier is below 256", holds=_has_small_multiplier)


def _rule(operator: str, signed_counts: str, unsigned_counts: str) -> tuple[MethodRule, MethodRule]:
    """The rules on INT8 and on UINT8."""
    signed = MethodRule(
        operator=operator,
        definition=weighted,
        requantization=REAL_FLOAT,
        types=frozenset({DataType.INT8}),
        case=both(has_one_type, has_one_matrix),
        case_text="weights, one matrix of them, and output of its type",
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

TFLITE_XNNPACK = (
    _UINT8_DEPTHWISE,
    *_rule("convolution", "240,153 with ties, depthwise 249,312, groups 3,008", "132,063 with ties"),
    *_rule("deconvolution", "243,651", "120,663"),
    *_rule("inner_product", "252,942 with ties", "127,083 with ties"),
    BATCH_MATMUL,
    _REQUANTIZE,
    REQUANTIZE,
)
