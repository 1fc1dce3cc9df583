"""The findings of `dryfit qdq lint` for people, and for services that show tests or findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dryfit.answers.conditions import Outcome
from dryfit.cli.console import print_line, print_list
from dryfit.cli.junit_document import case, junit_document
from dryfit.cli.sarif_document import rule_entry, sarif_document

Report = dict[str, Any]

LISTED = 5
"""So many findings of a rule are listed without --verbose."""


def print_lint(report: Report, *, verbose: bool) -> None:
    """The findings of each rule together, errors first, with what to do.

    Args:
        report: see `dryfit.cli.qdq_report`.
        verbose: whether to list all.
    """
    for rule in report["rules"]:
        found = [one for one in report["findings"] if one["rule"] == rule["rule"]]
        if not found:
            continue
        shown = found if verbose else found[:LISTED]
        title = f"{rule['severity']} {rule['rule']}: {rule['text']}"
        print_list(title, [(one["layer"], _text(one), "") for one in shown])
        if len(shown) < len(found):
            print_line(f"  and {len(found) - len(shown)} more: --verbose lists them")
        print_line(f"  What to do: {rule['remedy']}")
    print_line(_summary(report))


def _text(finding: dict[str, Any]) -> str:
    return f"tensor {finding['tensor']!r}: {finding['found']}"


def _summary(report: Report) -> str:
    summary = report["summary"]
    counts = ", ".join(
        f"{summary[severity]} {severity if summary[severity] != 1 else severity[:-1]}"
        for severity in ("errors", "warnings", "notes")
        if summary[severity]
    )
    what = f"{summary['quantizes']} quantizations and {summary['dequantizes']} dequantizations"
    return f"{report['model']}: {what}, {counts or 'nothing to tell'}"


def junit_text(report: Report, outcomes: Sequence[Outcome]) -> str:
    """JUnit XML in which each rule is a test; one with findings is skipped, with all of them."""
    cases = []
    for rule in report["rules"]:
        found = [f"{one['layer']}: {_text(one)}" for one in report["findings"] if one["rule"] == rule["rule"]]
        cases.append(case(rule["severity"], rule["rule"], "; ".join(found)))
    return junit_document("dryfit qdq lint", report["model"], outcomes, {"rules": cases})


def sarif_text(report: Report, outcomes: Sequence[Outcome]) -> str:
    """SARIF 2.1.0 in which each finding is a result, with the severity of its rule."""
    rules = [
        rule_entry(
            rule["rule"],
            text=rule["text"],
            full_text=f"Source: {rule['source']}.",
            help_text=f"{rule['remedy']}. ",
            level=rule["severity"],
            properties={},
        )
        for rule in report["rules"]
    ]
    return sarif_document(report["model"], rules, _results(report), outcomes, report["summary"])


def _results(report: Report) -> Iterator[dict[str, Any]]:
    for one in report["findings"]:
        yield {
            "ruleId": one["rule"],
            "level": one["severity"],
            "message": {"text": f"{one['layer']}: {_text(one)}"},
            "logicalLocations": [{"name": one["layer"]}],
            "partialFingerprints": {"layerAndRule/v1": f"{one['layer']}:{one['tensor']}:{one['rule']}"},
            "properties": {"tensor": one["tensor"], "onnx_nodes": one["onnx_nodes"]},
        }
