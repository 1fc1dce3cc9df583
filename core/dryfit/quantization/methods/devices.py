"""Methods of the devices that are simulated: INT32 sums, all else in FP32, and one rounding of the device's own."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.quantization.methods.definitions.activations import sigmoid
from dryfit.quantization.methods.definitions.real_numbers import dequantize, in_real_numbers, quantize
from dryfit.quantization.methods.definitions.weighted import LIMIT_ROUNDING, weighted
from dryfit.quantization.methods.method import Definition, MethodRule, QuantizeMethod
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode

_WEIGHTED_SOURCE = (
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
    """The rules of a device that finds whole numbers in this way."""
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
            source=_WEIGHTED_SOURCE + source,
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


_VALUE = "x = f32(sx * (q - zx))"
_REAL_VALUES: dict[str, str] = {
    "average_pool": f"f32(sum of x / n), {_VALUE}",
    "global_average_pool": f"f32(sum of x / n), {_VALUE}",
    "bias_add": f"f32(a + b), {_VALUE} of both",
    "concat": _VALUE,
    "eltwise_sum": f"f32(a + b), {_VALUE} of both",
    "leaky_relu": f"x < 0 ? f32(alpha * x) : x, {_VALUE}",
    "relu": f"min(max(x, low), high), {_VALUE}",
    "resize_bilinear": f"the blend of four x in FP32, {_VALUE}",
    "softmax": f"f32(exp(x - max) / sum of exp(x - max)), {_VALUE}",
}
_UNWEIGHTED_SOURCE = (
    "our choice: TensorRT does not publish how kernels of this operator compute in INT8; one FP32 computation between "
    "dequantizing and quantizing is what the network means. UINT8 and zero points: ours; TensorRT is symmetric. The "
    "rounding: "
)


def unweighted_rules(rounding: RoundingMode, source: str) -> tuple[MethodRule, ...]:
    """The rules of a device that finds whole numbers in this way."""
    record = device_requantization(rounding)

    def rule(operator: str, definition: Definition, value: str, fidelity: str, said_by: str) -> MethodRule:
        return MethodRule(
            operator=operator,
            definition=definition,
            requantization=record,
            per_channel=False,
            formula=f"clamp(round_{rounding}(f32(y / sy)) + zy), y = {value}",
            fidelity=fidelity,
            source=said_by,
        )

    computed = [
        rule(operator, in_real_numbers, value, "inferred", _UNWEIGHTED_SOURCE + source)
        for operator, value in _REAL_VALUES.items()
    ]
    return (
        *computed,
        rule("sigmoid", sigmoid, f"f32(1 / f32(1 + exp(-x))), {_VALUE}", "inferred", _UNWEIGHTED_SOURCE + source),
        rule("quantize", quantize, "the input", "documented", source),
        MethodRule(
            operator="dequantize",
            definition=dequantize,
            per_channel=False,
            formula="f32(sx * (q - zx))",
            fidelity="documented",
            source="TensorRT 10 developer guide, Quantized Types: a product with the scale. UINT8 and zero points are "
            "ours: TensorRT is symmetric",
        ),
    )


def device_method(
    name: str, title: str, rounding: RoundingMode, source: str, rules: Sequence[MethodRule] = ()
) -> QuantizeMethod:
    """A method whose rules are those of all devices with the rounding of this one.

    Args:
        name: the entry point's name.
        title: whose arithmetic it is.
        rounding: how the device finds whole numbers where it computes in INT8.
        source: what says so: that of the device's `Arithmetic` record.
        rules: of the device alone; they come first.
    """
    return QuantizeMethod(
        name=name,
        title=title,
        rules=(*rules, *weighted_rules(rounding, source), *unweighted_rules(rounding, source)),
        source=source,
    )
