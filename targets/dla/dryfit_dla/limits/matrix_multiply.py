"""Matrix multiply on the DLA: only products with a constant matrix are supported, as 1x1 convolutions.

A 1x1 convolution within the limits of channels always fits the convolution buffer when its rows stand one below the
other, so there is no rule for that here.
"""

from __future__ import annotations

import math
from typing import Any

from dryfit.target.checks import Quantity, between, check, each, equals, one_of, parameter
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import LAYERS, OPERATORS, REPORTS, RESHAPE

_CONVOLUTION = f"{LAYERS}: Convolution and Fully Connected layers; {OPERATORS}: it runs as a 1x1 convolution"


def _matrix(question: Question) -> tuple[tuple[int, ...], int, int]:
    """(batch extents, extent that is summed over, columns) of the second operand."""
    layer: Any = question.layer
    shape = question.spec(question.inputs[1]).shape
    if layer.op1.name == "VECTOR":
        return shape[:-1], shape[-1], 1
    summed, columns = shape[-2:] if layer.op1.name == "NONE" else (shape[-1], shape[-2])
    return shape[:-2], summed, columns


@check("operands")
def second_operand_is_constant(question: Question) -> Finding | None:
    """The second operand must be constant, and the first must not be."""
    first, second = (question.is_constant(tensor) for tensor in question.inputs)
    if second and not first:
        return None
    words = {True: "constant", False: "computed"}
    return Finding(f"{words[first]} and {words[second]}", "computed and constant")


@check("shape of the second operand")
def second_operand_is_one_matrix(question: Question) -> Finding | None:
    """The second operand must be one matrix or vector for the whole batch."""
    batch = _matrix(question)[0]
    return (
        None if math.prod(batch) == 1 else Finding(str(question.spec(question.inputs[1]).shape), "batch extents of 1")
    )


summed = Quantity("inner dimension", lambda question: _matrix(question)[1])
columns = Quantity("number of output columns", lambda question: _matrix(question)[2])

MATRIX_MULTIPLY = rules(
    "matrix_multiply",
    rule(
        "matrix_multiply.constant",
        second_operand_is_constant,
        source=f"{OPERATORS}: the second operand must be constant; builder logs confirm it for two computed ones",
        remedy="Rewrite the product as a convolution with a constant kernel",
    ),
    rule(
        "matrix_multiply.one_matrix",
        second_operand_is_one_matrix,
        source=f"{OPERATORS}: one convolution has one kernel",
        fidelity="inferred",
        remedy="Use one product per batch element, or a grouped convolution",
    ),
    rule(
        "matrix_multiply.first_operand",
        parameter("op0", one_of("NONE", "VECTOR")),
        source=f"{OPERATORS}: a convolution does not transpose its input",
        fidelity="inferred",
        remedy="Transpose with a rank-4 shuffle before the layer",
    ),
    rule(
        "matrix_multiply.summed",
        parameter(summed, between(1, 8192)),
        source=_CONVOLUTION,
        remedy="Split the inner dimension, and add the results",
    ),
    rule(
        "matrix_multiply.columns",
        parameter(columns, between(1, 8192)),
        source=_CONVOLUTION,
        remedy="Split the constant by columns, and concatenate along C",
    ),
    rule(
        "matrix_multiply.rank",
        each(quantities.ranks, equals(4)),
        source=f"{REPORTS}: tensors of any other rank are reshaped around the layer, which the DLA does not support",
        severity="warning",
        fidelity="inferred",
        remedy=f"{RESHAPE}, or replace the layer with a 1x1 convolution; otherwise a segment that begins or ends "
        "with it has no loadable (`dryfit export loadables` skips it)",
    ),
)
