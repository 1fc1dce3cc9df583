"""TensorFlow Lite's optimized kernels on x86: those of LiteRT without a delegate, and those of TensorFlow 2.5.

Vector kernels round the last step half up; scalar code, and what vectors leave over, away from zero.
"""

from __future__ import annotations

from typing import Any

from dryfit.quantization.methods.conditions import INTEGER_BIAS
from dryfit_plugins.quantize_methods.rules.weighted.records import D1, D2, D2U, F1, F2, F2U
from dryfit_plugins.quantize_methods.rules.weighted.tflite import BATCH_MATMUL
from dryfit_plugins.quantize_methods.rules.weighted.tflite_cases import (
    CHANNELS_OF_8,
    ELEMENTS_OF_16,
    VECTOR_PRODUCT,
    VECTOR_PRODUCTS,
    int8_rule,
    requantize_rule,
    uint8_rule,
)

_CHANNELS = "; vectors of 8 channels, the channels left over in scalar code"
_ELEMENTS = "; vectors of 16 elements of the whole output, those left over in scalar code"
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
_TF_VECTOR = f"{_TF}: 660 models with ties, 0 differ; a kernel of its own for a matrix with one vector"
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
    int8_rule("inner_product", D1, _TF_BATCHES, "a matrix a sample", **_BATCHES),
    requantize_rule(D2U, f"{_TF}: 91,520 compared, 0 differ{_ELEMENTS}", options=ELEMENTS_OF_16),
)
"""The default kernels of TensorFlow 2.5. It has no grouped convolution; inner products read no scale a channel."""
