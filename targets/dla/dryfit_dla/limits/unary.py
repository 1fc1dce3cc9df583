"""Unary on the DLA."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.checks import at_least, check, each, one_of, parameter, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import HEADERS, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.quantities import operand_type

_UNARY = f"{LAYERS}: Unary layer"
_TRIGONOMETRIC = ("SIN", "COS", "ATAN")


@check("input type")
def input_is_int8(question: Question) -> Finding | None:
    """The input is INT8."""
    dtype = operand_type(question, question.inputs[0])
    return None if dtype is DataType.INT8 else Finding(dtype.name, "INT8")


UNARY = rules(
    "unary",
    rule(
        "unary.operation",
        parameter("op", one_of("ABS", *_TRIGONOMETRIC)),
        source=_UNARY,
        remedy=(
            "A negation is a product with -1, a logical NOT of 0 and 1 is 1 - x; let others run on a fallback device"
        ),
    ),
    rule(
        "unary.software",
        software_is_at_least("8.4"),
        source=f"{HEADERS} of 8.4, IUnaryLayer",
        remedy="Use software 8.4 or newer",
    ),
    rule(
        "unary.operation_xavier",
        parameter("op", one_of("ABS")),
        families="xavier",
        source=f"{OPERATORS}: the others are for Orin",
        remedy="Choose a platform of the Orin family, or fall back",
    ),
    rule(
        "unary.operation_8_6_11",
        parameter("op", one_of("ABS")),
        families="orin",
        until="8.6.11",
        source=f"{OPERATORS}: the others came with TensorRT 8.6.12",
        remedy="Use software 8.6.12 or newer",
    ),
    rule(
        "unary.int8",
        input_is_int8,
        when=parameter("op", one_of(*_TRIGONOMETRIC)),
        source=_UNARY,
        remedy="Set the flag INT8, and give the tensors scales",
    ),
    rule(
        "unary.rank",
        each(quantities.ranks, at_least(4)),
        source=f"{REPORTS}: a tensor of lower rank is reshaped by a layer that the DLA does not have",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
)
