"""The quantization of a network for people: layers with precisions, tensors with scales, and what is missing."""

from __future__ import annotations

from typing import Any

from dryfit.cli.console import print_line, print_list, print_table
from dryfit.cli.placement_tables import heading

Report = dict[str, Any]


def print_quantization(report: Report) -> None:
    """The answer.

    Args:
        report: see `dryfit.cli.quantization_report`.
    """
    print_line(heading(report))
    if report["simulated"]:
        print_line(f"Simulated: {report['simulated']}.")
    if report["assumed"]:
        print_line(f"Assumed, since nothing was said: {', '.join(report['assumed'])}.")
    print_line()
    layers = [
        (one["name"], one["kind"], one["device"] or "none", one["precision"], one["reason"]) for one in report["layers"]
    ]
    if layers:
        print_table("Precisions", ["layer", "kind", "device", "precision", "because"], layers)
    tensors = [(one["name"], _scale(one["scale"]), one["reason"]) for one in report["tensors"]]
    if tensors:
        print_table("Scales", ["tensor", "scale", "origin"], tensors)
    print_list("Missing scales", [_missing(one) for one in report["tensors"] if one["scale"] is None])
    print_list("Contradictions", [_conflict(one) for one in report["conflicts"]])
    print_list(
        "Scales of tensors that the network does not have", [(name, "ignored", "") for name in report["unknown"]]
    )
    print_line(_summary(report))


def _scale(scale: float | None) -> str:
    return "none" if scale is None else f"{scale:.7g}"


def _missing(tensor: dict[str, Any]) -> tuple[str, str, str]:
    waiting = f"wanted by {', '.join(tensor['needed_by'])}" if tensor["needed_by"] else ""
    return tensor["name"], tensor["reason"], waiting


def _conflict(conflict: dict[str, Any]) -> tuple[str, str, str]:
    text = f"{_scale(conflict['scale'])} by hand, and {_scale(conflict['other_scale'])} for {conflict['other']!r}"
    return conflict["tensor"], f"{text}, which shares its range by {conflict['rule']}", ""


def _summary(report: Report) -> str:
    summary = report["summary"]
    layers = ", ".join(f"{count} {name}" for name, count in summary["layers_by_precision"].items())
    tensors = ", ".join(f"{count} {name}" for name, count in summary["tensors_by_origin"].items())
    return (
        f"{summary['layers']} layers: {layers or 'none'}. Scales of {summary['tensors']} tensors: {tensors or 'none'}."
    )
