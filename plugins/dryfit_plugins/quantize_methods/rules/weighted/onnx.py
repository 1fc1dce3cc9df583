"""ONNX Runtime's QLinearConv, QLinearMatMul and QGemm, and dequantize followed by quantize."""

from __future__ import annotations

from dryfit.quantization.methods.conditions import INTEGER_BIAS, has_no_uint8_weights_of_int8
from dryfit.quantization.methods.definitions.output_codes import LIMIT_ROUNDING
from dryfit.quantization.methods.definitions.real_numbers import in_real_numbers
from dryfit.quantization.methods.definitions.weighted import weighted
from dryfit.quantization.methods.method import MethodRule
from dryfit_plugins.quantize_methods.rules.weighted.records import REAL_FLOAT, formula_of

_ORT = "onnxruntime 1.31.1"
_COUNTS = {
    "convolution": f"{_ORT}, QLinearConv: 552,960 with ties, 374,712 others; 0 differ",
    "inner_product": f"{_ORT}, QGemm and QLinearMatMul: 30,720 with ties, 86,458 others; 0 differ",
}
_OPTIONS = {LIMIT_ROUNDING: REAL_FLOAT.rounding.value}

ONNX = (
    *(
        MethodRule(
            operator=operator,
            definition=weighted,
            requantization=REAL_FLOAT,
            case=has_no_uint8_weights_of_int8,
            case_text="output of the input's type, weights too, or INT8",
            options=_OPTIONS,
            requirements=(INTEGER_BIAS,),
            formula=formula_of(REAL_FLOAT),
            fidelity="confirmed",
            source=source,
        )
        for operator, source in _COUNTS.items()
    ),
    MethodRule(
        operator="requantize",
        definition=in_real_numbers,
        requantization=REAL_FLOAT,
        options=_OPTIONS,
        formula="clamp(round_half_to_even(f32(f32(sx * (x - zx)) / sy)) + zy)",
        fidelity="confirmed",
        source=f"{_ORT}, DequantizeLinear and QuantizeLinear: 393,216 each; 0 differ",
    ),
)
