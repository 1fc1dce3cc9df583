"""Rules of operators without weights on devices: dequantized, computed in FP32, and rounded once as the device does."""

from __future__ import annotations

from dryfit.quantization.methods.definitions.real_numbers import dequantize, in_real_numbers, quantize
from dryfit.quantization.methods.definitions.sigmoids import sigmoid
from dryfit.quantization.methods.devices.weighted import device_requantization
from dryfit.quantization.methods.method import Definition, MethodRule
from dryfit.quantization.rounding import RoundingMode

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
_SOURCE = (
    "our choice: TensorRT does not publish how kernels of this operator compute in INT8; one FP32 computation between "
    "dequantizing and quantizing is what the network means. UINT8 and zero points: ours; TensorRT is symmetric. The "
    "rounding: "
)


def unweighted_rules(rounding: RoundingMode, source: str) -> tuple[MethodRule, ...]:
    """The rules of a device that finds whole numbers in this way.

    Args:
        rounding: of codes.
        source: what says so.
    """
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
        rule(operator, in_real_numbers, value, "inferred", _SOURCE + source) for operator, value in _REAL_VALUES.items()
    ]
    return (
        *computed,
        rule("sigmoid", sigmoid, f"f32(1 / f32(1 + exp(-x))), {_VALUE}", "inferred", _SOURCE + source),
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
