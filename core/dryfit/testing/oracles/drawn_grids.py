"""Scales and zero points for trial cases: some are powers of two, so that ties occur, others have all their bits."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.testing.oracles.habits import Habits
from dryfit.testing.oracles.tie_seeking import POWER_OF_TWO_SHARE, tie_seeking_multipliers

Array = np.ndarray[Any, Any]
Grid = tuple[Any, Any]
_CHANNEL_SCALES = 8
"""Channels have this many different scales."""


def drawn_zero_point(random: np.random.Generator, dtype: DataType) -> int:
    """Any code of a type."""
    limits = np.iinfo(dtype.numpy)
    return int(random.integers(limits.min, limits.max + 1))


def drawn_scale(random: np.random.Generator, least: float, greatest: float) -> np.float32:
    """A scale from a range, evenly spread over exponents; some powers of two."""
    return np.float32(tie_seeking_multipliers(random, 1, least, greatest)[0])


def drawn_grid(random: np.random.Generator, dtype: DataType, least: float = 2**-8, greatest: float = 2**-2) -> Grid:
    """A grid of a type."""
    return drawn_scale(random, least, greatest), drawn_zero_point(random, dtype)


def drawn_pair(
    random: np.random.Generator, dtype: DataType, to_type: DataType, ratio: tuple[float, float] = (2**-4, 2**3)
) -> tuple[Grid, Grid]:
    """Grids of an input and an output whose scales have a ratio from a range; some ratios are powers of two."""
    first = drawn_scale(random, 2**-8, 2**-2)
    second = np.float32(first / tie_seeking_multipliers(random, 1, *ratio)[0])
    return (first, drawn_zero_point(random, dtype)), (second, drawn_zero_point(random, to_type))


@attrs.frozen(eq=False)
class WeightedGrids:
    """Grids of a weighted operator.

    Attributes:
        x, w, y: of input, weights and output.
        multipliers: f64(sx) * f64(sw) / f64(sy), one a channel.
    """

    x: Grid
    w: Grid
    y: Grid
    multipliers: Array


def drawn_weighted_grids(
    random: np.random.Generator,
    habits: Habits,
    types: tuple[DataType, DataType],
    channels: int,
    *,
    is_per_channel: bool,
    reach: tuple[float, float] | None = None,
) -> WeightedGrids:
    """Grids whose multipliers are drawn to seek ties.

    Args:
        random: generator.
        habits: of the library.
        types: of activations and weights.
        channels: of the output.
        is_per_channel: whether each output channel has a scale of its own.
        reach: least and greatest multiplier.
    """
    least, greatest = reach or (2.0**-18, habits.greatest_multiplier)
    greatest = min(greatest, habits.greatest_multiplier)
    is_power = random.random() < POWER_OF_TWO_SHARE
    sx = np.float32(np.exp2(random.integers(-8, -2)) if is_power else random.uniform(0.004, 0.2))
    count = min(_CHANNEL_SCALES, channels) if is_per_channel else 1
    spread = tie_seeking_multipliers(random, count, max(least, greatest / 64), greatest)
    base = float(tie_seeking_multipliers(random, 1, least, greatest)[0])
    sy = np.float32(np.exp2(random.integers(-7, 0)) if is_power else random.uniform(0.01, 0.5))
    wanted: Array = np.float64(base) * spread / spread.max()
    wanted = np.exp2(np.rint(np.log2(wanted))) if is_power else wanted
    wanted = np.minimum(wanted, greatest)
    scales = np.float32(wanted * np.float64(sy) / np.float64(sx))
    has_zero_point = types[1] in habits.weights_have_zero_points and not is_per_channel
    zero_point = drawn_zero_point(random, types[1]) if has_zero_point else _middle(types[1])
    sw: Any = np.resize(scales, channels) if is_per_channel else scales.reshape(-1)[0]
    zw: Any = np.full(channels, zero_point, np.int32) if is_per_channel else zero_point
    multipliers = np.float64(sx) * np.float64(sw) / np.float64(sy)
    grids = ((sx, drawn_zero_point(random, types[0])), (sw, zw), (sy, drawn_zero_point(random, types[0])))
    return WeightedGrids(*grids, np.broadcast_to(multipliers, (channels,)))


def _middle(dtype: DataType) -> int:
    """The zero point of weights that are symmetric."""
    return 0 if dtype is DataType.INT8 else 128
