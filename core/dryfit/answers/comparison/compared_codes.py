"""Codes and outputs of a quantized network with several methods, compared with the first method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from dryfit.answers.comparison.tensor_difference import Difference
from dryfit.answers.json_data import Count
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import OperatorRule
from dryfit.json_names import json_names
from dryfit.network.data_types import DataType


@frozen
class CodeDifference:
    """The difference between the codes of a tensor and those of the first method, in codes.

    Attributes:
        whole: difference in an independent run: the layer's own plus inherited differences.
        own: difference on the first method's input codes; None if the first method does not store all of them.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("elements differing largest own_differing own_largest")

    whole: Difference
    own: Difference | None

    @property
    def elements(self) -> Count:
        """Number of elements in all samples."""
        return self.whole.elements

    @property
    def differing(self) -> Count:
        """Number of codes that differ by more than the tolerance in an independent run."""
        return self.whole.differing

    @property
    def largest(self) -> Count:
        """Largest difference in codes; 0 if none differ."""
        return _largest(self.whole)

    @property
    def own_differing(self) -> Count | None:
        """Number of codes that differ on the first method's input codes; null if it does not store all of them."""
        return None if self.own is None else self.own.differing

    @property
    def own_largest(self) -> Count | None:
        """Largest difference on the first method's input codes; null if it does not store all of them."""
        return None if self.own is None else _largest(self.own)

    @property
    def is_any(self) -> bool:
        """Whether codes differ in any run."""
        return bool(self.differing or self.own_differing)

    @property
    def parts_here(self) -> bool:
        """Whether the layer itself produces different codes; if unknown, whether its codes differ at all."""
        return bool((self.whole if self.own is None else self.own).differing)


@frozen
class ComparedCodes:
    """A tensor of codes that a method computes.

    Attributes:
        tensor: name of the tensor.
        rules: rule of each method that computes the tensor, by method.
        dtype: INT8 or UINT8.
        differences: difference from the first method, by the other methods' names; None if one of the two does not
            store the tensor, or stores it in another shape.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("layer operator tensor dtype:type formulas differences")

    tensor: str
    rules: Mapping[str, OperatorRule]
    dtype: DataType
    differences: Mapping[str, CodeDifference | None]

    @property
    def formulas(self) -> Mapping[str, str]:
        """Formula of each method that computes the tensor."""
        return {method: rule.formula for method, rule in self.rules.items()}

    @property
    def layer(self) -> str:
        """Layer of the user's network that computes the tensor."""
        return next(iter(self.rules.values())).layer

    @property
    def operator(self) -> str:
        """Operator name of that layer in quantize methods."""
        return next(iter(self.rules.values())).operator


@frozen
class TopDecisions:
    """The class decisions of an output.

    Attributes:
        decisions: number of class decisions in all samples.
        changed: number of decisions that differ from those of the first method.
    """

    decisions: Count
    changed: Count


@frozen
class ComparedOutput:
    """An output of the network.

    Attributes:
        tensor: name of the output tensor.
        decisions: number of class decisions in the samples: one per row of an output [N, K] or [N, K, 1, ...] with two
            classes or more; None for other outputs.
        differences: difference from the first method in floating point or codes, by the other methods' names.
        changed: number of decisions that differ from the first method's, by method. On a tie, the first class wins.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {name: name for name in ("tensor", "differences", "top_1")}

    tensor: str
    decisions: int | None
    differences: Mapping[str, Difference]
    changed: Mapping[str, int]

    @property
    def top_1(self) -> Mapping[str, TopDecisions] | None:
        """Class decisions by method; null if the output does not consist of rows of scores."""
        if self.decisions is None:
            return None
        return {method: TopDecisions(self.decisions, changed) for method, changed in self.changed.items()}


@frozen
class MethodComparison:
    """The result of a comparison of methods.

    Attributes:
        codes: code tensors in computation order of the first method that has them.
        outputs: outputs of the network.
        samples: names of the samples.
    """

    codes: Sequence[ComparedCodes]
    outputs: Sequence[ComparedOutput]
    samples: Sequence[str]

    def first_parting(self, method: str) -> ComparedCodes | None:
        """First tensor whose own layer produces codes that differ from those of the first method."""
        found = ((one, one.differences[method]) for one in self.codes)
        return next((one for one, difference in found if difference is not None and difference.parts_here), None)


def _largest(one: Difference) -> int:
    """In codes."""
    return 0 if one.largest is None else int(abs(one.largest.value - one.largest.other))
