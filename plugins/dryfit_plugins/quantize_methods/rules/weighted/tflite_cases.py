"""Rules of TensorFlow Lite's integer kernels: what they have in common, and the cases that they tell apart."""

from __future__ import annotations

import math
from typing import Any

import attrs

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import (
    INTEGER_BIAS,
    SYMMETRIC_WEIGHTS,
    both,
    has_one_matrix,
    has_one_type,
    is_depthwise,
    is_grouped,
    negated,
)
from dryfit.quantization.methods.definitions.requantized import requantized
from dryfit.quantization.methods.definitions.vector_tails import TAIL_ROUNDING, VECTOR_CHANNELS, VECTOR_ELEMENTS
from dryfit.quantization.methods.definitions.weighted import weighted
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Requantization
from dryfit.quantization.rounding import RoundingMode
from dryfit_plugins.quantize_methods.rules.weighted.records import formula_of

_INT8, _UINT8 = frozenset({DataType.INT8}), frozenset({DataType.UINT8})
_AWAY = RoundingMode.HALF_AWAY_FROM_ZERO.value
CHANNELS_OF_8 = {VECTOR_CHANNELS: 8, TAIL_ROUNDING: _AWAY}
"""Options: vectors of 8 channels; the channels left over are rounded away from zero."""
ELEMENTS_OF_16 = {VECTOR_ELEMENTS: 16, TAIL_ROUNDING: _AWAY}
"""Options: vectors of 16 elements of the whole output; those left over are rounded away from zero."""


def _is_vector_product(call: OperatorCall) -> bool:
    """Whether it is products of matrices of 4 rows or more and 8 columns or more, each with one vector."""
    weights, shape = call.operand(1).values, call.output_shape
    if call.layer.kind == "convolution":
        rows, columns, vectors = weights.shape[0], math.prod(weights.shape[1:]), math.prod(shape) // weights.shape[0]
    elif call.layer.kind == "matrix_multiply":
        rows, columns = shape[-1], weights.size // math.prod(weights.shape[:-2]) // shape[-1]
        vectors = math.prod(shape[-2:-1] if weights.ndim > 2 else shape[:-1])
    else:
        rows, columns, vectors = shape[-3], weights.size // shape[-3], math.prod(shape[:-3])
    return vectors == 1 and rows >= 4 and columns >= 8 and getattr(call.layer, "num_groups", 1) == 1


VECTOR_PRODUCT = "one output position, 4 channels or more, sums of 8 products or more"
VECTOR_PRODUCTS = "a matrix a sample, one output row, 4 columns or more, sums of 8 products or more"
_A_SAMPLE = both(has_one_type, negated(has_one_matrix))
CASES = {
    "": has_one_type,
    "depthwise": both(has_one_type, is_depthwise),
    "groups of several channels": both(has_one_type, is_grouped),
    "one group, or depthwise": both(has_one_type, negated(is_grouped)),
    VECTOR_PRODUCT: both(has_one_type, both(has_one_matrix, _is_vector_product)),
    VECTOR_PRODUCTS: both(_A_SAMPLE, _is_vector_product),
    "a matrix": both(has_one_type, has_one_matrix),
    "a matrix a sample": _A_SAMPLE,
}
"""Cases by their words in the documentation; weights and output have the input's type in all of them."""


def int8_rule(operator: str, record: Requantization, source: str, case: str = "", **given: Any) -> MethodRule:
    """A rule on INT8 input, weights and output; weights are symmetric, with one scale or one a channel."""
    return MethodRule(
        operator=operator,
        definition=weighted,
        requantization=record,
        types=_INT8,
        case=CASES[case],
        case_text=case or "weights and output of its type",
        formula=formula_of(record),
        source=source,
        **{"requirements": (INTEGER_BIAS, SYMMETRIC_WEIGHTS), "fidelity": "confirmed", **given},
    )


def uint8_rule(operator: str, record: Requantization, source: str, case: str = "", **given: Any) -> MethodRule:
    """A rule on UINT8 input, weights and output; weights have one scale and one zero point."""
    signed = int8_rule(operator, record, source, case, **given)
    return attrs.evolve(signed, types=_UINT8, per_channel=False, requirements=(INTEGER_BIAS,))


def requantize_rule(record: Requantization, source: str, **given: Any) -> MethodRule:
    """A rule from INT8 or UINT8 to either."""
    return MethodRule(
        operator="requantize",
        definition=requantized,
        requantization=record,
        formula=formula_of(record, sums="(x - zx)") + ", sw = 1",
        fidelity="confirmed",
        source=source,
        **given,
    )
