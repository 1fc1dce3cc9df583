"""INT8 checks: the scales of a layer's tensors, and notes on layers that the DLA runs in FP16 anyway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dryfit.target.checks import check
from dryfit.target.limits import Finding, Question
from dryfit_dla.quantities import (
    range_of,
)


@check("dynamic range")
def inputs_are_equal(question: Question) -> Finding | None:
    """Both inputs must have the same dynamic range."""
    return _equal_ranges(question, question.inputs)


@check("dynamic range")
def all_are_equal(question: Question) -> Finding | None:
    """Inputs and outputs must have the same dynamic range."""
    return _equal_ranges(question, [*question.inputs, *question.outputs])


def _equal_ranges(question: Question, tensors: Sequence[Any]) -> Finding | None:
    """Missing ranges are not compared: another rule reports them."""
    ranges = {tensor.name: range_of(tensor) for tensor in tensors if not question.is_constant(tensor)}
    stated = {name: bound for name, bound in ranges.items() if bound is not None}
    if len(set(stated.values())) <= 1:
        return None
    return Finding(", ".join([f"{name!r}: {bound:g}" for name, bound in stated.items()]), "the same for all of them")


@check("precision")
def runs_in_fp16(question: Question) -> Finding | None:
    """The layer runs in FP16; its INT8 tensors are converted before and after it."""
    return Finding(
        question.precision.name,
        "FP16",
        message=f"{question.layer.kind} runs in FP16 although {question.precision.name} was requested",
    )
