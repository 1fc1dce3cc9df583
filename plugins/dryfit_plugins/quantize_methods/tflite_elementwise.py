"""LiteRT's reference kernels of two tensors, of functions of one number, and of reductions that are no means."""

from __future__ import annotations

from collections.abc import Callable

from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import UnaryOperation
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import ONE_GRID, SUM_BELOW_ONE, both, has_one_type
from dryfit.quantization.methods.definitions.activations import activation_limits, relu
from dryfit.quantization.methods.definitions.averages import extreme_over_axes, mean_by_divided_multiplier
from dryfit.quantization.methods.definitions.functions_of_codes import (
    absolute,
    function_by_table,
    function_of,
    hard_swish,
    square_root,
)
from dryfit.quantization.methods.definitions.pairs import (
    difference_by_three_multipliers,
    extreme_of_codes,
    parametric_relu,
    product,
)
from dryfit.quantization.methods.definitions.real_numbers import TIMES_RECIPROCAL
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
        f"{_LITERT}: TANH and GELU, all codes, 204,800; 0 differ",
        requantization=real(AWAY),
        options={TIMES_RECIPROCAL: True},
        case=_is_function(ActivationType.TANH, ActivationType.GELU_ERF),
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
)
"""The reference kernels of LiteRT."""
