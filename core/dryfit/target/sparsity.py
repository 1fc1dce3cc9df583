"""Sparse weights whose zeros a device skips: the required pattern, and the rules on the layers.

A layer that fails a rule still runs, with all multiplications: sparsity is never a reason to reject a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryfit.attrs_classes import frozen
from dryfit.target.checks import FunctionCheck, check
from dryfit.target.limits import LimitTable
from dryfit.target.question import Finding, Question
from dryfit.target.verdict import Verdict

if TYPE_CHECKING:
    from dryfit.quantization.int8_weights import SparsePattern


@frozen(eq=False)
class Sparsity:
    """Conditions under which a device skips zeros of a layer's weights.

    Attributes:
        pattern: the required positions of the zeros.
        rules: the rules. A violation means that no zeros are skipped; warnings and notes are informational. The rule on
            the pattern checks `Question.weights`, and holds for a question without weights.
        pattern_rule: id of the rule on the pattern, which other weights can satisfy.

    Raises:
        UnknownNameError: The table has no such rule.
    """

    pattern: SparsePattern
    rules: LimitTable
    pattern_rule: str

    def __attrs_post_init__(self) -> None:
        self.rules.rule(self.pattern_rule)

    def verdict(self, question: Question) -> Verdict:
        """Return whether the device skips the zeros of a layer's weights, with every violated rule."""
        return self.rules.evaluate(question)

    def is_eligible(self, question: Question) -> bool:
        """Return whether the device would skip the zeros if the weights had the pattern."""
        return self.can_become_sparse(self.verdict(question))

    def has_pattern(self, question: Question) -> bool | None:
        """Return whether the weights of a question have the pattern; None if irrelevant for the layer."""
        rule = self.rules.rule(self.pattern_rule)
        found = self.rules.finding(rule, question)
        if found is not None:
            return None if found.is_failure else False
        return True if rule.applies_to(question) else None

    def can_become_sparse(self, verdict: Verdict) -> bool:
        """Return whether the positions of the zeros are the only reason in a verdict."""
        return all(violation.rule == self.pattern_rule for violation in verdict.violations)


def zeros_follow(pattern: SparsePattern) -> FunctionCheck:
    """Return the check that the weights have a pattern; it holds for a question without weights."""
    allowed = f"at most {pattern.kept} of each {pattern.group} other than 0"

    @check(
        "zeros of the weights",
        f"of each {pattern.group} neighbouring weights along axis {pattern.axis}, at least "
        f"{pattern.group - pattern.kept} must be 0, as the device stores them",
    )
    def holds(question: Question) -> Finding | None:
        weights = question.weights
        dense = 0 if weights is None else pattern.dense_groups(weights)
        if weights is None or not dense:
            return None
        found = f"{dense} of {pattern.groups(weights.shape)} groups with more"
        message = f"weights in groups of {pattern.group} along axis {pattern.axis}: {found}, allowed: {allowed}"
        return Finding(found, allowed, message=message)

    return holds
