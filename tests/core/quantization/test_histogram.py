"""The histogram against exact fractions, and its one promise: the state depends on the values alone."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dryfit.errors import CalibrationError
from dryfit.quantization.histogram import BINS, LEAST_EXPONENT, Histogram, HistogramSide
from dryfit.reference.reduction import histogram_record

floats = st.floats(allow_nan=False, allow_infinity=False, width=32)
doubles = st.floats(allow_nan=False, allow_infinity=False)
some_floats = st.lists(st.one_of(floats, st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**-149, 2.0**127])), max_size=40)


def histogram_of(*samples, dtype=np.float32):
    histogram = Histogram("x")
    for index, sample in enumerate(samples):
        histogram.update(np.array(sample, dtype), f"sample {index}")
    return histogram


def exact_counts(values):
    """Exponent and count by bin, by the definition, in exact arithmetic."""
    magnitudes = [abs(Fraction(float(value))) for value in values]
    largest = max(magnitudes, default=Fraction(0))
    if not largest:
        return None, {0: len(values)} if values else {}
    exponent = LEAST_EXPONENT
    while largest >= Fraction(2) ** exponent:
        exponent += 1
    counts = {}
    for magnitude in magnitudes:
        number = math.floor(magnitude / (Fraction(2) ** exponent / BINS))
        counts[number] = counts.get(number, 0) + 1
    return exponent, counts


def found_counts(histogram):
    return {int(number): int(histogram.counts[number]) for number in histogram.counts.nonzero()[0]}


@given(st.lists(floats, max_size=60))
@example([2.0**-126, 2.0**-127, 2.0**-149])
@example([float(np.finfo(np.float32).max)])
def test_a_histogram_is_what_exact_arithmetic_says(values):
    histogram = histogram_of(values)
    exponent, counts = exact_counts(values)
    assert histogram.exponent == exponent
    assert found_counts(histogram) == counts
    assert histogram.count == len(values)
    assert histogram.zeros == sum(value == 0 for value in values)
    assert histogram.magnitude == max(map(abs, values), default=0.0)
    if values:
        assert (histogram.minimum, histogram.maximum) == (min(values), max(values))


@given(st.lists(doubles, max_size=60))
@example([1e308, 5e-324, 1e200])
def test_float64_is_counted_exactly_too(values):
    histogram = histogram_of(values, dtype=np.float64)
    assert (histogram.exponent, found_counts(histogram)) == exact_counts(values)


@given(st.lists(some_floats, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_any_order_split_and_merge_tree_gives_the_same_bytes(samples, random):
    values = [value for sample in samples for value in sample]
    whole = histogram_of(values).to_bytes()
    random.shuffle(values)
    assert histogram_of(*([value] for value in values)).to_bytes() == whole
    parts = [histogram_of(sample) for sample in samples]
    while len(parts) > 1:
        first = parts.pop(random.randrange(len(parts)))
        parts[random.randrange(len(parts))].merge(first)
    assert parts[0].to_bytes() == whole


def test_float32_after_a_larger_float64_is_counted_in_the_wide_bins():
    """Here 2^(11 - exponent) is no normal float32."""
    largest = float(np.finfo(np.float32).max)
    for power in (130, 138, 139, 900):
        mixed = Histogram()
        mixed.update(np.array([2.0**power]), "wide")
        mixed.update(np.array([largest, 1.0], np.float32), "narrow")
        assert (mixed.exponent, found_counts(mixed)) == exact_counts([2.0**power, largest, 1.0])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.int64])
def test_every_real_type_counts_as_the_values_that_it_holds(dtype):
    values = np.array([0, 1, -2, 0.5, 3, 16, -100]).astype(dtype)
    same = values.astype(np.float64)
    assert histogram_of(values, dtype=dtype).to_bytes() == histogram_of(same, dtype=np.float64).to_bytes()


def test_values_beyond_one_chunk_are_counted():
    values = np.random.default_rng(0).standard_normal(200_003).astype(np.float32)
    histogram = histogram_of(values)
    width = histogram.bin_width
    expected = np.histogram(np.abs(values.astype(np.float64)), bins=BINS, range=(0, BINS * width))[0]
    assert (histogram.counts == expected).all()


def test_zeros_alone_have_no_exponent_and_minus_zero_is_zero():
    histogram = histogram_of([0.0, -0.0])
    assert (histogram.exponent, histogram.zeros, histogram.magnitude, histogram.bin_width) == (None, 2, 0.0, 0.0)
    assert histogram.to_bytes() == histogram_of([-0.0], [0.0]).to_bytes()
    assert math.copysign(1.0, histogram.minimum) == 1.0


def test_denormals_lie_in_bin_0_and_are_no_zeros():
    histogram = histogram_of([2.0**-127, 2.0**-149])
    assert (histogram.exponent, found_counts(histogram), histogram.zeros) == (LEAST_EXPONENT, {0: 2}, 0)
    assert histogram.bin_width == 2.0**-126


def test_an_empty_array_changes_nothing():
    assert histogram_of([]).to_bytes() == Histogram().to_bytes()


def test_half_of_the_bins_or_more_are_in_use():
    for value in (1.0, np.nextafter(np.float32(2), np.float32(0)), 1.5):
        assert BINS // 2 <= histogram_of([value]).counts.nonzero()[0][-1] < BINS


# Bytes ----------------------------------------------------------------------------------------------------------------


@given(some_floats)
def test_a_state_survives_its_bytes(values):
    data = histogram_of(values).to_bytes()
    restored = Histogram.from_bytes(data, "x")
    assert restored.to_bytes() == data
    restored.update(np.float32([1e30]), "more")
    assert restored.to_bytes() == histogram_of(values, [1e30]).to_bytes()


@pytest.mark.parametrize(("values", "signs"), [([], 0), ([0.0], 0), ([1.0], 1), ([-1.0], 1), (range(-9_000, 9_000), 2)])
def test_a_state_has_16_kib_for_each_sign_of_its_values(values, signs):
    assert len(histogram_of(values).payload()) == 28 + signs * 16_384


@given(some_floats, some_floats)
def test_what_a_relu_gives_follows_from_what_it_takes(first, second):
    rectified = histogram_of(np.maximum(np.array(first, np.float32), 0), np.maximum(np.array(second, np.float32), 0))
    assert histogram_of(first, second).rectified().to_bytes() == rectified.to_bytes()


@given(some_floats, some_floats)
def test_a_record_of_a_sample_is_as_good_as_its_values(first, second):
    by_records = Histogram("x")
    for sample in (first, second):
        by_records.update_record(histogram_record(np.array(sample, np.float32)), "sample")
    assert by_records.to_bytes() == histogram_of(first, second).to_bytes()


def test_a_record_with_values_that_are_not_finite_is_refused_or_they_are_counted():
    record = histogram_record(np.float32([1.0, np.nan, -np.inf, np.inf]))
    with pytest.raises(CalibrationError, match=r"tensor 'x', sample 'cat'.*1 NaN and 2 infinite of 4 values"):
        Histogram("x").update_record(record, "cat")
    skipping = Histogram("x", skips_nonfinite=True)
    skipping.update_record(record, "cat")
    assert (skipping.skipped, skipping.count, skipping.maximum) == (3, 1, 1.0)


def payload_with(**changes):
    histogram = histogram_of([0.0, 1.0, -1.5])
    for name, value in changes.items():
        setattr(histogram, name, value)
    return histogram.payload()


def side_with(side, exponent=None, **changes):
    """A side of the histogram of 0, 1 and -1.5 with other counts or another exponent."""
    one = getattr(histogram_of([0.0, 1.0, -1.5]), side)
    counts = one.counts.copy()
    for place, value in changes.items():
        counts[int(place.removeprefix("bin_"))] = value
    return HistogramSide(one.exponent if exponent is None else exponent, counts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positive": side_with("positive", 2)}, "the exponent 2 for positive values up to 1.0"),
        ({"negative": HistogramSide()}, "the exponent none for negative values up to 1.5"),
        ({"zeros": -1}, "a count of -1"),
        ({"minimum": math.nan}, "values from nan to 1.0"),
        ({"maximum": math.inf}, "values from -1.5 to inf"),
        ({"minimum": 2.0}, "values from 2.0 to 1.0"),
        ({"minimum": 0.5, "negative": HistogramSide()}, "1 zeros among values from 0.5 to 1.0"),
        ({"positive": side_with("positive", bin_7=-3)}, "a count of -3"),
        ({"negative": side_with("negative", bin_7=2**62, bin_8=2**62)}, "more values than can be counted"),
        ({"negative": side_with("negative", bin_1600=1)}, "the largest negative magnitude 1.5 elsewhere"),
        ({"zeros": 0, "positive": HistogramSide(), "negative": HistogramSide()}, "facts about values, and no value"),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(CalibrationError, match=f"state of tensor 'conv1'.*{message}"):
        Histogram("conv1").restore(payload_with(**changes))


@pytest.mark.parametrize(("missing", "allowed"), [(1, 28), (28, 28)])
def test_a_state_of_the_wrong_size_is_refused(missing, allowed):
    with pytest.raises(CalibrationError, match=f"found {28 - missing} bytes; allowed: {allowed}"):
        Histogram("conv1").restore(Histogram().payload()[:-missing])
