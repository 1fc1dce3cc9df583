"""Check the Q/DQ placement of a model without changing it: `dryfit.lint` and `dryfit qdq lint`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from dryfit.answers.asked import Model, load_network, model_source
from dryfit.answers.conditions import LINT_SUBJECTS, FailCondition, Outcome, beginnings
from dryfit.answers.json_data import Count
from dryfit.answers.options import NetworkOptions, ShapesSaid
from dryfit.answers.text import Answer, Block, Entries, Line
from dryfit.attrs_classes import frozen
from dryfit.quantization.lint import SEVERITIES, LintFinding, all_lint_rules, lint_network
from dryfit.rule import Rule
from dryfit.short_text import count_text, short_name, with_short_names

LISTED = 5
"""Findings of a rule that are listed unless the text is verbose."""


@frozen
class LintRule:
    """A lint rule, with its number of violations in a model.

    Attributes:
        rule: id of the rule.
        severity: `error`, `warning` or `note`.
        text: what the rule recommends.
        remedy: how to fix a finding.
        source: document and section.
        findings: number of findings.
    """

    rule: str
    severity: str
    text: str
    remedy: str
    source: str
    findings: Count


@frozen
class LintSummary:
    """Counts over a model.

    Attributes:
        quantizes: number of quantize layers.
        dequantizes: number of dequantize layers.
        findings: total number of findings.
        errors: number of findings that devices reject.
        warnings: number of findings that cost accuracy or latency.
        notes: number of findings for information only.
    """

    quantizes: Count
    dequantizes: Count
    findings: Count
    errors: Count
    warnings: Count
    notes: Count


@frozen(repr=False)
class LintAnswer(Answer):
    """The lint findings of a model.

    Attributes:
        model: path of the model file, or name of the network.
        findings: findings grouped by rule, in model order within each rule.
        rules: all lint rules: errors first, then warnings and notes.
        summary: totals of the findings.
        conditions: results of the requested conditions, in the requested order.

    Example:
        >>> [(one.rule, one.layer) for one in dryfit.lint("digits-qdq.onnx").findings]
        [('qdq.output.nonlinear', 'conv2'), ('qdq.unweighted.one_sided', 'average'), ...]
    """

    COMMAND: ClassVar[str] = "qdq lint"

    model: str
    findings: Sequence[LintFinding]
    rules: Sequence[LintRule]
    summary: LintSummary
    conditions: Sequence[Outcome] = ()

    def findings_of(self, rule: str) -> list[LintFinding]:
        """Return the findings of one rule."""
        return [one for one in self.findings if one.rule == rule]

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the findings grouped by rule, errors first, with their remedies."""
        for rule in self.rules:
            found = self.findings_of(rule.rule)
            if not found:
                continue
            shown = found if verbose else found[:LISTED]
            title = f"{rule.severity} {rule.rule}: {rule.text}"
            yield Entries(title, [(short_name(one.layer), with_short_names(one.text), "") for one in shown])
            if len(shown) < len(found):
                yield Line(f"  and {len(found) - len(shown)} more: --verbose lists them")
            yield Line(f"  What to do: {rule.remedy}")
        yield Line(self.summary_line())

    def summary_line(self) -> str:
        """Return a one-line summary of the counts."""
        one = self.summary
        counts = [(one.errors, "error"), (one.warnings, "warning"), (one.notes, "note")]
        found = ", ".join(count_text(number, noun) for number, noun in counts if number)
        what = f"{one.quantizes} quantizations and {one.dequantizes} dequantizations"
        return f"{self.model}: {what}, {found or 'no findings'}"


def lint(
    model: Model,
    *,
    shape: ShapesSaid | None = None,
    fail_on: str | Sequence[str | FailCondition] = (),
    example_inputs: Any = None,
) -> LintAnswer:
    """Find Q/DQ layers that deviate from TensorRT's recommendations. The model is not changed.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        shape: shapes of dynamic inputs.
        fail_on: conditions, such as `"errors"` or a rule's id; see `LintAnswer.conditions`.
        example_inputs: example inputs of a PyTorch module.

    Raises:
        ConfigError: A shape does not fit the model.
        OnnxImportError: The model is corrupt or has unsupported operators.

    Example:
        >>> dryfit.lint("digits-qdq.onnx", fail_on="errors").summary.warnings
        2
    """
    conditions = LINT_SUBJECTS.conditions(fail_on)
    source, folder, name = model_source(model, example_inputs)
    network = load_network(source, NetworkOptions.said({"shape": shape} if shape else {}), folder)
    findings = lint_network(network)
    by_rule = Counter(one.rule for one in findings)
    by_severity = Counter(one.severity for one in findings)
    kinds = Counter(layer.kind for layer in network.layers)
    answer = LintAnswer(
        model=name or network.name,
        findings=findings,
        rules=[_rule(rule, by_rule) for rule in all_lint_rules().values()],
        summary=LintSummary(
            quantizes=kinds["quantize"] + kinds["dynamic_quantize"],
            dequantizes=kinds["dequantize"],
            findings=len(findings),
            **{f"{severity}s": by_severity[severity] for severity in SEVERITIES},
        ),
    )
    return attrs.evolve(answer, conditions=[_outcome(one, answer) for one in conditions])


def _rule(rule: Rule, findings: Mapping[str, int]) -> LintRule:
    return LintRule(rule.id, rule.severity, rule.text, rule.remedy, rule.source, findings[rule.id])


def _outcome(condition: FailCondition, answer: LintAnswer) -> Outcome:
    """Evaluate a condition: a count of the summary, or the layers that violate a rule."""
    if condition.subject in LINT_SUBJECTS.texts:
        return condition.outcome(getattr(answer.summary, condition.subject))
    layers = [one.layer for one in answer.findings if condition.subject in beginnings(one.rule)]
    text = f"{count_text(len(layers), 'finding')} ({', '.join(dict.fromkeys(layers)) or 'none'})"
    return condition.outcome(len(layers), text)
