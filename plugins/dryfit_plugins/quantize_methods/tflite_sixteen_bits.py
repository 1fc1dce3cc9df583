"""LiteRT's kernels of INT16 activations: weights of INT8, biases of INT64, every zero point 0.

All resolvers run the reference kernels, but for the sigmoid and TANH of some power-of-two scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, UnaryOperation
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import (
    SYMMETRIC,
    both,
    compares_one_type,
    has_int8_weights,
    has_integer_bias,
    has_one_matrix,
    has_one_type,
    has_wide_bias,
    negated,
)
from dryfit.quantization.methods.definitions.functions_of_codes import function_of
from dryfit.quantization.methods.definitions.pairs import comparison_of_codes
from dryfit.quantization.methods.definitions.tables_of_16_bits import (
    function_by_interpolation,
    sigmoid_of_16_bits,
    softmax_of_16_bits,
    tanh_of_16_bits,
)
from dryfit.quantization.methods.definitions.weighted import weighted
from dryfit.quantization.methods.method import Definition, MethodRule, Requirement
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit_plugins.quantize_methods import tflite_elementwise as elementwise
from dryfit_plugins.quantize_methods import tflite_unweighted as unweighted
from dryfit_plugins.quantize_methods import tflite_weighted as of_8_bits
from dryfit_plugins.quantize_methods.records import D2, REAL_DOUBLE, UP, formula_of, rule_of

_INT16 = frozenset({DataType.INT16})
_LITERT = "ai-edge-litert 2.3.0, reference kernels (BUILTIN_REF)"
_SUMS = Requantization(scale_rule=ScaleRule.DOUBLE, encoding=Encoding.Q15, steps=Steps.ONE_STEP, rounding=UP)
_BY_SHORT_MANTISSA = (
    "clamp((sum * M + 2**(14 - S)) >> (15 - S)), (M, S) = qmul(f64(sx) * f64(sw) / f64(sy)) with M rounded to 15 bits; "
    "sums in INT64"
)


def _confirmed(counts: str) -> str:
    return f"{_LITERT}: {counts}; 0 differ"


_ANY_BIAS = Requirement(
    text="a bias is INT32 or INT64, in units of input scale * weight scale",
    holds=lambda call: has_integer_bias(call) or has_wide_bias(call),
)


def _weighted(operator: str, counts: str, **given: Any) -> MethodRule:
    """A rule of one requantization of INT64 sums by a mantissa of 15 bits, unless other fields are given."""
    fields: dict[str, Any] = {
        "requantization": _SUMS,
        "formula": _BY_SHORT_MANTISSA,
        "requirements": (SYMMETRIC,),
        **given,
    }
    return MethodRule(
        operator=operator,
        definition=weighted,
        types=_INT16,
        fidelity="confirmed",
        source=_confirmed(counts),
        **fields,
    )


def _by_bias(operator: str, wide: str, narrow: str) -> tuple[MethodRule, MethodRule]:
    """The rules with a bias of INT64 or none, and with one of INT32, by what they were compared with."""
    return (
        _weighted(
            operator,
            wide,
            case=both(has_int8_weights, has_wide_bias),
            case_text="weights of INT8, a bias of INT64 or none",
        ),
        _weighted(
            operator,
            narrow,
            requantization=D2,
            formula=formula_of(D2),
            case=both(has_int8_weights, has_integer_bias),
            case_text="weights of INT8, a bias of INT32",
        ),
    )


_WEIGHTED = (
    *_by_bias("convolution", "convolution and depthwise, 314,544", "convolution and depthwise, 130,536"),
    *_by_bias("deconvolution", "18,450", "8,550"),
    _weighted(
        "inner_product",
        "52,380",
        requantization=REAL_DOUBLE,
        formula=formula_of(REAL_DOUBLE),
        case=both(has_int8_weights, has_one_matrix),
        case_text="weights of INT8, a matrix",
        requirements=(SYMMETRIC, _ANY_BIAS),
    ),
    _weighted(
        "inner_product",
        "BATCH_MATMUL, 3,600",
        case=both(has_one_type, negated(has_one_matrix)),
        case_text="one matrix per sample, both of INT16",
        per_channel=False,
    ),
)


def _as_of_8_bits(
    rules: Sequence[MethodRule], operator: str, counts: str, case_text: str = "", *, is_symmetric: bool = True
) -> MethodRule:
    """The rule of INT8 whose arithmetic INT16 has, too: the first of the operator, or that of a case."""
    found = next(
        rule
        for rule in rules
        if rule.operator == operator and DataType.INT8 in rule.types and case_text in rule.case_text
    )
    requirements = (*found.requirements, SYMMETRIC) if is_symmetric else found.requirements
    return attrs.evolve(found, types=_INT16, requirements=requirements, source=_confirmed(counts))


_OF_32768THS = Requirement(
    text="the output's scale is 1/32768", holds=lambda call: float(call.output_grid[0]) == 1 / 2**15
)
_SIGMOID_TABLE = "the sigmoid of i / 24, i = 0 to 255, in 65,536ths, moved by half of what a straight line misses"
_PLACES = (
    "p = 3 * x << k where sx is 2**({}), else (x * M + half) >> n, M = sx * 12288 * 2**n cut to a whole number from "
    "2**14 to 2**15"
)
_TABLE = "513 values, each moved by half of what a straight line misses the middle by, and straight lines of 7 bits"


def _rule(operator: str, definition: Definition, formula: str, counts: str, **given: Any) -> MethodRule:
    fields = {"types": _INT16, "requirements": (SYMMETRIC,), **given}
    return rule_of(operator, definition, formula, _confirmed(counts), **fields)


def _is(*kinds: ActivationType | UnaryOperation) -> Callable[[OperatorCall], bool]:
    return both(has_one_type, lambda call: function_of(call) in kinds)


def _is_not_equality(call: OperatorCall) -> bool:
    is_equality = isinstance(call.layer, Elementwise) and call.layer.op is ElementWiseOperation.EQUAL
    return compares_one_type(call) and not is_equality


_OWN = (
    _rule(
        "sigmoid",
        sigmoid_of_16_bits,
        f"{_SIGMOID_TABLE}; between its entries 9 bits of {_PLACES.format('-12')}",
        "LOGISTIC, all codes, 524,288",
        requirements=(SYMMETRIC, _OF_32768THS),
    ),
    _rule(
        "function",
        tanh_of_16_bits,
        f"2 * sigmoid(2 * x) - 1: {_SIGMOID_TABLE}; between its entries 8 bits of {_PLACES.format('-12 or -11')}",
        "TANH, all codes, 524,288",
        case=_is(ActivationType.TANH),
        case_text="TANH, to the input's type",
        requirements=(SYMMETRIC, _OF_32768THS),
    ),
    _rule(
        "function",
        function_by_interpolation,
        f"a table over all codes in FP32: {_TABLE}",
        "GELU, EXP, LOG and RSQRT, all codes, 2,621,440",
        case=_is(
            ActivationType.GELU_ERF,
            ActivationType.GELU_TANH,
            UnaryOperation.EXP,
            UnaryOperation.LOG,
            UnaryOperation.RSQRT,
        ),
        case_text="GELU, EXP, LOG and RSQRT, to the input's type",
    ),
    _rule(
        "softmax",
        softmax_of_16_bits,
        f"exp(x - max) * (1 / sum of exp(x - max)), both by tables of FP64: {_TABLE}; exp from -10 to 0, sums in "
        "Q16.15",
        "SOFTMAX, 119,700",
        requantization=D2,
        requirements=(SYMMETRIC, _OF_32768THS),
    ),
    _rule(
        "comparison",
        comparison_of_codes,
        "a compared with b: scales are not looked at",
        "2,880,000",
        case=_is_not_equality,
        case_text="GREATER, GREATER_EQUAL, LESS and LESS_EQUAL of two tensors",
    ),
)

TFLITE = (
    *_WEIGHTED,
    *_OWN,
    _as_of_8_bits(unweighted.TFLITE, "average_pool", "26,460"),
    _as_of_8_bits(elementwise.TFLITE, "global_average_pool", "MEAN, 3,080"),
    _as_of_8_bits(unweighted.TFLITE, "eltwise_sum", "ADD, 720,000"),
    _as_of_8_bits(unweighted.TFLITE, "bias_add", "ADD with broadcasting, 720,000"),
    _as_of_8_bits(elementwise.TFLITE, "eltwise_difference", "SUB, 720,000"),
    _as_of_8_bits(elementwise.TFLITE, "eltwise_product", "MUL, 720,000"),
    _as_of_8_bits(elementwise.TFLITE, "eltwise_quotient", "DIV, 720,000"),
    _as_of_8_bits(elementwise.TFLITE, "eltwise_extreme", "MAXIMUM and MINIMUM, 1,440,000"),
    _as_of_8_bits(elementwise.TFLITE, "comparison", "EQUAL, 720,000"),
    _as_of_8_bits(elementwise.TFLITE, "reduce", "REDUCE_MAX and REDUCE_MIN, 1,200"),
    _as_of_8_bits(elementwise.TFLITE, "function", "SQRT, all codes, 524,288", "SQRT"),
    _as_of_8_bits(elementwise.TFLITE, "function", "ABS, all codes, 524,288", "ABS"),
    _as_of_8_bits(elementwise.TFLITE, "function", "NEG, all codes, 524,288", "NEG"),
    _as_of_8_bits(unweighted.TFLITE, "relu", "RELU and RELU6, all codes, 1,048,576"),
    _as_of_8_bits(unweighted.TFLITE, "leaky_relu", "all codes, 524,288"),
    _as_of_8_bits(unweighted.TFLITE, "concat", "5,040"),
    _as_of_8_bits(unweighted.TFLITE, "resize_bilinear", "48,900"),
    _as_of_8_bits(unweighted.TFLITE, "quantize", "91,432"),
    _as_of_8_bits(unweighted.TFLITE, "dequantize", "all codes, 524,288"),
    _as_of_8_bits(
        of_8_bits.TFLITE, "requantize", "from and to INT16 and to INT8, all codes, 7,879,680", is_symmetric=False
    ),
)
"""The reference kernels of LiteRT."""


_WITHOUT_DELEGATE = "ai-edge-litert 2.3.0, default resolver: XNNPACK leaves INT16 to TensorFlow Lite's own kernels"
_NO_SHORT_SCALE = Requirement(
    text="the input's scale is not 2**-12, or 2**-11 of TANH, by which the optimized kernels have another table",
    holds=lambda call: float(call.operand(0).one_scale) not in (2.0**-12, 2.0**-11),
)


_WIDE_BIAS = Requirement(text="a bias is INT64, in units of input scale * weight scale", holds=has_wide_bias)


def _optimized(rule: MethodRule) -> MethodRule:
    """A rule of the reference kernels as the optimized ones have it."""
    source = f"{_WITHOUT_DELEGATE}: same as the reference kernels; none differ"
    if rule.definition in (sigmoid_of_16_bits, tanh_of_16_bits):
        return attrs.evolve(rule, requirements=(*rule.requirements, _NO_SHORT_SCALE), source=source)
    if rule.requantization == REAL_DOUBLE:
        return attrs.evolve(rule, requirements=(SYMMETRIC, _WIDE_BIAS), source=source)
    if rule.operator == "quantize":
        counts = f"{_WITHOUT_DELEGATE}: 68,574; 0 differ"
        return attrs.evolve(unweighted.QUANTIZE_BY_RECIPROCAL, types=_INT16, requirements=(SYMMETRIC,), source=counts)
    return attrs.evolve(rule, source=source)


OPTIMIZED = tuple(_optimized(rule) for rule in TFLITE)
"""What the default resolver runs, and the optimized kernels."""
