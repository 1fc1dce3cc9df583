"""Estimated figures have two digits and say how far they may be off."""

from __future__ import annotations

import pytest

from dryfit.estimate_text import duration, rate_text, time_text, two_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (0.0123, "0.012"), (0.928, "0.93"), (0.996, "1.0"), (4.64, "4.6"), (9.96, "10"), (46.4, "46")),
        *(
            (99.6, "100"),
            (464, "460"),
            (713_615, "710,000"),
            (1_234_567, "1,200,000"),
            (1, "1"),
            (1.0, "1.0"),
            (99_999, "100,000"),
        ),
    ],
)
def test_a_figure_has_two_digits(value, text):
    assert two_digits(value) == text


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0.5, "0.50 us"), (26.9, "27 us"), (996, "1.0 ms"), (4640, "4.6 ms"), (14_195, "14 ms"), (1.23e6, "1.2 s")],
)
def test_a_time_is_told_in_its_unit(microseconds, text):
    assert duration(microseconds) == text


@pytest.mark.parametrize(
    ("error", "bound", "text"),
    [
        (1.15, False, "4.6 ms +-15 %"),
        (1.996, False, "4.6 ms +-100 %"),
        (2.0, False, "~4.6 ms (within a factor of 2.0)"),
        (10.0, False, "~4.6 ms (order of magnitude)"),
        (9.99, False, "~4.6 ms (order of magnitude)"),
        (None, False, "~4.6 ms (error not stated)"),
        (None, True, "at least 4.6 ms"),
        (1.15, True, "4.6 ms +-15 %"),
    ],
)
def test_a_time_carries_its_error(error, bound, text):
    assert time_text(4640, error, is_lower_bound=bound) == text


def test_a_rate_from_a_lower_bound_is_an_upper_bound():
    assert rate_text(614.1, None, is_upper_bound=True) == "at most 610 images/s"
    assert rate_text(614.1, 1.15) == "610 images/s +-15 %"
    assert (rate_text(None, 1.15), time_text(None, None)) == ("none", "none")
