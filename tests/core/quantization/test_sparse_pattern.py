"""Fixed patterns of zeros: found and made, against an oracle that looks at one group after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.quantization.int8_weights import SparsePattern

TWO_OF_FOUR = SparsePattern(2, 4)


def groups_of(values, pattern):
    """Each group of neighbours, and the index of its first member: one loop an axis, nothing clever."""
    moved = np.moveaxis(values, pattern.axis, -1)
    for place in np.ndindex(moved.shape[:-1]):
        for first in range(0, moved.shape[-1], pattern.group):
            yield moved[place][first : first + pattern.group], (*place, first)


def dense_by_hand(values, pattern):
    return sum(sum(value != 0 for value in group) > pattern.kept for group, _ in groups_of(values, pattern))


def pruned_by_hand(values, pattern):
    moved = np.moveaxis(values.copy(), pattern.axis, -1)
    for group, (*place, first) in groups_of(values, pattern):
        ranked = sorted(range(len(group)), key=lambda index, group=group: (-abs(float(group[index])), index))
        for index in ranked[pattern.kept :]:
            moved[(*place, first + index)] = 0
    return np.moveaxis(moved, -1, pattern.axis)


patterns = st.sampled_from([(2, 4), (1, 4), (1, 2), (4, 8), (0, 3)])
shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
dtypes = st.sampled_from([np.int8, np.float16, np.float32, np.float64])


@given(patterns, shapes, dtypes, st.integers(0, 2**31), st.integers(1, 127), st.data())
def test_detection_and_pruning_are_those_of_one_group_after_another(kind, shape, dtype, seed, largest, data):
    pattern = SparsePattern(*kind, axis=data.draw(st.integers(0, len(shape) - 1)))
    random = np.random.default_rng(seed)
    values = random.integers(-largest, largest + 1, shape).astype(dtype)  # small ranges have ties and zeros
    values[random.random(shape) < 0.3] = 0
    assert pattern.dense_groups(values) == dense_by_hand(values, pattern)
    assert pattern.groups(shape) == sum(1 for _ in groups_of(values, pattern))
    pruned = pattern.pruned(values)
    np.testing.assert_array_equal(pruned, pruned_by_hand(values, pattern))
    assert (pruned.dtype, pattern.dense_groups(pruned)) == (dtype, 0)
    np.testing.assert_array_equal(pattern.pruned(pruned), pruned)


@pytest.mark.parametrize(
    ("group", "holds"),
    [
        ([0, 0, 0, 0], True),
        ([1, 0, 0, 1], True),
        ([1, 1, 0, 1], False),
        ([1, 1, 1, 1], False),
        ([0, 1, 1, 0, 1, 1, 0, 0], True),
        ([0, 0, 1, 1, 1, 0, 1, 1], False),
    ],
    ids=str,
)
def test_groups_are_aligned_and_every_place_of_the_window_counts(group, holds):
    weights = np.zeros((2, len(group), 3, 3), np.int8)
    weights[1, :, 2, 1] = group
    assert (TWO_OF_FOUR.dense_groups(weights) == 0) is holds


@pytest.mark.parametrize(("channels", "dense"), [(4, 1), (5, 1), (6, 1), (7, 2), (8, 2)])
def test_a_last_group_that_is_not_full_counts_as_filled_up_with_zeros(channels, dense):
    assert TWO_OF_FOUR.dense_groups(np.ones((1, channels, 1, 1))) == dense


def test_of_equal_magnitudes_those_that_stand_first_stay():
    weights = np.array([3, -3, 3, -3, -1, 2, -2, 2], np.float32).reshape(1, 8, 1, 1)
    np.testing.assert_array_equal(TWO_OF_FOUR.pruned(weights).reshape(-1), [3, -3, 0, 0, 0, 2, -2, 0])


def test_the_smallest_int8_is_the_largest_magnitude():
    weights = np.array([127, -128, 1, 126], np.int8).reshape(1, 4, 1, 1)
    np.testing.assert_array_equal(TWO_OF_FOUR.pruned(weights).reshape(-1), [127, -128, 0, 0])


def test_a_zero_point_takes_the_place_of_what_is_pruned():
    weights = np.array([10, 200, 130, 120], np.uint8).reshape(1, 4, 1, 1)
    magnitudes = np.abs(weights.astype(int) - 128)
    np.testing.assert_array_equal(TWO_OF_FOUR.pruned(weights, magnitudes, 128).reshape(-1), [10, 200, 128, 128])


def test_the_weights_themselves_are_not_written_to():
    weights = np.arange(1, 9, dtype=np.float32).reshape(1, 8, 1, 1)
    weights.flags.writeable = False
    assert TWO_OF_FOUR.pruned(weights) is not weights
