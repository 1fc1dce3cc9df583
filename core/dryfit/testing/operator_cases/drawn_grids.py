"""Scales, zero points, biases and numbers for trial cases: random ones, and those that lie on and beside ties.

Random data tell two roundings of a tie apart in about one of 10**6 elements. With the input at its zero point a sum is
its bias, and biases are chosen so that `bias * multiplier` is half-way between two codes, or one bias off that: then
one in 30 to one in 200 elements tells. Some scales are powers of two, so that ties occur, others have all their bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.testing.operator_cases.habits import Habits

POWER_OF_TWO_SHARE = 0.3
"""Share of multipliers that are powers of two: their ties are exact."""
_LEAST_EXPONENT, _GREATEST_EXPONENT = -18.0, 1.5
_REACH = 131
"""Half codes on both sides: those of 8 bits, and some that saturate."""


def tie_seeking_multipliers(
    random: np.random.Generator,
    count: int,
    least: float = 2.0**_LEAST_EXPONENT,
    greatest: float = 2.0**_GREATEST_EXPONENT,
) -> Array:
    """Multipliers as float32[count], evenly spread over exponents; some of them powers of two.

    Args:
        random: generator.
        count: how many.
        least: smallest of their range.
        greatest: largest of it.
    """
    exponents = random.uniform(np.log2(least), np.log2(greatest), count)
    is_power = random.random(count) < POWER_OF_TWO_SHARE
    rounded = np.clip(np.rint(exponents), np.ceil(np.log2(least)), np.floor(np.log2(greatest)))
    return np.asarray(np.exp2(np.where(is_power, rounded, exponents)), np.float32)


def tie_seeking_biases(multiplier: Array | float, reach: int = _REACH) -> Array:
    """Biases whose products with a multiplier are next to half codes.

    Args:
        multiplier: input scale * weight scale / output scale; one, or one for each row.
        reach: half codes k + 1/2 for k from `-reach` to `reach`.

    Returns:
        int32[..., 3 * (2 * reach + 1)]: rint((k + 1/2) / multiplier), and one less and one more.
    """
    halves = np.arange(-reach, reach + 1) + 0.5
    nearest = np.rint(halves / np.asarray(multiplier, np.float64)[..., None])
    biases = (nearest[..., None] + np.asarray([-1, 0, 1])).reshape(*nearest.shape[:-1], -1)
    limits = np.iinfo(np.int32)
    return np.asarray(np.clip(biases, limits.min, limits.max), np.int32)


def tie_seeking_numbers(scale: np.float32 | float, reach: int = _REACH) -> Array:
    """Real numbers next to half codes of a scale, as float32: `(k + 1/2) * scale` and its neighbours in FP32."""
    scale = np.float32(scale)
    halves = np.float32(np.arange(-reach, reach + 1) + 0.5) * scale
    neighbours = [np.nextafter(halves, np.float32(towards)) for towards in (-np.inf, np.inf)]
    return np.stack([neighbours[0], halves, neighbours[1]], axis=-1).reshape(-1)


def tie_seeking_sigmoid_scale(random: np.random.Generator) -> np.float32:
    """A scale by which the sigmoid of some code lies as near to half-way between two of 256 steps as FP32 lets it.

    logit((k + 1/2) / 256) / v for a distance v of a code from its zero point. It seeks ties of a softmax of two, too:
    that is the sigmoid of their difference.
    """
    half = (random.integers(140, 250) + 0.5) / 256
    return np.float32(np.log(half / (1 - half)) / random.integers(10, 120))


def all_codes(dtype: Any) -> Array:
    """The 256 codes of an 8-bit type, in order."""
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype)


def all_pairs(dtype: Any) -> tuple[Array, Array]:
    """The 65,536 pairs of codes, as two arrays [256, 256]."""
    codes = all_codes(dtype)
    first, second = np.meshgrid(codes, codes, indexing="ij")
    return first, second


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


@frozen(eq=False)
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
