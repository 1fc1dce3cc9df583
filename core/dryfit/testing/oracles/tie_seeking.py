"""Numbers that lie on and beside the ties of requantization: random ones almost never do.

Random data tell two roundings of a tie apart in about one of 10**6 elements. With the input at its zero point a sum is
its bias, and biases are chosen so that `bias * multiplier` is half-way between two codes, or one bias off that: then
one in 30 to one in 200 elements tells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
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
