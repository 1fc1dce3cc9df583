"""Calibration caches: real ones come back byte for byte, damaged ones are refused with their line."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.errors import CalibrationError
from dryfit.quantization.calibration_cache import CalibrationCache, parse
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.int8_steps import DynamicRange

ENTROPY_2 = CalibrationAlgoType.ENTROPY_CALIBRATION_2
HEADER = "TRT-8600-EntropyCalibration2"
scales = st.integers(0, 0x7F7FFFFF).map(lambda bits: struct.unpack(">f", struct.pack(">I", bits))[0])
names = st.text(st.characters(exclude_characters="\n\r", codec="utf-8"))


def test_real_caches_come_back_byte_for_byte(shared):
    files = [path for path in sorted((shared / "calibration-caches").iterdir()) if path.suffix != ".md"]
    assert len(files) == 16
    for path in files:
        cache = parse(path.read_bytes(), path.name)
        assert cache.to_bytes() == path.read_bytes(), path.name
        assert cache.algorithm is not None, path.name


@given(st.dictionaries(names, scales))
def test_what_is_written_is_read_again(found):
    cache = CalibrationCache(HEADER, found)
    assert parse(cache.to_bytes()) == cache


def test_digits_are_not_padded_and_names_may_have_colons_and_spaces():
    cache = CalibrationCache(HEADER, {"(Unnamed Layer* 64) [Shuffle]_output": 0.0, "resnet/Relu: 0": 1.0})
    expected = f"{HEADER}\n(Unnamed Layer* 64) [Shuffle]_output: 0\nresnet/Relu: 0: 3f800000\n"
    assert cache.to_bytes() == expected.encode()
    assert parse(expected.encode()) == cache


def test_lines_may_end_as_on_windows_and_with_upper_case_digits():
    assert parse(f"{HEADER}\r\nx: 3F800000\r\n".encode()).scales == {"x": 1.0}


@pytest.mark.parametrize(
    ("header", "algorithm"),
    [
        ("1", CalibrationAlgoType.ENTROPY_CALIBRATION),
        ("0 3ff0000000000000 3fefffeb074a771d", CalibrationAlgoType.LEGACY_CALIBRATION),
        ("TRT-7200-MinMaxCalibration", CalibrationAlgoType.MINMAX_CALIBRATION),
        ("TRT-5102-EntropyCalibration", CalibrationAlgoType.ENTROPY_CALIBRATION),
        ("TRT-100300-EntropyCalibration2", ENTROPY_2),
        ("TRT-8600-OtherCalibration", None),
        ("hello", None),
    ],
)
def test_the_first_line_names_the_algorithm(header, algorithm):
    assert CalibrationCache(header, {}).algorithm is algorithm


def test_a_range_and_its_cache_have_the_same_scale():
    wanted = DynamicRange(-2.640645, 1.0)
    cache = CalibrationCache.of_solutions({"image": Solution(wanted), "zeros": Solution(None, "zeros")}, ENTROPY_2)
    assert cache.header == "TRT-100300-EntropyCalibration2"
    assert cache.solution("image").dynamic_range.scale == wanted.scale
    assert cache.solution("zeros").dynamic_range is None
    assert cache.solution("zeros").reason == "its scale in the cache is zero"


def test_the_legacy_first_line_is_not_invented():
    with pytest.raises(CalibrationError, match=r"found LEGACY_CALIBRATION"):
        CalibrationCache.of_solutions({}, CalibrationAlgoType.LEGACY_CALIBRATION)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "calib.cache, line 1: .*an empty first line"),
        (b"\xff\xfe", "calib.cache: .*utf-8"),
        (b"1\nx 3f800000\n", "calib.cache, line 2: .*'x 3f800000'"),
        (b"1\nx: 3f800000\ny: 3f8000001\n", "calib.cache, line 3: .*1 to 8 hexadecimal digits"),
        (b"1\nx: \n", "calib.cache, line 2"),
        (b"1\nx: 3f800000\n\ny: 3f800000\n", "calib.cache, line 3: Not an entry"),
        (b"1\nx: 7fc00000\n", "calib.cache, line 2: A scale must be positive and finite .*nan for 'x'"),
        (b"1\nx: 7f800000\n", "found inf for 'x'"),
        (b"1\nx: bf800000\n", "found -1.0 for 'x'"),
        (b"1\nx: 1\nx: 2\n", "calib.cache, line 3: Tensor names must be unique .*'x'"),
    ],
)
def test_a_damaged_cache_is_refused_with_its_line(data, message):
    with pytest.raises(CalibrationError, match=message):
        parse(data, "calib.cache")
