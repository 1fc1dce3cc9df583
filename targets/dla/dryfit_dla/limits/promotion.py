"""Notes on layers that the DLA computes in FP16 although INT8 was asked for. They refuse nothing."""

from __future__ import annotations

from dryfit.target.checks import check
from dryfit.target.limits import Finding, Question


@check("precision")
def runs_in_fp16(question: Question) -> Finding | None:
    """The layer is computed in FP16, and its INT8 tensors are converted around it."""
    return Finding(
        question.precision.name,
        "HALF",
        message=f"{question.layer.kind} is computed in HALF although {question.precision.name} is asked for",
    )
