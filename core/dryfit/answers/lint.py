"""Are the Q/DQ of a model where they should be? `dryfit.lint` and `dryfit qdq lint`. Looks at the model as it is."""

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
from dryfit.quantization.lint import SEVERITIES, LintFinding, all_lint_rules, lint_network
from dryfit.rule import Rule
from dryfit.short_text import count_text

LISTED = 5
"""Findings of a rule that are listed unless the text is verbose."""


@attrs.frozen
class LintRule:
    """A rule of the lint, and how often a model violates it.

    Attributes:
        rule: id of the rule.
        severity: `error`, `warning` or `note`.
        text: what the rule recommends.
        remedy: what to do about a finding.
        source: document and section.
        findings: number of findings.
    """

    rule: str
    severity: str
    text: str
    remedy: str
    source: str
    findings: Count


@attrs.frozen
class LintSummary:
    """Counts over a model.

    Attributes:
        quantizes: number of quantize layers.
        dequantizes: number of dequantize layers.
        findings: number of all findings.
        errors: number of findings that devices refuse.
        warnings: findings that cost accuracy or time.
        notes: number of findings for information only.
    """

    quantizes: Count
    dequantizes: Count
    findings: Count
    errors: Count
    warnings: Count
    notes: Count


@attrs.frozen(repr=False)
class LintAnswer(Answer):
    """What the lint finds in a model.

    Attributes:
        model: what the user calls it: the path of the file, or the network's name.
        findings: rule by rule, and in each in the order of the model.
        rules: all rules: errors first, then warnings and notes.
        summary: totals of the findings.
        conditions: the conditions that were requested, in their order.

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
        """The findings of one rule."""
        return [one for one in self.findings if one.rule == rule]

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """The findings of each rule together, errors first, with what to do."""
        for rule in self.rules:
            found = self.findings_of(rule.rule)
            if not found:
                continue
            shown = found if verbose else found[:LISTED]
            title = f"{rule.severity} {rule.rule}: {rule.text}"
            yield Entries(title, [(one.layer, one.text, "") for one in shown])
            if len(shown) < len(found):
                yield Line(f"  and {len(found) - len(shown)} more: --verbose lists them")
            yield Line(f"  What to do: {rule.remedy}")
        yield Line(self.summary_line())

    def summary_line(self) -> str:
        """The counts in one line."""
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
    """Where the Q/DQ layers of a model deviate from TensorRT's recommendations. Looks at the model as it is.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        shape: shapes of dynamic inputs.
        fail_on: conditions, such as `"errors"` or a rule's id; see `LintAnswer.conditions`.
        example_inputs: of a PyTorch module.

    Raises:
        ConfigError: a shape does not fit the model.
        OnnxImportError: the model is damaged or has operators that are not supported.

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
    """What a condition finds: a count of the summary, or the layers that violate a rule."""
    if condition.subject in LINT_SUBJECTS.texts:
        return condition.outcome(getattr(answer.summary, condition.subject))
    layers = [one.layer for one in answer.findings if condition.subject in beginnings(one.rule)]
    text = f"{count_text(len(layers), 'finding')} ({', '.join(dict.fromkeys(layers)) or 'none'})"
    return condition.outcome(len(layers), text)
