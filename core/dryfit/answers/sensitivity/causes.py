"""Why a tensor loses accuracy in INT8: few channels, a clipped range, unequal channels, a shifted mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.tensor import Array

CLIPPED = 0.3
"""A range counts as the cause if values beyond it have this share of the error's energy. Our choice."""
SHIFTED = 0.3
"""The same for the part of the error that is a constant of each channel."""
FEW_CHANNELS = 0.05
"""Channels that decide the range count as outliers if at most this share of all reaches half of it."""
UNEQUAL = 8.0
"""The range counts as too wide for most channels if half of them use less than this part of it, one in so many."""


def causes(statistics: Array, counts: int, threshold: float) -> list[str]:
    """Return the causes, in words; empty if the values fill their range as well as others.

    Args:
        statistics: `measurement.CHANNEL` over all samples: float64[4, channels].
        counts: number of values of a channel over all samples.
        threshold: end of the range.
    """
    largest, error, squared, clipped = statistics
    total = float(squared.sum())
    found: list[str] = []
    if not total:
        return found
    beyond = float(clipped.sum()) / total
    if beyond > CLIPPED:
        found.append(
            f"clipped range: values beyond {threshold:.4g}, up to {largest.max():.4g}, have {100 * beyond:.0f} % of "
            "the error"
        )
    shift = float((error**2).sum()) / (counts * total)
    if shift > SHIFTED:
        found.append(f"shifted mean: {100 * shift:.0f} % of the error is a constant of each channel")
    if len(largest) >= 1 / FEW_CHANNELS:
        reaching = np.flatnonzero(largest >= largest.max() / 2)
        middle = float(np.median(largest))
        if len(reaching) <= FEW_CHANNELS * len(largest):
            rest = float(np.delete(largest, reaching).max(initial=0.0))
            names = ", ".join(map(str, reaching.tolist()))
            found.append(f"outlier channels: {names} reach {largest.max():.4g}, all others stay below {rest:.4g}")
        elif middle * UNEQUAL < threshold:
            found.append(f"unequal channels: half of them stay below {middle:.4g}, the range ends at {threshold:.4g}")
    return found


def few_that_explain(energies: Sequence[float], share: float) -> int:
    """Return how many of the energies, largest first, have this share of the sum."""
    ordered = np.sort(np.asarray(energies))[::-1]
    total = float(ordered.sum())
    return int(np.searchsorted(np.cumsum(ordered), share * total) + 1) if total else 0
