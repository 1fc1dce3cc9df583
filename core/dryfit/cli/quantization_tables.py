"""The quantization of a network for people: precisions of layers, paths of Q/DQ, scales of tensors, what is missing."""

from __future__ import annotations

from typing import Any

from dryfit.cli.console import print_defaults, print_line, print_list, print_table
from dryfit.cli.placement_tables import heading
from dryfit.cli.quantization_paths import path_text
from dryfit.short_text import count_text, short_name, with_short_names

Report = dict[str, Any]


def print_quantization(report: Report) -> None:
    """The answer.

    Args:
        report: see `dryfit.cli.quantization_report`.
    """
    print_line(heading(report))
    if report["simulated"]:
        print_line(f"Simulated: {report['simulated']}.")
    print_defaults(report["assumed"])
    print_line()
    layers = [
        (
            short_name(one["name"]),
            one["kind"],
            one["device"] or "none",
            one["precision"],
            with_short_names(one["reason"]),
        )
        for one in report["layers"]
    ]
    if layers:
        print_table("Precisions", ["layer", "kind", "device", "precision", "because"], layers)
    paths = [
        (short_name(one["name"]), one["kind"], one["type"], _scale_text(one), one["outcome"], path_text(one))
        for one in report["quantizations"]
    ]
    if paths:
        print_table("Quantizations", ["layer", "kind", "type", "scale", "is", "where, or why not"], paths)
    tensors = [
        (short_name(one["name"]), _scale(one["scale"]), with_short_names(one["reason"])) for one in report["tensors"]
    ]
    if tensors:
        print_table("Scales", ["tensor", "scale", "origin"], tensors)
    print_list("Missing scales", [_missing(one) for one in report["tensors"] if one["scale"] is None])
    print_list("Contradictions", [_conflict(one) for one in report["conflicts"]])
    print_list(
        "Scales of tensors that the network does not have", [(name, "ignored", "") for name in report["unknown"]]
    )
    print_line(_summary(report))
    fallen = report["summary"]["fallback_layers"]
    if fallen:
        print_line(
            f"Not on {report['device']}, Q/DQ among them: {fallen}. `dryfit explain` without --quantization says why."
        )


def _scale_text(one: dict[str, Any]) -> str:
    """One number, or how many there are."""
    return one["granularity"] if one["scale"] is None else _scale(one["scale"])


def _scale(scale: float | None) -> str:
    return "none" if scale is None else f"{scale:.7g}"


def _missing(tensor: dict[str, Any]) -> tuple[str, str, str]:
    waiting = f"wanted by {', '.join(map(short_name, tensor['needed_by']))}" if tensor["needed_by"] else ""
    return short_name(tensor["name"]), with_short_names(tensor["reason"]), waiting


def _conflict(conflict: dict[str, Any]) -> tuple[str, str, str]:
    text = f"{_scale(conflict['scale'])} by hand, and {_scale(conflict['other_scale'])} for {conflict['other']!r}"
    return short_name(conflict["tensor"]), f"{with_short_names(text)}, which shares its range by {conflict['rule']}", ""


def _summary(report: Report) -> str:
    summary = report["summary"]
    texts = []
    if summary["layers"] or not summary["quantizations"]:
        texts.append(f"{count_text(summary['layers'], 'layer')}: {_counts(summary['layers_by_precision'])}")
    if summary["quantizations"]:
        texts.append(f"{summary['quantizations']} Q/DQ: {_counts(summary['quantizations_by_outcome'])}")
    if summary["tensors"]:
        texts.append(f"Scales of {count_text(summary['tensors'], 'tensor')}: {_counts(summary['tensors_by_origin'])}")
    if summary["macs"]:
        shares = {name: count / summary["macs"] for name, count in summary["macs_by_type"].items()}
        told = ", ".join(f"{share:.1%} {name}" for name, share in shares.items())
        texts.append(f"Multiply-accumulates: {told}")
    return f"{'. '.join(texts)}."


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
