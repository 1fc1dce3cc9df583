"""A quantized network by several quantize methods: where their codes part, and which layer makes them part.

All methods run on the same samples. Then each layer of every method but the first runs once more on the codes that the
first method has: what differs then is the layer's own, all else comes with its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np

from dryfit.answers.comparison.method_sides import MethodSide
from dryfit.answers.comparison.sides import Feeds
from dryfit.answers.comparison.tensor_difference import Difference, DifferenceSums
from dryfit.builder.assessment import OperatorRule
from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.target.kernels import Array

_CLASS_AXIS = 1


@attrs.frozen
class CodeDifference:
    """How far the codes of a tensor are from those of the first method, in codes.

    Attributes:
        whole: of a run on its own: what the layer itself makes differ, and what it inherits.
        own: of the layer on the first method's codes; None where the first method does not store all that it reads.
    """

    whole: Difference
    own: Difference | None

    @property
    def parts_here(self) -> bool:
        """Whether the layer itself gives another code; where that is not known, whether its codes differ at all."""
        return bool((self.whole if self.own is None else self.own).differing)


@attrs.frozen
class ComparedCodes:
    """A tensor of codes that a method computes.

    Attributes:
        tensor: its name.
        rules: name of each method that computes it to the rule by which it does.
        dtype: INT8 or UINT8.
        differences: name of each method but the first to how far it is from the first; None where one of the two does
            not store the tensor, or with another shape.
    """

    tensor: str
    rules: Mapping[str, OperatorRule]
    dtype: DataType
    differences: Mapping[str, CodeDifference | None]

    @property
    def layer(self) -> str:
        """The layer of the user's that gives it."""
        return next(iter(self.rules.values())).layer

    @property
    def operator(self) -> str:
        """What methods call that layer."""
        return next(iter(self.rules.values())).operator


@attrs.frozen
class ComparedOutput:
    """An output of the network.

    Attributes:
        tensor: its name.
        decisions: how many class decisions the samples have: one a row of an output [N, K] or [N, K, 1, ...] with two
            classes or more; None for an output that is no row of scores.
        differences: name of each method but the first to how far it is from the first, in real numbers or codes.
        changed: name of each method to how many decisions are another class than the first method's. Of equal scores
            the first counts.
    """

    tensor: str
    decisions: int | None
    differences: Mapping[str, Difference]
    changed: Mapping[str, int]


@attrs.frozen
class MethodComparison:
    """What was found.

    Attributes:
        codes: in the order in which the engine of the first method that has them computes them.
        outputs: of the network.
        samples: names of the samples.
    """

    codes: Sequence[ComparedCodes]
    outputs: Sequence[ComparedOutput]
    samples: Sequence[str]

    def first_parting(self, method: str) -> ComparedCodes | None:
        """The first tensor that a layer itself gives other codes for than the first method."""
        found = ((one, one.differences[method]) for one in self.codes)
        return next((one for one, difference in found if difference is not None and difference.parts_here), None)


def compare_methods(
    sides: Sequence[MethodSide], samples: Iterable[tuple[str, Feeds]], tolerance: float = 0.0
) -> MethodComparison:
    """Run a network by each method on samples.

    Args:
        sides: the first is what the others are compared with.
        samples: name and inputs of each.
        tolerance: codes that differ by no more count as equal.

    Raises:
        ExecutionError: there is no sample, or one does not fit the network.
    """
    comparing = _Comparing(sides, tolerance)
    for name, feeds in samples:
        comparing.add(name, feeds)
    return comparing.result()


class _Comparing:
    """Sums up what differs, one sample after another."""

    def __init__(self, sides: Sequence[MethodSide], tolerance: float) -> None:
        self._first, *self._others = sides
        self._samples: list[str] = []
        self._types = {
            tensor.name: tensor.dtype
            for side in sides
            for tensor in side.plan.network.tensors
            if tensor.name in side.operators
        }
        self._rules = {
            name: {side.name: side.operators[name] for side in sides if name in side.operators} for name in self._types
        }
        names = [one.name for one in self._others]
        self._codes = {name: {other: _CodeSums(tolerance) for other in names} for name in self._types}
        self._outputs = {
            tensor.name: {other: _OutputSums() for other in names} for tensor in self._first.plan.network.outputs
        }
        self._order: list[str] = []

    def add(self, sample: str, feeds: Feeds) -> None:
        self._samples.append(sample)
        first = self._first.arrays(feeds)
        if not self._order:
            sides = (self._first, *self._others)
            order = _merged([list(one.producers(feeds)) for one in sides])
            self._order = [name for name in order if name in self._types]
        for side in self._others:
            arrays, producers = side.arrays(feeds), side.producers(feeds)
            for name in self._order:
                sums = self._codes[name][side.name]
                mine, others = arrays.get(name), first.get(name)
                if mine is None or others is None or (mine.dtype, mine.shape) != (others.dtype, others.shape):
                    sums.is_compared = False
                    continue
                fed = side.fed(producers[name], feeds, arrays, first)
                sums.add(sample, mine, others, None if fed is None else fed[name])
            for name, by_method in self._outputs.items():
                by_method[side.name].add(sample, arrays[name], first[name])

    def result(self) -> MethodComparison:
        if not self._samples:
            raise ExecutionError("There is no sample to compare on", where=f"quantize method {self._first.name!r}")
        return MethodComparison(
            [self._compared(name) for name in self._order],
            [_output(name, sums) for name, sums in self._outputs.items()],
            self._samples,
        )

    def _compared(self, name: str) -> ComparedCodes:
        return ComparedCodes(
            tensor=name,
            rules=self._rules[name],
            dtype=self._types[name],
            differences={other: sums.result() for other, sums in self._codes[name].items()},
        )


class _CodeSums:
    """What is summed up of one tensor and method."""

    def __init__(self, tolerance: float) -> None:
        self.is_compared = True
        self._whole = DifferenceSums(tolerance)
        self._own: DifferenceSums | None = DifferenceSums(tolerance)

    def add(self, sample: str, codes: Array, others: Array, fed: Array | None) -> None:
        self._whole.add(sample, codes, others, None)
        if fed is None or self._own is None:
            self._own = None
        else:
            self._own.add(sample, fed, others, None)

    def result(self) -> CodeDifference | None:
        if not self.is_compared:
            return None
        return CodeDifference(self._whole.result(), None if self._own is None else self._own.result())


class _OutputSums:
    """What is summed up of one output and method."""

    def __init__(self) -> None:
        self.decisions: int | None = 0
        self.changed = 0
        self.differences = DifferenceSums()

    def add(self, sample: str, values: Array, others: Array) -> None:
        self.differences.add(sample, values, others, None)
        if self.decisions is None or not _are_scores(values) or values.shape != others.shape:
            self.decisions = None
            return
        classes, other_classes = (one.reshape(len(one), -1).argmax(_CLASS_AXIS) for one in (values, others))
        self.decisions += len(classes)
        self.changed += int(np.count_nonzero(classes != other_classes))


def _are_scores(array: Array) -> bool:
    """Whether each row of an array is a score for each of two classes or more."""
    if array.ndim <= _CLASS_AXIS or array.shape[_CLASS_AXIS] < 2:
        return False
    return all(extent == 1 for extent in array.shape[_CLASS_AXIS + 1 :])


def _output(name: str, sums: Mapping[str, _OutputSums]) -> ComparedOutput:
    decisions = next(iter(sums.values())).decisions
    return ComparedOutput(
        tensor=name,
        decisions=decisions,
        differences={method: one.differences.result() for method, one in sums.items()},
        changed={} if decisions is None else {method: one.changed for method, one in sums.items()},
    )


def _merged(orders: Sequence[Sequence[str]]) -> list[str]:
    """All names, those of the first order in that order, others behind what they follow in theirs."""
    found = list(orders[0])
    for order in orders[1:]:
        known, place = set(found), 0
        for name in order:
            if name in known:
                place = found.index(name) + 1
            else:
                found.insert(place, name)
                place += 1
    return found
