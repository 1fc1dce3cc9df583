"""Ranges and scales against what published calibration caches hold."""

import math
import re
import struct

import pytest

from dryfit.errors import CalibrationError
from dryfit.quantization.int8_steps import DynamicRange, int8_scale


@pytest.mark.parametrize(
    ("minimum", "maximum", "bits"),
    [(-128.0, 127.0, "3f810204"), (-127.0, 127.0, "3f800000"), (-1.0, 1.0, "3c010204"), (0.0, 494.0, "4078f1e4")],
)
def test_the_scale_of_a_known_range_has_the_bits_that_real_caches_hold(minimum, maximum, bits):
    """Source: the caches of MLPerf inference 0.5 and 0.7, whose ranges were set by hand."""
    assert struct.pack(">f", DynamicRange(minimum, maximum).scale).hex() == bits


@pytest.mark.parametrize(
    ("minimum", "maximum"),
    [(1.0, -1.0), (0.0, 0.0), (math.nan, 1.0), (-1.0, math.inf), (-1e-45, 1e-45), (-1e300, 1e300)],
)
def test_what_is_no_range_is_refused(minimum, maximum):
    with pytest.raises(CalibrationError, match=re.escape(f"found {minimum} to {maximum}")):
        DynamicRange(minimum, maximum)


def test_a_scale_that_no_binary32_number_is_becomes_zero_or_infinity():
    assert int8_scale(2.0**-149) == 0.0
    assert int8_scale(1e300) == math.inf
    assert 0.0 < int8_scale(127 * 2.0**-149) < math.inf
