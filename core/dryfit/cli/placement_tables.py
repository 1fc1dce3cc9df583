"""Headings of reports that are plain data."""

from __future__ import annotations

from typing import Any

from dryfit.answers.text import bytes_text, device_text
from dryfit.estimate_text import time_text


def heading(report: dict[str, Any]) -> str:
    """What was asked."""
    device = device_text(report["device"], report["platform"], report["software"])
    precisions = ", ".join(word.upper() for word in report["precisions"]) or "FP32"
    fallback = f"fallback to {report['fallback']}" if report["fallback"] else "no fallback"
    return f"{report['model']} on {device}, {precisions}, {fallback}"


def estimate_text(estimate: dict[str, Any]) -> str:
    """A target's estimate in one sentence, the time with its error."""
    time, is_bound = estimate["microseconds"], estimate["is_lower_bound"]
    facts = [
        *([] if time is None else [time_text(time, estimate["error_factor"], is_lower_bound=is_bound)]),
        f"{bytes_text(estimate['bytes_moved'])} moved",
        f"{estimate['macs']:,} multiply-accumulates",
    ]
    return f"estimated: {', '.join(facts)} ({estimate['fidelity']}: {estimate['basis']})"
