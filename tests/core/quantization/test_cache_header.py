"""First lines of calibration caches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.errors import CalibrationError
from dryfit.quantization.cache_header import CacheHeader, parse_version
from dryfit.quantization.calibration_stream import CalibrationAlgoType

ENTROPY, ENTROPY_2, MINMAX, LEGACY = (
    CalibrationAlgoType.ENTROPY_CALIBRATION,
    CalibrationAlgoType.ENTROPY_CALIBRATION_2,
    CalibrationAlgoType.MINMAX_CALIBRATION,
    CalibrationAlgoType.LEGACY_CALIBRATION,
)


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("1", CacheHeader(ENTROPY, None)),
        ("TRT-5102-EntropyCalibration2", CacheHeader(ENTROPY_2, (5, 1, 2))),
        ("TRT-8510-EntropyCalibration2", CacheHeader(ENTROPY_2, (8, 5, 10))),
        ("TRT-9200-EntropyCalibration2", CacheHeader(ENTROPY_2, (9, 2, 0))),
        ("TRT-100100-EntropyCalibration2", CacheHeader(ENTROPY_2, (10, 1, 0))),
        ("TRT-101401-MinMaxCalibration", CacheHeader(MINMAX, (10, 14, 1))),
        ("0 3ff0000000000000 3fefffeb074a771d", CacheHeader(LEGACY, None, 1.0, 0.99999)),
    ],
)
def test_a_known_line_is_read_and_written_again(line, header):
    assert CacheHeader.parse(line) == header
    assert header.text == line


@pytest.mark.parametrize("line", ["", "4", "01", "TRT-8600-Other", "TRT-86-EntropyCalibration2", "0 3ff", "image: 1"])
def test_another_line_says_nothing(line):
    assert CacheHeader.parse(line) is None


@given(st.integers(5, 9), st.integers(1, 9), st.integers(0, 99), st.integers(10, 98), st.integers(0, 99))
def test_every_version_from_5_1_on_comes_back_from_its_line(old, minor, patch, new, wide):
    for version in ((old, minor, patch), (new, wide, patch)):
        assert CacheHeader.parse(CacheHeader(ENTROPY_2, version).text).version == version


@given(st.floats(0, 1), st.floats(0, 1))
def test_cutoff_and_quantile_come_back_bit_for_bit(cutoff, quantile):
    found = CacheHeader.parse(CacheHeader(LEGACY, cutoff=cutoff, quantile=quantile).text)
    assert (found.cutoff, found.quantile) == (cutoff, quantile)


def test_before_5_1_the_line_is_the_number_of_the_algorithm():
    assert CacheHeader(ENTROPY, (4, 0, 0)).text == "1"


def test_a_version_that_lacks_the_algorithm_is_refused():
    with pytest.raises(CalibrationError, match=r"MINMAX_CALIBRATION in 5\.1\.0"):
        _ = CacheHeader(MINMAX, (5, 1, 0)).text


@pytest.mark.parametrize(
    ("text", "version"), [("8", (8, 0, 0)), ("8.6", (8, 6, 0)), ("8.5.10", (8, 5, 10)), ("10.14.1", (10, 14, 1))]
)
def test_a_version_may_leave_its_end_out(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "0.1", "8.", "8.6.1.6", "8.12", "x", "100"])
def test_what_is_no_version_or_fits_no_line_is_refused(text):
    with pytest.raises(CalibrationError, match="Not a TensorRT version"):
        parse_version(text)
