"""Tensors of which a calibrator cuts off more than is likely meant, and the calibrator that would serve them better.

The relative entropy weighs values by how many there are. Of a tensor that is mostly zeros, such as a sparse ReLU's
output, it leaves out the first bin and judges the few values that remain, so that a handful of large ones weighs
little: the range may end at a few percent of the largest magnitude. That is the algorithm, not a fault of this
implementation. NVIDIA's MLPerf calibration note says that the first bin is discarded, so zeros do not count; and the
published TensorRT 5.1.2 cache of ResNet-50 gives the softmax output, whose values reach 1, a range of 0.217. How
TensorRT treats empty bins is not published, so that the very ranges of sparse tensors are inferred, not confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import attrs
import numpy as np

from dryfit.errors import DryfitError
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.dynamic_range import DynamicRange
from dryfit.quantization.histogram import BINS, Histogram

SMALLEST_SHARE = 0.1
"""A range below this share of the largest magnitude is reported. Our choice."""

LARGEST_LOSS = 0.01
"""A range that saturates more than this share of the values other than zero is reported. Our choice."""

Rivals = Callable[[], Iterable[Calibrator]]
"""Gives the calibrators that another one is held against."""

_WORTH_NAMING_DB = 1.0
_LARGEST_LEVEL = 127


@attrs.frozen
class Clipping:
    """How a range clips the values that were seen.

    Attributes:
        share: of the largest magnitude, that the range reaches to.
        loss: share of the values other than zero that saturate; bins that the range ends in count as inside.
        sqnr_db: energy of the values over that of the quantization error in INT8, in dB.
        better: name of the calibrator whose range has the highest SQNR of those asked; "" where none is better by 1 dB.
        better_sqnr_db: that SQNR, in dB.
    """

    share: float
    loss: float
    sqnr_db: float
    better: str = ""
    better_sqnr_db: float = math.nan

    @property
    def is_severe(self) -> bool:
        """Whether a user should hear of it."""
        return self.share < SMALLEST_SHARE or self.loss > LARGEST_LOSS

    def __str__(self) -> str:
        advice = f"; {self.better} gives {self.better_sqnr_db:.1f} dB" if self.better else ""
        return (
            f"clipped to {100 * self.share:.2g} % of the largest magnitude, {100 * self.loss:.2g} % of the nonzero "
            f"values saturate, SQNR {self.sqnr_db:.1f} dB{advice}"
        )

    def details(self) -> dict[str, float | str]:
        """What reports and caches keep of it, as `Solution.details`."""
        found: dict[str, float | str] = {
            _SHARE: self.share,
            _LOSS: self.loss,
            _SQNR: self.sqnr_db,
        }
        return found | ({_BETTER: self.better, _BETTER_SQNR: self.better_sqnr_db} if self.better else {})


_SHARE, _LOSS, _SQNR = "share of largest magnitude", "saturated share of nonzero values", "SQNR in dB"
_BETTER, _BETTER_SQNR = "better calibrator", "its SQNR in dB"


_SHOWN = 5


def clipping_text(clipped: Mapping[str, Clipping]) -> str:
    """Tensors that are clipped, by name, those with the lowest SQNR first; of many the first five and a count."""
    worst = sorted(clipped, key=lambda name: clipped[name].sqnr_db)
    shown = "; ".join(f"{name!r} is {clipped[name]}" for name in worst[:_SHOWN])
    more = f"; + {len(worst) - _SHOWN} more" if len(worst) > _SHOWN else ""
    return f"Narrow calibrated ranges: {shown}{more}"


def clipping_of(details: Mapping[str, float | str]) -> Clipping | None:
    """The clipping that a solution's details tell of; None where they tell of none."""
    share, loss, sqnr_db = (details.get(name) for name in (_SHARE, _LOSS, _SQNR))
    if not (isinstance(share, float) and isinstance(loss, float) and isinstance(sqnr_db, float)):
        return None
    return Clipping(share, loss, sqnr_db, str(details.get(_BETTER, "")), float(details.get(_BETTER_SQNR, math.nan)))


def severe_clipping(seen: Histogram, solution: Solution, rivals: Rivals) -> Clipping | None:
    """The clipping by a range, if a user should hear of it.

    Args:
        seen: the values of the tensor.
        solution: its range.
        rivals: gives calibrators that are asked where the clipping is severe. One that takes another state, or fails,
            gives no advice.
    """
    if solution.dynamic_range is None or not seen.magnitude:
        return None
    threshold = solution.dynamic_range.threshold
    if threshold >= seen.magnitude:
        return None
    found = Clipping(threshold / seen.magnitude, _loss(seen, threshold), math.nan)
    if not found.is_severe:
        return None
    own = _sqnr_db(seen, threshold)
    ranges = {rival.name: _range(rival, seen) for rival in rivals()}
    others = {name: _sqnr_db(seen, one.threshold) for name, one in ranges.items() if one is not None}
    name = max(others, default="", key=others.__getitem__)
    best = others.get(name, -math.inf)
    found = attrs.evolve(found, sqnr_db=own)
    return attrs.evolve(found, better=name, better_sqnr_db=best) if best > own + _WORTH_NAMING_DB else found


def _range(rival: Calibrator, seen: Histogram) -> DynamicRange | None:
    try:
        return rival.solution(seen).dynamic_range
    except DryfitError:
        return None


def _loss(seen: Histogram, threshold: float) -> float:
    counts = seen.counts
    counts[0] -= seen.zeros
    last = int(threshold / seen.bin_width)
    return float(counts[last + 1 :].sum() / counts.sum())


def _sqnr_db(seen: Histogram, threshold: float) -> float:
    """The SQNR of INT8 in this range; a bin's values are taken as its middle, zeros are exact."""
    counts = seen.counts
    counts[0] -= seen.zeros
    values = (np.arange(BINS) + 0.5) * seen.bin_width
    step = threshold / _LARGEST_LEVEL
    errors = values - step * np.minimum(np.round(values / step), _LARGEST_LEVEL)
    noise = float((counts * errors * errors).sum())
    # Where steps are finer than bins, middles say less than the width: values lie anywhere in a step.
    noise = max(noise, float(counts.sum()) * step * step / 12)
    return 10 * math.log10(float((counts * values * values).sum()) / noise)
