"""Codes and outputs of a quantized network by several methods, beside those of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.comparison.tensor_difference import Difference
from dryfit.answers.json_data import Count
from dryfit.builder.assessment import OperatorRule
from dryfit.json_names import json_names
from dryfit.network.data_types import DataType


@attrs.frozen
class CodeDifference:
    """How far the codes of a tensor are from those of the first method, in codes.

    Attributes:
        whole: of a run on its own: what the layer itself makes differ, and what it inherits.
        own: of the layer on the first method's codes; None where the first method does not store all that it reads.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("elements differing largest own_differing own_largest")

    whole: Difference
    own: Difference | None

    @property
    def elements(self) -> Count:
        """Of all samples."""
        return self.whole.elements

    @property
    def differing(self) -> Count:
        """Codes that differ by more than the tolerance, of a run of its own."""
        return self.whole.differing

    @property
    def largest(self) -> Count:
        """The largest difference, in codes; 0 where none differs."""
        return _largest(self.whole)

    @property
    def own_differing(self) -> Count | None:
        """Codes that differ where the layer gets the first method's; null where that does not store all of them."""
        return None if self.own is None else self.own.differing

    @property
    def own_largest(self) -> Count | None:
        """The largest difference of these; null as above."""
        return None if self.own is None else _largest(self.own)

    @property
    def is_any(self) -> bool:
        """Whether codes differ, of whatever run."""
        return bool(self.differing or self.own_differing)

    @property
    def parts_here(self) -> bool:
        """Whether the layer itself gives another code; where that is not known, whether its codes differ at all."""
        return bool((self.whole if self.own is None else self.own).differing)


@attrs.frozen
class ComparedCodes:
    """A tensor of codes that a method computes.

    Attributes:
        tensor: name of the tensor.
        rules: name of each method that computes it to the rule by which it does.
        dtype: INT8 or UINT8.
        differences: name of each method but the first to how far it is from the first; None where one of the two does
            not store the tensor, or with another shape.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("layer operator tensor dtype:type formulas differences")

    tensor: str
    rules: Mapping[str, OperatorRule]
    dtype: DataType
    differences: Mapping[str, CodeDifference | None]

    @property
    def formulas(self) -> Mapping[str, str]:
        """Of each method that computes it, the formula."""
        return {method: rule.formula for method, rule in self.rules.items()}

    @property
    def layer(self) -> str:
        """The layer of the user's that gives it."""
        return next(iter(self.rules.values())).layer

    @property
    def operator(self) -> str:
        """What methods call that layer."""
        return next(iter(self.rules.values())).operator


@attrs.frozen
class TopDecisions:
    """Class decisions of an output.

    Attributes:
        decisions: number of class decisions in all samples.
        changed: how many are another class than the first method's.
    """

    decisions: Count
    changed: Count


@attrs.frozen
class ComparedOutput:
    """An output of the network.

    Attributes:
        tensor: name of the output tensor.
        decisions: how many class decisions the samples have: one a row of an output [N, K] or [N, K, 1, ...] with two
            classes or more; None for an output that is not a row of scores.
        differences: name of each method but the first to how far it is from the first, in floating point or codes.
        changed: name of each method to how many decisions are another class than the first method's. Of equal scores
            the first counts.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {name: name for name in ("tensor", "differences", "top_1")}

    tensor: str
    decisions: int | None
    differences: Mapping[str, Difference]
    changed: Mapping[str, int]

    @property
    def top_1(self) -> Mapping[str, TopDecisions] | None:
        """Class decisions by method; null where the output is no row of scores."""
        if self.decisions is None:
            return None
        return {method: TopDecisions(self.decisions, changed) for method, changed in self.changed.items()}


@attrs.frozen
class MethodComparison:
    """What was found.

    Attributes:
        codes: in the order in which the engine of the first method that has them computes them.
        outputs: outputs of the network.
        samples: names of the samples.
    """

    codes: Sequence[ComparedCodes]
    outputs: Sequence[ComparedOutput]
    samples: Sequence[str]

    def first_parting(self, method: str) -> ComparedCodes | None:
        """The first tensor that a layer itself gives other codes for than the first method."""
        found = ((one, one.differences[method]) for one in self.codes)
        return next((one for one, difference in found if difference is not None and difference.parts_here), None)


def _largest(one: Difference) -> int:
    """In codes."""
    return 0 if one.largest is None else int(abs(one.largest.value - one.largest.other))
