"""A report on sparse weights for people."""

from __future__ import annotations

from typing import Any

from dryfit.cli.console import print_defaults, print_line, print_list, print_table

Report = dict[str, Any]


def print_sparsity(report: Report, *, verbose: bool) -> None:
    """The answer: a table of layers, and each reason once with its layers.

    Args:
        report: see `dryfit.cli.sparsity_report`.
        verbose: also warnings and notes.
    """
    print_line(_heading(report))
    print_line(report["note"])
    print_defaults(report["assumed"])
    print_line()
    rows = [
        (
            one["name"],
            f"{100 * one['macs_share']:.1f} %",
            "yes" if one["eligible"] else "no",
            {True: "yes", False: "no", None: "-"}[one["has_pattern"]],
            "yes" if one["sparse"] else "no",
            _why_not(one),
        )
        for one in report["layers"]
    ]
    if rows:
        pattern = report["pattern"] or "pattern"
        print_table("", ["layer", "MACs", "eligible", pattern, "zeros skipped", "why not"], rows)
    print_list("Zeros are multiplied, because", _reasons(report, "violations"))
    if verbose:
        print_list("Warnings", _reasons(report, "warnings"))
        print_list("Notes", _reasons(report, "notes"))
    print_line(summary_line(report["summary"]))


def summary_line(summary: Report) -> str:
    """The numbers in one line."""
    return (
        f"Zeros are skipped in {summary['sparse']} of {summary['layers']} layers with weights, "
        f"{100 * summary['sparse_macs_share']:.1f} % of the multiply-accumulates; {summary['eligible']} are eligible "
        f"({100 * summary['eligible_macs_share']:.1f} %), {summary['unpruned']} of them not pruned"
    )


def _why_not(layer: Report) -> str:
    words = [one["rule"].rpartition(".")[2] for one in layer["violations"]]
    if layer["asked"] is None:
        words.append(f"{layer['device'] or 'no device'} skips none")
    elif layer["device"] != layer["asked"]:
        words.append(f"runs on {layer['device'] or 'no device'}")
    return ", ".join(words)


def _reasons(report: Report, severity: str) -> list[tuple[str, str, str]]:
    """(rule, what it found, what to do), each rule once; with the first layers that it was found in."""
    found: dict[str, list[tuple[str, Report]]] = {}
    for layer in report["layers"]:
        for one in layer[severity]:
            found.setdefault(one["rule"], []).append((layer["name"], one))
    reasons = []
    for rule, layers in found.items():
        name, first = layers[0]
        more = len(layers) - 1
        others = f" and {more} other {'layer' if more == 1 else 'layers'}" if more else ""
        reasons.append((rule, f"{first['message']} ({name}{others})", first["remedy"]))
    return reasons


def _heading(report: Report) -> str:
    variant = " ".join(filter(None, [report["platform"], report["software"]]))
    pattern = f" (pattern {report['pattern']})" if report["pattern"] else ", which skips no zeros"
    return f"Sparse weights of {report['model']} on {report['device']} {variant}{pattern}"
