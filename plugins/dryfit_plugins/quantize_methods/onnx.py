"""The method `onnx`: ONNX Runtime's QLinear operators and fused Q/DQ groups, on x86 with fused multiply-add.

Where no integer kernel is, it dequantizes, computes in FP32 and quantizes. On ARM its sums are those of Caffe2. It has
another rule for resizing channels-last images, a layout that networks here do not have.
"""

from __future__ import annotations

from typing import Any

from dryfit.quantization.methods.conditions import (
    INTEGER_BIAS,
    ONE_GRID,
    POWERS_IN_FLOAT,
    both,
    has_no_uint8_weights_of_int8,
    has_one_type,
    is_over_space,
    is_undilated,
    resizes_images,
)
from dryfit.quantization.methods.definitions.activations import sigmoid_by_quotient
from dryfit.quantization.methods.definitions.averages import average_of_real_values, average_of_sums
from dryfit.quantization.methods.definitions.real_numbers import dequantize, in_real_numbers, quantize
from dryfit.quantization.methods.definitions.requantized import concatenated_by_value
from dryfit.quantization.methods.definitions.resized import resized_and_cut_off
from dryfit.quantization.methods.definitions.softmaxes import softmax_by_large_table
from dryfit.quantization.methods.definitions.sums import sum_by_fused_products
from dryfit.quantization.methods.definitions.weighted import LIMIT_ROUNDING, weighted
from dryfit.quantization.methods.method import Definition, MethodRule, QuantizeMethod
from dryfit_plugins.quantize_methods.records import EVEN, REAL_FLOAT, formula_of, real, rule_of

_ORT = "onnxruntime 1.31.1"
_COUNTS = {
    "convolution": f"{_ORT}, QLinearConv: 552,960 with ties, 374,712 others; 0 differ",
    "inner_product": f"{_ORT}, QGemm and QLinearMatMul: 30,720 with ties, 86,458 others; 0 differ",
}
_OPTIONS = {LIMIT_ROUNDING: REAL_FLOAT.rounding.value}

_WEIGHTED = (
    *(
        MethodRule(
            operator=operator,
            definition=weighted,
            requantization=REAL_FLOAT,
            case=has_no_uint8_weights_of_int8,
            case_text="output of the input's type; weights of that type or INT8",
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


_AVX2 = f"{_ORT}, CPU with AVX2"
_QUANTIZE = real(EVEN, clamp_first=True)
_FIRST = real(EVEN, zero_point_first=True)


def _rule(operator: str, definition: Definition, formula: str, counts: str, **given: Any) -> MethodRule:
    return rule_of(
        operator, definition, formula, f"{_AVX2}: {counts}; 0 differ", **{"requantization": _QUANTIZE, **given}
    )


_SUM = (
    "clamp(rte(fma(a, ra, fma(b, rb, k)))), ra = f32(sa / sy), rb = f32(sb / sy), "
    "k = f32(zy - fma(ra, za, f32(rb * zb)))"
)
_IN_REAL = "clamp(rte(f32({} / sy)) + zy), {}"

_UNWEIGHTED = (
    _rule(
        "average_pool",
        average_of_real_values,
        "clamp(rte(f32(f32(f32(sum of f32(sx * (x - zx))) / n) / sy) + zy)), in FP32, row after row; n: the cells "
        "inside the input, or all of the window where padding counts",
        "QLinearAveragePool, 114,966",
        requantization=_FIRST,
        case=both(has_one_type, is_undilated),
        case_text="to the input's type, without dilation",
    ),
    _rule(
        "global_average_pool",
        average_of_sums,
        "clamp(rte(f32(f32(sum of (x - zx)) * s)) + zy), s = f32(sx / f32(sy * n))",
        "QLinearGlobalAveragePool, 2,342 and 9,600",
        requantization=real(EVEN),
        case=both(has_one_type, is_over_space),
        case_text="over all spatial axes, to the input's type",
    ),
    _rule(
        "eltwise_sum",
        sum_by_fused_products,
        _SUM,
        "QLinearAdd, all pairs of codes, 19,660,800",
        requantization=_FIRST,
    ),
    _rule(
        "bias_add",
        sum_by_fused_products,
        f"{_SUM}; b is the operand that is repeated along the innermost axis, whichever side it is on",
        "QLinearAdd with broadcasting, all pairs of codes, 39,321,600",
        requantization=_FIRST,
    ),
    _rule(
        "leaky_relu",
        in_real_numbers,
        _IN_REAL.format("y", "y = x < 0 ? f32(alpha * x) : x, x = f32(sx * (q - zx))"),
        "QLinearLeakyRelu, all codes, 30,720",
    ),
    _rule(
        "relu",
        in_real_numbers,
        _IN_REAL.format("y", "y = min(max(x, low), high), x = f32(sx * (q - zx))"),
        "DequantizeLinear, Relu or Clip, QuantizeLinear, all codes, 18,000 and 61,440",
    ),
    _rule(
        "sigmoid",
        sigmoid_by_quotient,
        _IN_REAL.format("y", "y = 1 / (1 + exp(-f32(sx * (x - zx)))) as a quotient of polynomials of degree 9 and 10"),
        "QLinearSigmoid, all codes, 30,720, and 102,400 next to ties",
    ),
    _rule(
        "quantize",
        quantize,
        "clamp(rte(f32(x / sy)) + zy); values of 2**31 steps or more saturate",
        "QuantizeLinear, 393,216",
        case=None,
        case_text="",
    ),
    _rule(
        "dequantize",
        dequantize,
        "f32(sx * (q - zx))",
        "DequantizeLinear, all codes, 30,720",
        requantization=None,
        case=None,
        case_text="",
    ),
    _rule(
        "softmax",
        softmax_by_large_table,
        "clamp(rte(f32(f32(e * floor(1 / sy)) / sum of e)) + zy), e = f32(exp((d + B) * sx)), d = x - max, "
        "B = max(0, ln(largest FP32 / C) - 5) / sx",
        "QLinearSoftmax, 515,216 and 199,500",
        requirements=(POWERS_IN_FLOAT,),
    ),
    _rule(
        "concat",
        concatenated_by_value,
        "clamp(rte(f32(f32(sx * (x - zx)) / sy)) + zy) of each input; a copy where the grids are the same",
        "QLinearConcat, 32,028 and 30,720",
    ),
    _rule(
        "resize_bilinear",
        resized_and_cut_off,
        "trunc(blend of the four codes in FP32) at ONNX's coordinates within the input; both weights 1/2 where the two "
        "indices are equal",
        "Resize of channels-first images, 224,342",
        requantization=None,
        case=both(has_one_type, resizes_images),
        case_text="of channels-first images, TensorRT's coordinates",
        requirements=(ONE_GRID,),
    ),
)


METHOD = QuantizeMethod(
    name="onnx",
    title="ONNX Runtime, CPU",
    library="onnxruntime 1.31.1",
    rules=(*_WEIGHTED, *_UNWEIGHTED),
    source="measured against onnxruntime 1.31.1 on x86-64",
)
"""QLinear operators and fused Q/DQ groups on x86: requantization in FP32."""
