"""What the commands tell of the weights of an engine that can be exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dryfit.answers.text import bytes_text
from dryfit.engine.plan import Plan
from dryfit.engine.refit_record import RefitRecord


def refit_line(plan: Plan) -> str:
    """One line on what a refit of an engine may change; "" where there is no refit."""
    record = plan.refit
    if record is None:
        return ""
    size = sum(one.dtype.bytes_of(one.size) for one in record.weights)
    which = "takes the weights that it was built with" if record.is_identical else "takes new weights"
    state = ", and has none before a refit" if record.is_stripped else ""
    return f"Refittable: {which}, {len(record.weights)} of {bytes_text(size)} in all{state}"


def weights_report(record: RefitRecord) -> Sequence[dict[str, Any]]:
    """The weights of an engine, as plain data."""
    return [
        {
            "name": one.name,
            "type": one.dtype.name,
            "shape": list(one.shape),
            "places": [{"layer": place.layer, "role": place.role.name} for place in one.places],
        }
        for one in record.weights
    ]
