"""How speeds are compared, without a clock."""

from __future__ import annotations

import itertools

import pytest

from measuring.ratios import best_of_three, median_ratio, rounds_within, spread, take_turns


def telling(*seconds):
    """A run that takes these times, one after another and from the start again."""
    times = itertools.cycle(seconds)
    return lambda: next(times)


def test_a_ratio_above_one_says_that_the_own_side_is_faster():
    assert median_ratio([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]) == 2.0


def test_a_ratio_is_of_neighbouring_turns_so_that_a_slow_while_cancels():
    assert median_ratio([1.0, 10.0, 1.0], [1.5, 15.0, 1.5]) == 1.5
    assert median_ratio([1.0, 1.0, 1.0, 1.0, 1.0], [1.5, 1.5, 99.0, 1.5, 0.1]) == 1.5


def test_turns_of_different_number_cannot_be_compared():
    with pytest.raises(ValueError, match="shorter"):
        median_ratio([1.0, 1.0], [1.0])


def test_the_spread_is_that_of_the_middle_half():
    low, high = spread([1.0] * 9, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 9.0])
    assert low == pytest.approx(1.15)
    assert high == pytest.approx(1.65)
    assert spread([1.0, 1.0], [3.0, 2.0]) == (2.0, 3.0)


def test_the_first_run_of_a_turn_does_not_count():
    assert best_of_three(telling(0.1, 0.5, 0.4, 0.6), pause=0) == 0.4


def test_a_run_that_is_slow_counts_and_is_not_repeated():
    measure = telling(7.0, 1.0)
    assert best_of_three(measure, pause=0) == 7.0
    assert measure() == 1.0


def test_sides_take_turns():
    order = []

    def side(name):
        return lambda: order.append(name) or 0.5

    seconds = take_turns({"a": side("a"), "b": side("b")}, 2, pause=0)
    assert seconds == {"a": [0.5, 0.5], "b": [0.5, 0.5]}
    assert "".join(order) == "aaaabbbbaaaabbbb"


@pytest.mark.parametrize(
    ("seconds", "rounds"), [(0.001, 30), (0.5, 12), (1.9, 3), (2.5, 3), (5.9, 3), (6.0, 1), (100.0, 1)]
)
def test_rounds_fit_into_their_time(seconds, rounds):
    assert rounds_within(seconds, 6.0) == rounds
