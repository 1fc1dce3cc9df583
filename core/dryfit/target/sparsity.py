"""Weights whose zeros a device skips: the pattern that they need, and the rules on the layers that have them.

A layer that fails a rule runs all the same, with all its multiplications: sparsity is never a reason to refuse one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from dryfit.target.checks import FunctionCheck, check
from dryfit.target.limits import LimitTable
from dryfit.target.question import Finding, Question
from dryfit.target.verdict import Verdict

if TYPE_CHECKING:
    from dryfit.quantization.int8_weights import SparsePattern


@attrs.frozen(eq=False)
class Sparsity:
    """What a device asks of a layer before it skips zeros of its weights.

    Attributes:
        pattern: where the zeros have to be.
        rules: a violation means that no zeros are skipped; warnings and notes only tell. The rule on the pattern looks
            at `Question.weights`, and holds where a question has none.
        pattern_rule: id of the rule on the pattern, which other weights can mend.

    Raises:
        UnknownNameError: the table has no such rule.
    """

    pattern: SparsePattern
    rules: LimitTable
    pattern_rule: str

    def __attrs_post_init__(self) -> None:
        self.rules.rule(self.pattern_rule)

    def verdict(self, question: Question) -> Verdict:
        """Return whether the device skips the zeros of a layer's weights, with every rule that stands against it."""
        return self.rules.evaluate(question)

    def is_eligible(self, question: Question) -> bool:
        """Return whether it would, if the weights had the pattern."""
        return self.can_become_sparse(self.verdict(question))

    def has_pattern(self, question: Question) -> bool | None:
        """Return whether the weights of a question have the pattern; None where that does not matter for its layer."""
        rule = self.rules.rule(self.pattern_rule)
        found = self.rules.finding(rule, question)
        if found is not None:
            return None if found.is_failure else False
        return True if rule.applies_to(question) else None

    def can_become_sparse(self, verdict: Verdict) -> bool:
        """Return whether a verdict has nothing against a layer but the places of its zeros."""
        return all(violation.rule == self.pattern_rule for violation in verdict.violations)


def zeros_follow(pattern: SparsePattern) -> FunctionCheck:
    """Return the check that the weights have a pattern; it holds where a question has none."""
    allowed = f"at most {pattern.kept} of each {pattern.group} other than 0"

    @check(
        "zeros of the weights",
        f"of each {pattern.group} neighbouring weights along axis {pattern.axis}, at least "
        f"{pattern.group - pattern.kept} are 0, as the device stores them",
    )
    def holds(question: Question) -> Finding | None:
        weights = question.weights
        dense = 0 if weights is None else pattern.dense_groups(weights)
        if weights is None or not dense:
            return None
        found = f"{dense} of {pattern.groups(weights.shape)} groups with more"
        message = f"weights in groups of {pattern.group} along axis {pattern.axis}: {found}, allowed are {allowed}"
        return Finding(found, allowed, message=message)

    return holds
