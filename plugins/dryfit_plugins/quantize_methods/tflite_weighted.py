"""TensorFlow Lite's integer kernels with weights: the cases that they distinguish, and the rules of each version.

Vector kernels round the last step half up; scalar code, and what vectors leave over, away from zero.
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import (
    INTEGER_BIAS,
    SYMMETRIC_WEIGHTS,
    both,
    has_one_matrix,
    has_one_type,
    is_depthwise,
    is_grouped,
    negated,
)
from dryfit.quantization.methods.definitions.requantized import requantized
from dryfit.quantization.methods.definitions.weighted import TAIL_ROUNDING, VECTOR_CHANNELS, VECTOR_ELEMENTS, weighted
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Requantization
from dryfit.quantization.rounding import RoundingMode
from dryfit_plugins.quantize_methods.records import D1, D2, D2U, F1, F2, F2U, REAL_DOUBLE, formula_of

_INT8, _UINT8 = frozenset({DataType.INT8}), frozenset({DataType.UINT8})
_AWAY = RoundingMode.HALF_AWAY_FROM_ZERO.value
CHANNELS_OF_8 = {VECTOR_CHANNELS: 8, TAIL_ROUNDING: _AWAY}
"""Options: vectors of 8 channels; the channels left over are rounded away from zero."""
ELEMENTS_OF_16 = {VECTOR_ELEMENTS: 16, TAIL_ROUNDING: _AWAY}
"""Options: vectors of 16 elements of the whole output; those left over are rounded away from zero."""


def _is_vector_product(call: OperatorCall) -> bool:
    """Whether it is products of matrices of 4 rows or more and 8 columns or more, each with one vector."""
    weights, shape = call.operand(1).values, call.output_shape
    if call.layer.kind == "convolution":
        rows, columns, vectors = weights.shape[0], math.prod(weights.shape[1:]), math.prod(shape) // weights.shape[0]
    elif call.layer.kind == "matrix_multiply":
        rows, columns = shape[-1], weights.size // math.prod(weights.shape[:-2]) // shape[-1]
        vectors = math.prod(shape[-2:-1] if weights.ndim > 2 else shape[:-1])
    else:
        rows, columns, vectors = shape[-3], weights.size // shape[-3], math.prod(shape[:-3])
    return vectors == 1 and rows >= 4 and columns >= 8 and getattr(call.layer, "num_groups", 1) == 1


VECTOR_PRODUCT = "one output position, 4 channels or more, sums of 8 products or more"
VECTOR_PRODUCTS = "one matrix per sample, one output row, 4 columns or more, sums of 8 products or more"
_A_SAMPLE = both(has_one_type, negated(has_one_matrix))
CASES = {
    "": has_one_type,
    "depthwise": both(has_one_type, is_depthwise),
    "groups of several channels": both(has_one_type, is_grouped),
    "one group, or depthwise": both(has_one_type, negated(is_grouped)),
    VECTOR_PRODUCT: both(has_one_type, both(has_one_matrix, _is_vector_product)),
    VECTOR_PRODUCTS: both(_A_SAMPLE, _is_vector_product),
    "a matrix": both(has_one_type, has_one_matrix),
    "one matrix per sample": _A_SAMPLE,
}
"""Cases by their words in the documentation; weights and output have the input's type in all of them."""


def int8_rule(operator: str, record: Requantization, source: str, case: str = "", **given: Any) -> MethodRule:
    """A rule on INT8 input, weights and output; weights are symmetric, with per-tensor or per-channel scales."""
    return MethodRule(
        operator=operator,
        definition=weighted,
        requantization=record,
        types=_INT8,
        case=CASES[case],
        case_text=case or "weights and output of the same type",
        formula=formula_of(record),
        source=source,
        **{"requirements": (INTEGER_BIAS, SYMMETRIC_WEIGHTS), "fidelity": "confirmed", **given},
    )


def uint8_rule(operator: str, record: Requantization, source: str, case: str = "", **given: Any) -> MethodRule:
    """A rule on UINT8 input, weights and output; weights have one scale and one zero point."""
    signed = int8_rule(operator, record, source, case, **given)
    return attrs.evolve(signed, types=_UINT8, per_channel=False, requirements=(INTEGER_BIAS,))


def requantize_rule(record: Requantization, source: str, **given: Any) -> MethodRule:
    """A rule from INT8 or UINT8 to either."""
    return MethodRule(
        operator="requantize",
        definition=requantized,
        requantization=record,
        formula=formula_of(record, sums="(x - zx)") + ", sw = 1",
        fidelity="confirmed",
        source=source,
        **given,
    )


_REFERENCE = "ai-edge-litert 2.3.0, reference kernels (BUILTIN_REF)"
_RUNTIME = "tflite-runtime 2.14.0, reference kernels, with ties, 0 differ; earlier versions give the same"

BATCH_MATMUL = int8_rule(
    "inner_product",
    D2,
    "ai-edge-litert 2.3.0, BATCH_MATMUL, identical with all three resolvers: 65,066 compared, 0 differ",
    "one matrix per sample",
    requirements=(INTEGER_BIAS,),
    per_channel=False,
)
"""Both operands have a zero point; the library refuses UINT8."""
_SUMS = (
    int8_rule(
        "convolution",
        D2,
        f"{_REFERENCE}: per-tensor scale 123,378 with ties and 346,408 others, per-channel 116,775 and 369,270, "
        "depthwise 249,312 and 1.35 million, groups 3,008; 0 differ",
    ),
    uint8_rule(
        "convolution",
        F2,
        f"{_REFERENCE}: 132,063 with ties and 344,750 others, depthwise 132,681 and 648,512; 0 differ",
    ),
    int8_rule("deconvolution", D2, f"{_REFERENCE}: 243,651 compared, 0 differ"),
    uint8_rule("deconvolution", F2, f"{_REFERENCE}: 120,663 compared, 0 differ"),
    BATCH_MATMUL,
    requantize_rule(D2, f"{_REFERENCE}: 819,200 compared, 0 differ; tflite-runtime 2.14.0: 91,520 compared, 0 differ"),
)

TFLITE = (
    *_SUMS,
    int8_rule("inner_product", REAL_DOUBLE, f"{_REFERENCE}, since 1.4: 252,942 with ties, 0 differ", "a matrix"),
    uint8_rule("inner_product", REAL_DOUBLE, f"{_REFERENCE}, since 1.4: 127,083 with ties, 0 differ", "a matrix"),
)
"""The reference kernels of LiteRT."""

TFLITE_2_14 = (
    *_SUMS,
    int8_rule("inner_product", F2, _RUNTIME, "a matrix", per_channel=False),
    int8_rule("inner_product", D2, _RUNTIME, "a matrix", per_channel=True),
    uint8_rule("inner_product", F2, _RUNTIME, "a matrix"),
)
"""The reference kernels before LiteRT: inner products in fixed point, too."""


_CHANNELS = "; vectors of 8 channels, the remaining channels in scalar code"
_ELEMENTS = "; vectors of 16 elements of the whole output, the remaining ones in scalar code"
_LITERT = "ai-edge-litert 2.3.0, optimized kernels on x86 (BUILTIN_WITHOUT_DEFAULT_DELEGATES)"
_TIES = f"{_LITERT}: 300 models with ties, 0 differ"
_AS_REFERENCE = f"{_TIES}; there is no vector kernel"

REQUANTIZE = requantize_rule(D2U, f"{_LITERT}: 169,832 compared, 0 differ{_ELEMENTS}", options=ELEMENTS_OF_16)

TFLITE_RUY = (
    int8_rule("convolution", D2U, f"{_TIES}{_CHANNELS}", "depthwise", options=CHANNELS_OF_8),
    int8_rule("convolution", D2, _AS_REFERENCE, "groups of several channels"),
    int8_rule("convolution", D2U, _TIES),
    uint8_rule("convolution", F2, _AS_REFERENCE, "depthwise"),
    uint8_rule("convolution", F2, _AS_REFERENCE, "groups of several channels"),
    uint8_rule("convolution", F2U, _TIES),
    int8_rule("deconvolution", D2U, f"{_TIES}{_CHANNELS}", options=CHANNELS_OF_8),
    uint8_rule("deconvolution", F2U, f"{_TIES}{_ELEMENTS}", options=ELEMENTS_OF_16),
    int8_rule("inner_product", F2U, _TIES, "a matrix", per_channel=False),
    int8_rule("inner_product", D2U, _TIES, "a matrix", per_channel=True),
    uint8_rule("inner_product", F2U, _TIES, "a matrix"),
    BATCH_MATMUL,
    REQUANTIZE,
)
"""The optimized kernels of LiteRT without a delegate, on x86."""

_TF = "TensorFlow 2.5.0, default kernels on x86"
_TF_TIES = f"{_TF}: 300 models with ties, 0 differ"
_TF_VECTOR = f"{_TF}: 660 models with ties, 0 differ; a separate kernel for matrix-vector products"
_TF_BATCHES = f"{_TF}, BATCH_MATMUL: 102,400 compared, 0 differ"
_BATCHES: dict[str, Any] = {"requirements": (INTEGER_BIAS,), "per_channel": False}

TFLITE_2_5 = (
    int8_rule("convolution", D2U, f"{_TF_TIES}{_CHANNELS}", "depthwise", options=CHANNELS_OF_8),
    int8_rule("convolution", D2U, _TF_VECTOR, VECTOR_PRODUCT),
    int8_rule("convolution", D1, _TF_TIES, "one group, or depthwise"),
    uint8_rule("convolution", F2U, _TF_VECTOR, VECTOR_PRODUCT),
    uint8_rule("convolution", F2, _TF_TIES, "one group, or depthwise"),
    int8_rule("deconvolution", D2U, f"{_TF_TIES}{_CHANNELS}", options=CHANNELS_OF_8),
    uint8_rule("deconvolution", F2U, f"{_TF_TIES}{_ELEMENTS}", options=ELEMENTS_OF_16),
    int8_rule("inner_product", F2U, _TF_VECTOR, VECTOR_PRODUCT, per_channel=False),
    int8_rule("inner_product", F1, _TF_TIES, "a matrix", per_channel=False),
    uint8_rule("inner_product", F2U, _TF_VECTOR, VECTOR_PRODUCT),
    uint8_rule("inner_product", F2, _TF_TIES, "a matrix"),
    int8_rule("inner_product", D2U, _TF_BATCHES, VECTOR_PRODUCTS, **_BATCHES),
    int8_rule("inner_product", D1, _TF_BATCHES, "one matrix per sample", **_BATCHES),
    requantize_rule(D2U, f"{_TF}: 91,520 compared, 0 differ{_ELEMENTS}", options=ELEMENTS_OF_16),
)
"""The default kernels of TensorFlow 2.5. It has no grouped convolution; inner products do not support per-channel
scales."""
