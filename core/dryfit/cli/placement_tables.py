"""Headings of reports that are plain data."""

from __future__ import annotations

from typing import Any

from dryfit.answers.text import device_text


def heading(report: dict[str, Any]) -> str:
    """What was asked."""
    device = device_text(report["device"], report["platform"], report["software"])
    precisions = ", ".join(word.upper() for word in report["precisions"]) or "FP32"
    fallback = f"fallback to {report['fallback']}" if report["fallback"] else "no fallback"
    return f"{report['model']} on {device}, {precisions}, {fallback}"
