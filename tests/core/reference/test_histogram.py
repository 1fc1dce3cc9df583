"""Histogram layers against the definition, value by value, in exact fractions."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.ranking import BINS, HEAD_WORDS, NO_EXPONENT, RECORD_WORDS
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference
from dryfit.reference.reduction import histogram_record

any_floats = st.floats(width=32)


def side_by_definition(magnitudes):
    """Exponent, and count by bin."""
    if not magnitudes:
        return NO_EXPONENT, {}
    exponent = -115
    while max(magnitudes) >= Fraction(2) ** exponent:
        exponent += 1
    counts = {}
    for one in magnitudes:
        place = math.floor(one * 2**11 / Fraction(2) ** exponent)
        counts[place] = counts.get(place, 0) + 1
    return exponent, counts


def found_side(record, side):
    counts = record[HEAD_WORDS + side * BINS :][:BINS]
    return int(record[side]), {int(place): int(counts[place]) for place in counts.nonzero()[0]}


@given(st.lists(any_floats, max_size=50))
@example([2.0**-149, -(2.0**-127), 2.0**-126, -0.0])
@example([math.nan, -math.inf, math.inf])
@example([float(np.finfo(np.float32).max), -1e-45])
def test_a_record_is_what_exact_arithmetic_says(values):
    record = histogram_record(np.array(values, np.float32))
    finite = [Fraction(float(np.float32(one))) for one in values if math.isfinite(one)]
    assert found_side(record, 0) == side_by_definition([one for one in finite if one > 0])
    assert found_side(record, 1) == side_by_definition([-one for one in finite if one < 0])
    ends = [float(min(finite, default=math.inf)), float(max(finite, default=-math.inf))]
    assert record[2:4].view(np.float64).tolist() == ends
    assert not (np.signbit(record[2:4].view(np.float64)) & (np.array(ends) == 0)).any()
    nan = sum(math.isnan(one) for one in values)
    assert record[4:8].tolist() == [finite.count(0), nan, len(values) - nan - len(finite), len(values)]


@pytest.mark.parametrize("dtype", [DataType.HALF, DataType.BF16, DataType.FLOAT])
def test_a_layer_gives_the_record_of_its_input(dtype):
    network = Network()
    x = network.add_input("x", dtype, (-1, 3))
    record = network.add_histogram(x).get_output(0)
    network.mark_output(record)
    assert (record.shape, record.dtype) == ((RECORD_WORDS,), DataType.INT64)
    array = np.array([[0, -1.5, 3], [0.25, 0, 7]]).astype(ml_dtypes.bfloat16 if dtype is DataType.BF16 else dtype.numpy)
    found = run_reference(network, {"x": array})[record.name]
    np.testing.assert_array_equal(found, histogram_record(array.astype(np.float32)))


def test_integers_have_no_histogram():
    network = Network()
    x = network.add_input("x", DataType.INT32, (2,))
    with pytest.raises(NetworkError, match=r"input of a histogram must be floating point.*INT32"):
        network.add_histogram(x)
