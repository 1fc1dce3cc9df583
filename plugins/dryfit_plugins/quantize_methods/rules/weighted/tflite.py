"""TensorFlow Lite's reference kernels: those of LiteRT, and those before."""

from __future__ import annotations

from dryfit.quantization.methods.conditions import INTEGER_BIAS
from dryfit_plugins.quantize_methods.rules.weighted.records import D2, F2, REAL_DOUBLE
from dryfit_plugins.quantize_methods.rules.weighted.tflite_cases import int8_rule, requantize_rule, uint8_rule

_LITERT = "ai-edge-litert 2.3.0, reference kernels (BUILTIN_REF)"
_RUNTIME = "tflite-runtime 2.14.0, reference kernels, with ties, 0 differ; versions before it gave the same"

BATCH_MATMUL = int8_rule(
    "inner_product",
    D2,
    "ai-edge-litert 2.3.0, BATCH_MATMUL, the same with all three resolvers: 65,066 compared, 0 differ",
    "a matrix a sample",
    requirements=(INTEGER_BIAS,),
    per_channel=False,
)
"""Both operands have a zero point; the library refuses UINT8."""
_SUMS = (
    int8_rule(
        "convolution",
        D2,
        f"{_LITERT}: one scale 123,378 with ties and 346,408 others, one a channel 116,775 and 369,270, depthwise "
        "249,312 and 1.35 million, groups 3,008; 0 differ",
    ),
    uint8_rule(
        "convolution",
        F2,
        f"{_LITERT}: 132,063 with ties and 344,750 others, depthwise 132,681 and 648,512; 0 differ",
    ),
    int8_rule("deconvolution", D2, f"{_LITERT}: 243,651 compared, 0 differ"),
    uint8_rule("deconvolution", F2, f"{_LITERT}: 120,663 compared, 0 differ"),
    BATCH_MATMUL,
    requantize_rule(D2, f"{_LITERT}: 819,200 compared, 0 differ; tflite-runtime 2.14.0: 91,520 compared, 0 differ"),
)

TFLITE = (
    *_SUMS,
    int8_rule("inner_product", REAL_DOUBLE, f"{_LITERT}, since 1.4: 252,942 with ties, 0 differ", "a matrix"),
    uint8_rule("inner_product", REAL_DOUBLE, f"{_LITERT}, since 1.4: 127,083 with ties, 0 differ", "a matrix"),
)
"""The reference kernels of LiteRT."""

TFLITE_2_14 = (
    *_SUMS,
    int8_rule("inner_product", F2, _RUNTIME, "a matrix", per_channel=False),
    int8_rule("inner_product", D2, _RUNTIME, "a matrix", per_channel=True),
    uint8_rule("inner_product", F2, _RUNTIME, "a matrix"),
)
"""The reference kernels before LiteRT: inner products in fixed point, too."""
