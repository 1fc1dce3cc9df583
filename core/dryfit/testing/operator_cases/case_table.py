"""Cases to try an operator of a method with, drawn so that the method's library answers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from dryfit.errors import UnknownNameError
from dryfit.testing.operator_cases import other_cases, weighted_cases
from dryfit.testing.operator_cases.habits import CaseTrial, habits_of
from dryfit.testing.operator_cases.operator_case import OperatorCase
from dryfit.testing.operator_cases.sixteen_bit_cases import SIXTEEN_BITS

DRAWN: Mapping[str, Callable[[CaseTrial], Iterator[OperatorCase]]] = {
    "average_pool": other_cases.average_pool_cases,
    "bias_add": other_cases.bias_add_cases,
    "comparison": other_cases.comparison_cases,
    "concat": other_cases.concat_cases,
    "convolution": weighted_cases.convolution_cases,
    "deconvolution": weighted_cases.deconvolution_cases,
    "dequantize": other_cases.dequantize_cases,
    "eltwise_difference": other_cases.eltwise_difference_cases,
    "eltwise_extreme": other_cases.eltwise_extreme_cases,
    "eltwise_product": other_cases.eltwise_product_cases,
    "eltwise_quotient": other_cases.eltwise_quotient_cases,
    "eltwise_squared_difference": other_cases.eltwise_squared_difference_cases,
    "eltwise_sum": other_cases.eltwise_sum_cases,
    "function": other_cases.function_cases,
    "global_average_pool": other_cases.global_average_pool_cases,
    "inner_product": weighted_cases.inner_product_cases,
    "l2_normalization": other_cases.l2_normalization_cases,
    "leaky_relu": other_cases.leaky_relu_cases,
    "log_softmax": other_cases.log_softmax_cases,
    "parametric_relu": other_cases.parametric_relu_cases,
    "quantize": other_cases.quantize_cases,
    "reduce": other_cases.reduce_cases,
    "relu": other_cases.relu_cases,
    "requantize": other_cases.requantize_cases,
    "resize_bilinear": other_cases.resize_bilinear_cases,
    "sigmoid": other_cases.sigmoid_cases,
    "softmax": other_cases.softmax_cases,
}
"""Operator to what draws its cases."""

FURTHER: Mapping[str, Callable[[CaseTrial], Iterator[OperatorCase]]] = {
    "function": other_cases.more_function_cases,
    "global_average_pool": other_cases.mean_over_axes_cases,
    "relu": other_cases.clip_to_one_cases,
}
"""Operator to what draws more of its cases: apart, so that the golden vectors of the others stay those of their
libraries, not all of which are there when one is added."""


def trial_cases(
    operator: str, method: str, *, count: int, seed: int = 7, is_exhaustive: bool = True
) -> list[OperatorCase]:
    """The same cases in every run.

    Unary operators are tried with all 256 codes and sums with all 65,536 pairs, each with `count` sets of scales for
    each type; weighted operators with biases that seek ties.

    Args:
        operator: name, such as `convolution`.
        method: whose library answers; it says which types and grids are drawn.
        count: how many rounds.
        seed: of the generator.
        is_exhaustive: all pairs and all ties; else a share of them.

    Raises:
        UnknownNameError: there are no cases of the operator, or no library of the method.
    """
    if operator not in DRAWN:
        raise UnknownNameError("operator", operator, DRAWN)
    random = np.random.default_rng([seed, *operator.encode()])
    return list(DRAWN[operator](CaseTrial(habits_of(method), random, count, is_exhaustive)))


def further_cases(operator: str, method: str, *, count: int, seed: int = 7) -> list[OperatorCase]:
    """As `trial_cases`, of the cases in `FURTHER`, and with codes of INT16 where the library takes them."""
    random = np.random.default_rng([seed, 1, *operator.encode()])
    habits = habits_of(method)
    trial = CaseTrial(habits, random, count, is_exhaustive=False)
    draws = [FURTHER.get(operator), SIXTEEN_BITS.get(operator) if habits.has_sixteen_bits else None]
    return [case for draw in draws if draw is not None for case in draw(trial)]
