"""Ranges that are mixed from those of several calibrators: each tensor gets the one that harms the outputs least.

A calibrator looks at one tensor's values, and minimizes an error of that tensor. Here each range that some calibrator
finds is judged by what it does to the outputs of the network, on samples that no histogram has seen. The search begins
with the calibrator whose ranges together are the best ones for the mean of these samples, in the device's integer
arithmetic, and takes changes only if they gain more than chance there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.calibration.output_noise import OutputNoise, Rounding
from dryfit.network.network import Network
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.int8_steps import DynamicRange, is_inside_step
from dryfit.quantization.network_ranges import solve_network
from dryfit.quantization.range_sharing import sharing_groups

START = "entropy2"
"""The calibrator that others are compared with: TensorRT's choice."""

WORTH_LEAVING = 0.9
"""Another range must leave less than this share of the error at the outputs. Our choice: errors of few samples differ
by some percent without a reason."""

ALIKE = 0.02
"""Ranges that differ by less than this share are judged once."""

CHOSEN_BY = "chosen by the outputs"
"""Detail of a solution that was taken from another calibrator than the first; its value names that one."""

UNRESTRICTED = ", unrestricted"
"""Behind the name of a calibrator: tensors that otherwise keep their largest magnitude were solved too."""

MIX = "mix"
"""Name of the mixture among the sets of ranges that are compared."""


@frozen
class Candidate:
    """A range of some tensors.

    Attributes:
        calibrator: who found it, with `UNRESTRICTED` behind where that holds.
        threshold: end of the range.
    """

    calibrator: str
    threshold: float


@frozen
class JudgedTensors:
    """Tensors that share a range, and the ranges to judge.

    Attributes:
        tensors: names of those that INT8 stores.
        sharing: names of all tensors that get the range.
        candidates: ranges; that of the calibrator to start from is the first.
    """

    tensors: tuple[str, ...]
    sharing: tuple[str, ...]
    candidates: Sequence[Candidate]


@frozen
class MixedTensor:
    """A tensor that got another range than that of the calibrator to start from.

    Attributes:
        tensors: names of the tensors that share the range.
        calibrator: calibrator whose range was taken.
        before: end of the range to start from.
        threshold: end of the range that was taken.
        sqnr_before_db: SQNR of the output that suffers most when only these tensors are rounded in that range, in dB.
        sqnr_db: the same in the range that was taken.
    """

    tensors: Sequence[str]
    calibrator: str
    before: float
    threshold: float
    sqnr_before_db: float
    sqnr_db: float


def solved_by_all(
    network: Network, collectors: Mapping[str, Collector], calibrators: Sequence[Calibrator], *, full_range: bool
) -> dict[str, dict[str, Solution]]:
    """Return what each calibrator finds, by its name; the one to start from is the first.

    Args:
        network: the network.
        collectors: what was seen of its tensors.
        calibrators: all accept these collectors' states.
        full_range: see `solve_network`; where it is set, each calibrator is asked without it too.
    """
    found: dict[str, dict[str, Solution]] = {}
    for one in sorted(calibrators, key=lambda one: (one.name != START, one.name)):
        found[one.name] = solve_network(network, collectors, one, full_range=full_range)
    for one in calibrators if full_range else ():
        found[f"{one.name}{UNRESTRICTED}"] = solve_network(network, collectors, one, full_range=False)
    return found


def judged_tensors(network: Network, found: Mapping[str, Mapping[str, Solution]]) -> list[JudgedTensors]:
    """Return the tensors that INT8 layers store, by shared range, with the ranges that differ."""
    start = next(iter(found.values()))
    constants = {tensor.name for tensor in network.tensors if tensor.is_constant}
    shared = [tuple(group.tensors) for group in sharing_groups(network)]
    together = {name for group in shared for name in group}
    groups = [*shared, *((name,) for name in start if name not in together)]
    judged = []
    for group in groups:
        sharing = tuple(name for name in group if name in start and start[name].dynamic_range is not None)
        stored = tuple(name for name in sharing if name not in constants and not is_inside_step(network.tensor(name)))
        candidates: list[Candidate] = []
        for calibrator, solutions in found.items() if stored else ():
            one = solutions[stored[0]].dynamic_range
            if one is not None and all(abs(one.threshold / other.threshold - 1) > ALIKE for other in candidates):
                candidates.append(Candidate(calibrator, one.threshold))
        if candidates:
            judged.append(JudgedTensors(stored, sharing, candidates))
    return judged


def roundings_of(judged: Sequence[JudgedTensors]) -> tuple[Rounding, ...]:
    """Return the roundings to try, tensors by tensors and candidate by candidate; single candidates need no trial."""
    return tuple(
        Rounding(one.tensors, DynamicRange(-each.threshold, each.threshold).scale)
        for one in judged
        if len(one.candidates) > 1
        for each in one.candidates
    )


def changes_from(
    start: Mapping[str, Solution], judged: Sequence[JudgedTensors], noise: OutputNoise | None
) -> list[MixedTensor]:
    """Return the tensors for which another range harms the outputs less, those first that gain most.

    Args:
        start: ranges to improve.
        judged: tensors and candidates; the ranges of `start` are among them.
        noise: what `roundings_of` caused; None where there was nothing to try.
    """
    found: list[tuple[float, MixedTensor]] = []
    position = 0
    for one in judged:
        if len(one.candidates) < 2 or noise is None:
            continue
        rows = slice(position, position + len(one.candidates))
        position += len(one.candidates)
        costs, sqnr = noise.ratios()[rows].sum(axis=1), noise.sqnr_db()[rows]
        given = start[one.tensors[0]].dynamic_range
        if given is None:
            continue
        gaps = [abs(each.threshold / given.threshold - 1) for each in one.candidates]
        now, best = int(np.argmin(gaps)), int(np.argmin(costs))
        if costs[best] < WORTH_LEAVING * costs[now]:
            chosen = one.candidates[best]
            change = MixedTensor(
                one.sharing,
                chosen.calibrator,
                given.threshold,
                chosen.threshold,
                float(sqnr[now]),
                float(sqnr[best]),
            )
            found.append((float(costs[now] - costs[best]), change))
    return [change for _, change in sorted(found, key=lambda one: -one[0])]


def solved_again(
    changes: Sequence[MixedTensor],
    judged: Sequence[JudgedTensors],
    start: str,
    found: Mapping[str, Mapping[str, Solution]],
) -> list[MixedTensor]:
    """Return the same changes with the ranges that the same calibrators find in other statistics.

    Args:
        changes: tensors with another range than that of the calibrator to start from.
        judged: all tensors that were judged.
        start: name of the calibrator to start from.
        found: what each calibrator finds, by its name.
    """
    deciding = {one.sharing: one.tensors[0] for one in judged}

    def end(calibrator: str, change: MixedTensor, known: float) -> float:
        given = found[calibrator][deciding[tuple(change.tensors)]].dynamic_range
        return known if given is None else given.threshold

    return [
        attrs.evolve(one, before=end(start, one, one.before), threshold=end(one.calibrator, one, one.threshold))
        for one in changes
    ]


def with_changes(start: Mapping[str, Solution], changes: Sequence[MixedTensor]) -> dict[str, Solution]:
    """Return ranges with these changes."""
    solutions = dict(start)
    for one in changes:
        solution = Solution.of_threshold(one.threshold, **{CHOSEN_BY: one.calibrator})
        solutions.update(dict.fromkeys(one.tensors, solution))
    return solutions
