"""Rules of convolution, deconvolution, inner product and codes to codes on devices that compute in FP32 after sums."""

from __future__ import annotations

from dryfit.quantization.methods.definitions.output_codes import LIMIT_ROUNDING
from dryfit.quantization.methods.definitions.real_numbers import in_real_numbers
from dryfit.quantization.methods.definitions.weighted import weighted
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode

_SOURCE = (
    'S. Migacz, "8-bit Inference with TensorRT" (GTC 2017), workflow of an INT8 convolution: INT32 sums, FP32 product, '
    "FP32 bias in units of the output, ReLU, round, saturate. How the scales become one FP32 number is not said: our "
    "choice, as our INT8 engines have it, is one rounding. UINT8 and zero points: ours; TensorRT is symmetric. "
)


def device_requantization(rounding: RoundingMode) -> Requantization:
    """Scales as one FP32 number, rounded once; an FP32 product; a real bias in FP32; one rounding."""
    return Requantization(
        scale_rule=ScaleRule.DOUBLE,
        encoding=Encoding.FLOAT32,
        steps=Steps.REAL,
        rounding=rounding,
        clamp_first=True,
        real_bias=True,
    )


def weighted_rules(rounding: RoundingMode, source: str) -> tuple[MethodRule, ...]:
    """The rules of a device that finds whole numbers in this way.

    Args:
        rounding: of codes.
        source: what says so.
    """
    record = device_requantization(rounding)
    options = {LIMIT_ROUNDING: rounding.value}
    sums = [
        MethodRule(
            operator=operator,
            definition=weighted,
            requantization=record,
            options=options,
            formula=f"clamp(round_{rounding}(f32(sum) * f32(sx * sw / sy) [+ f32(bias / sy)])) + zy; an INT32 bias is "
            "in the sum",
            fidelity="inferred",
            source=_SOURCE + source,
        )
        for operator in ("convolution", "deconvolution", "inner_product")
    ]
    return (
        *sums,
        MethodRule(
            operator="requantize",
            definition=in_real_numbers,
            requantization=record,
            options=options,
            formula=f"clamp(round_{rounding}(f32(f32(sx * (x - zx)) / sy))) + zy",
            fidelity="inferred",
            source=f"a dequantize and a quantize layer, one after the other: {source}",
        ),
    )
