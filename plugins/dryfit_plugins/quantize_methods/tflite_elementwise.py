"""LiteRT's reference kernels of two tensors, of functions of one number, and of reductions that are no means."""

from __future__ import annotations

from collections.abc import Callable

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import UnaryOperation
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import (
    ONE_GRID,
    SUM_BELOW_ONE,
    both,
    compares_one_type,
    has_one_type,
)
from dryfit.quantization.methods.definitions.activations import activation_limits, relu
from dryfit.quantization.methods.definitions.averages import extreme_over_axes, mean_by_divided_multiplier
from dryfit.quantization.methods.definitions.fixed_point_functions import (
    log_softmax,
    quotient,
    reciprocal_root,
    unit_vectors,
)
from dryfit.quantization.methods.definitions.functions_of_codes import (
    absolute,
    function_by_table,
    function_of,
    hard_swish,
    negated_codes,
    square_root,
)
from dryfit.quantization.methods.definitions.pairs import (
    comparison,
    difference_by_three_multipliers,
    extreme_of_codes,
    parametric_relu,
    product,
    squared_difference,
)
from dryfit.quantization.methods.definitions.real_numbers import TIMES_RECIPROCAL
from dryfit.quantization.methods.method import Requirement
from dryfit.quantization.methods.requantization import ScaleRule
from dryfit_plugins.quantize_methods.records import AWAY, INT8, fixed, formula_of, real, rule_of

_LITERT = "ai-edge-litert 2.3.0, reference kernels (BUILTIN_REF)"
_FLOAT = fixed(AWAY)
_DOUBLE = fixed(AWAY, ScaleRule.DOUBLE)


def _is_function(*kinds: ActivationType | UnaryOperation) -> Callable[[OperatorCall], bool]:
    return both(has_one_type, lambda call: function_of(call) in kinds)


def _is_extreme(call: OperatorCall) -> bool:
    return isinstance(call.layer, Reduce) and call.layer.op in (ReduceOperation.MAX, ReduceOperation.MIN)


def _is_clip_to_one(call: OperatorCall) -> bool:
    return activation_limits(call) in ((-1.0, 1.0), (0.0, 1.0))


def _is_of_scale(scale: float, of_int8: int, of_uint8: int) -> Requirement:
    """That the output has this scale, and the zero point of its type."""

    def holds(call: OperatorCall) -> bool:
        found, zero_point = call.output_grid
        return float(found) == scale and zero_point == (of_int8 if call.to_type is DataType.INT8 else of_uint8)

    text = f"the output's scale is {scale:g} and its zero point {of_int8}, or {of_uint8} of UINT8"
    return Requirement(text=text, holds=holds)


_TABLE = "clamp(raz(f32(f32({}) * f32(1 / sy))) + zy), x = f32(sx * (q - zx))"

TFLITE = (
    rule_of(
        "eltwise_product",
        product,
        formula_of(_FLOAT, sums="(a - za) * (b - zb)"),
        f"{_LITERT}: MUL, all pairs of codes, 2,621,440; 0 differ",
        requantization=_FLOAT,
    ),
    rule_of(
        "eltwise_difference",
        difference_by_three_multipliers,
        "as eltwise_sum, with the second operand subtracted after it is scaled",
        f"{_LITERT}: SUB, all pairs of codes, 2,621,440; 0 differ",
        requantization=_DOUBLE,
        requirements=(SUM_BELOW_ONE,),
    ),
    rule_of(
        "eltwise_extreme",
        extreme_of_codes,
        "max(a, b) or min(a, b)",
        f"{_LITERT}: MAXIMUM and MINIMUM, all pairs of codes, 2,097,152; 0 differ",
        requirements=(ONE_GRID,),
    ),
    rule_of(
        "parametric_relu",
        parametric_relu,
        "clamp(two_step(v, qmul(f32(sx / sy))) + zy), below zero clamp(two_step(v * (a - za), "
        "qmul(f32(f32(sx * sa) / sy))) + zy), v = x - zx",
        f"{_LITERT}: PRELU, all codes, 122,880; 0 differ",
        requantization=_FLOAT,
    ),
    rule_of(
        "relu",
        relu,
        "clamp(two_step(x - zx, qmul(f32(sx / sy))) + zy) to [zy + raz(f32(low / sy)), zy + raz(f32(1 / sy))]",
        f"{_LITERT}: RELU_N1_TO_1 and RELU_0_TO_1, all codes, 40,960; 0 differ",
        requantization=_FLOAT,
        case=both(has_one_type, _is_clip_to_one),
        case_text="to the input's type, from -1 or 0 to 1",
    ),
    rule_of(
        "global_average_pool",
        mean_by_divided_multiplier,
        "as over all spatial axes, n: the elements of the axes",
        f"{_LITERT}: MEAN over other axes, 7,880; 0 differ",
        requantization=_DOUBLE,
    ),
    rule_of(
        "reduce",
        extreme_over_axes,
        "the largest or smallest code",
        f"{_LITERT}: REDUCE_MAX and REDUCE_MIN, 880; 0 differ",
        case=both(has_one_type, _is_extreme),
        case_text="to the input's type, the largest or smallest",
        requirements=(ONE_GRID,),
    ),
    rule_of(
        "function",
        function_by_table,
        _TABLE.format("function(x)"),
        f"{_LITERT}: TANH and GELU, all codes, 204,800, GELU by its approximation 4,096; 0 differ",
        requantization=real(AWAY),
        options={TIMES_RECIPROCAL: True},
        case=_is_function(ActivationType.TANH, ActivationType.GELU_ERF, ActivationType.GELU_TANH),
        case_text="TANH and GELU, to the input's type",
    ),
    rule_of(
        "function",
        function_by_table,
        _TABLE.format("function(x)"),
        f"{_LITERT}: EXP and LOG, all codes, 102,400; 0 differ",
        types=INT8,
        requantization=real(AWAY),
        options={TIMES_RECIPROCAL: True},
        case=_is_function(
            UnaryOperation.EXP,
            UnaryOperation.LOG,
        ),
        case_text="EXP and LOG, to the input's type",
    ),
    rule_of(
        "function",
        square_root,
        "clamp(trunc(f32(f32(sqrt(x)) / sy)) + zy), x = f32(sx * (q - zx))",
        f"{_LITERT}: SQRT, all codes, 51,200; 0 differ",
        types=INT8,
        case=_is_function(UnaryOperation.SQRT),
        case_text="SQRT, to the input's type",
    ),
    rule_of(
        "function",
        absolute,
        "clamp(two_step(|x - zx|, qmul(f32(sx / sy))) + zy)",
        f"{_LITERT}: ABS, all codes, 51,200; 0 differ",
        types=INT8,
        requantization=_FLOAT,
        case=_is_function(UnaryOperation.ABS),
        case_text="ABS, to the input's type",
    ),
    rule_of(
        "function",
        hard_swish,
        "clamp(rdbp(trunc(f * o / 2**15), -S) + zy): o the code times 2**7 on the output's scale and f its factor "
        "min(max(x + 3, 0), 6) / 6, both INT16, by products whose high halves are kept",
        f"{_LITERT}: HARD_SWISH, all codes, 102,400; 0 differ",
        requantization=_FLOAT,
        case=_is_function(ActivationType.HARD_SWISH),
        case_text="HARD_SWISH, to the input's type",
    ),
    rule_of(
        "function",
        reciprocal_root,
        "clamp(two_step(two_step(1 << 20, rsqrt(v)), qmul(1 / f32(sqrt(sx) * sy)), 20 bits less) + zy), v = x - zx; "
        "rsqrt by 5 Newton steps in Q3.28; the highest code where v is 0",
        f"{_LITERT}: RSQRT, all codes, 2,048; 0 differ",
        types=INT8,
        requantization=_DOUBLE,
        case=_is_function(UnaryOperation.RSQRT),
        case_text="RSQRT, to the input's type",
    ),
    rule_of(
        "function",
        negated_codes,
        "-x, which wraps around: scales and zero points are not looked at",
        f"{_LITERT}: NEG, all codes, 2,048; 0 differ",
        types=INT8,
        case=_is_function(UnaryOperation.NEG),
        case_text="NEG, to the input's type",
    ),
    rule_of(
        "eltwise_quotient",
        quotient,
        "clamp(rdbp(srdhm(srdhm(v << h, 1 / |w|), qmul(f32(sa / f32(sb * sy)))), h + bits) + zy), v = +-(a - za), "
        "w = b - zb, h: as far as INT32 lets v be shifted; 1 / |w| by 3 Newton steps; shifts of 32 bits and more as "
        "x86 does them",
        f"{_LITERT}: DIV, all pairs of codes, 7,864,320; 0 differ",
        requantization=_FLOAT,
    ),
    rule_of(
        "eltwise_squared_difference",
        squared_difference,
        "clamp(two_step(d * d, qmul(T * T / (2**14 * sy))) + zy), d = two_step((a - za) << 7, qmul(sa / T)) - "
        "two_step((b - zb) << 7, qmul(sb / T)), T = 2 * max(sa, sb) in f64",
        f"{_LITERT}: SQUARED_DIFFERENCE, all pairs of codes, 524,288; 0 differ",
        types=INT8,
        requantization=_DOUBLE,
    ),
    rule_of(
        "comparison",
        comparison,
        "two_step((a - za) << 8, qmul(sa)) compared with two_step((b - zb) << 8, qmul(sb))",
        f"{_LITERT}: EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL, all pairs of codes, 39,256,064; 0 differ",
        requantization=_DOUBLE,
        case=compares_one_type,
        case_text="of two tensors of the same type",
    ),
    rule_of(
        "l2_normalization",
        unit_vectors,
        "clamp(two_step(v, rsqrt(sum of v * v), 7 bits more) + zy), v = x - zx; rsqrt by 5 Newton steps in Q3.28",
        f"{_LITERT}: L2_NORMALIZATION, 119,700; 0 differ",
        requantization=_DOUBLE,
        requirements=(_is_of_scale(1 / 128, 0, 128),),
    ),
    rule_of(
        "log_softmax",
        log_softmax,
        "clamp(rdbp(d - log(sum of exp(d)), 22) + highest), d = x - max in Q5.26; log by a quotient of polynomials in "
        "Q12.19",
        f"{_LITERT}: LOG_SOFTMAX, 119,700; 0 differ",
        requantization=_DOUBLE,
        requirements=(_is_of_scale(1 / 16, 127, 255),),
    ),
)
"""The reference kernels of LiteRT."""
