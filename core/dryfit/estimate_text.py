"""Estimated figures in words: two digits, with how far they may be off. No more digits are known."""

from __future__ import annotations

import math

ORDER_OF_MAGNITUDE = 10.0
"""Error factor from which a figure says no more than its number of digits."""
SEVERAL_TIMES = 2.0
"""Error factor from which it is told as a factor."""


def two_digits(value: float) -> str:
    """A number rounded to two digits: `0.93`, `4.6`, `46`, `12,000`; a count below 10 has one."""
    if not value:
        return "0"
    decimals = 1 - math.floor(math.log10(abs(value)))
    if isinstance(value, int):
        return f"{round(value, min(decimals, 0)):,}"
    rounded = round(value, decimals)
    decimals = 1 - math.floor(math.log10(abs(rounded)))  # 0.996 became 1.0
    return f"{rounded:,.{max(decimals, 0)}f}"


def with_error(figure: str, error_factor: float | None, *, is_lower_bound: bool = False) -> str:
    """A figure with its error, such as `4.6 ms +-15 %` or `~11 ms (order of magnitude)`.

    Args:
        figure: the number and its unit.
        error_factor: as `CostEstimate.error_factor`.
        is_lower_bound: whether the figure cannot be reached, so that an error in both directions says nothing.
    """
    if is_lower_bound and error_factor is None:
        return f"at least {figure}"
    if error_factor is None:
        return f"~{figure} (error not stated)"
    if error_factor >= ORDER_OF_MAGNITUDE / 2:
        return f"~{figure} (order of magnitude)"
    if error_factor >= SEVERAL_TIMES:
        return f"~{figure} (within a factor of {two_digits(error_factor)})"
    return f"{figure} +-{100 * (error_factor - 1):.0f} %"


def duration(microseconds: float) -> str:
    """A time in its unit, to two digits: `26 us`, `4.6 ms`, `1.2 s`."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= 0.995 * size:
            return f"{two_digits(microseconds / size)} {unit}"
    return f"{two_digits(microseconds)} us"


def time_text(microseconds: float | None, error_factor: float | None, *, is_lower_bound: bool = False) -> str:
    """A time with its error; `none` where a target estimates none."""
    if microseconds is None:
        return "none"
    return with_error(duration(microseconds), error_factor, is_lower_bound=is_lower_bound)


def rate_text(per_second: float | None, error_factor: float | None, *, is_upper_bound: bool = False) -> str:
    """Images a second with their error; `none` where a target estimates no time.

    Args:
        per_second: images.
        error_factor: of the time that they follow from.
        is_upper_bound: whether that time is a lower bound.
    """
    if per_second is None:
        return "none"
    text = with_error(f"{two_digits(per_second)} images/s", error_factor, is_lower_bound=is_upper_bound)
    return text.replace("at least", "at most", 1)
