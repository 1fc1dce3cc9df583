"""What `dryfit qdq lint` tells, as plain data: the JSON that its `--json` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dryfit.answers.asked import load_network
from dryfit.answers.conditions import FailCondition, Outcome, beginnings
from dryfit.answers.options import NetworkOptions, Shapes
from dryfit.quantization.lint import SEVERITIES, LintFinding, all_lint_rules, lint_network
from dryfit.rule import Rule
from dryfit.short_text import count_text

Report = dict[str, Any]


def lint_report(path: Path, shapes: Mapping[str, Shapes]) -> Report:
    """Every finding in a model, and the rules that they belong to.

    Args:
        path: the model.
        shapes: of dynamic inputs.

    Raises:
        DryfitError: the model cannot be imported.
    """
    network = load_network(path, NetworkOptions(shape=shapes))
    findings = lint_network(network)
    by_severity = Counter(one.rule.severity for one in findings)
    by_rule = Counter(one.rule.id for one in findings)
    kinds = Counter(layer.kind for layer in network.layers)
    return {
        "model": str(path),
        "findings": [_finding(one) for one in findings],
        "rules": [{**rule_data(rule), "findings": by_rule[rule.id]} for rule in all_lint_rules().values()],
        "summary": {
            "quantizes": kinds["quantize"] + kinds["dynamic_quantize"],
            "dequantizes": kinds["dequantize"],
            "findings": len(findings),
            **{f"{severity}s": by_severity[severity] for severity in SEVERITIES},
        },
    }


def rule_data(rule: Rule) -> dict[str, Any]:
    """A rule as plain data."""
    return {"rule": rule.id, "severity": rule.severity, "text": rule.text, "remedy": rule.remedy, "source": rule.source}


def _finding(finding: LintFinding) -> dict[str, Any]:
    return {
        "rule": finding.rule.id,
        "severity": finding.rule.severity,
        "layer": finding.layer,
        "kind": finding.kind,
        "onnx_nodes": list(finding.onnx_nodes),
        "tensor": finding.tensor,
        "found": finding.found,
    }


def lint_outcomes(conditions: Sequence[FailCondition], report: Report) -> list[Outcome]:
    """What each condition of `--fail-on` finds in a report."""
    return [_outcome(condition, report) for condition in conditions]


def _outcome(condition: FailCondition, report: Report) -> Outcome:
    counts = {key: report["summary"][key] for key in ("errors", "warnings", "notes", "findings")}
    if condition.subject in counts:
        return condition.outcome(counts[condition.subject])
    layers = [one["layer"] for one in report["findings"] if condition.subject in beginnings(one["rule"])]
    text = f"{count_text(len(layers), 'finding')} ({', '.join(dict.fromkeys(layers)) or 'none'})"
    return condition.outcome(len(layers), text)
