"""The forms of files of ranges.

The forms of files of ranges: found by their contents, written, read again, and safe against any bytes.

Ranges set by hand from a file in sampleINT8API's form.
"""

from __future__ import annotations

import contextlib
import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.builder.networks import chain
from tests.schemas import validate

from dryfit.answers.json_data import json_schema
from dryfit.errors import CalibrationError, UnknownNameError
from dryfit.quantization import cache_forms
from dryfit.quantization.cache_document import CacheDocument, stored_solutions
from dryfit.quantization.cache_forms import (
    FORMS,
    cache_form,
    form_of,
    read_calibration_cache,
    read_ranges,
    read_ranges_file,
    set_ranges,
)
from dryfit.quantization.calibration_cache import RANGE_LINES
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.network_ranges import SHARED_WITH
from dryfit.quantization.scale_table import RangeOrigin
from dryfit.quantization.stored_ranges import Flaw, StoredRange, StoredRanges

NAMES = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=("Cs",)), min_size=1).filter(str.strip)
SCALES = st.integers(1, 0x7F7FFFFF).map(lambda bits: struct.unpack(">f", struct.pack(">I", bits))[0])
OBJECTS = "Details and statistics must be objects of strings and numbers"
HEADER = "TRT-8600-EntropyCalibration2"


def stored(scales, header=HEADER):
    return StoredRanges([StoredRange.of_scale(name, scale) for name, scale in scales.items()], "tensorrt", header)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@given(scales=st.dictionaries(NAMES, SCALES))
def test_every_form_keeps_names_order_and_scales_bit_for_bit(form, scales):
    found = form.read(form.write(stored(scales)), "file").require_sound("file")
    assert [(one.name, one.scale) for one in found.entries] == [*scales.items()]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_the_contents_of_real_caches_tell_the_form(form, shared):
    for path in sorted((shared / "calibration-caches").glob("trt*")):
        assert form_of(form.write(read_ranges_file(path))) == form.name, path.name


def test_real_caches_come_back_byte_for_byte_through_dryfits_own_form(shared):
    paths = sorted((shared / "calibration-caches").glob("trt*"))
    assert len(paths) == 16
    for path in paths:
        document = FORMS["json"].write(read_ranges_file(path))
        validate(json.loads(document), json_schema(CacheDocument, "cache"))
        assert FORMS["tensorrt"].write(FORMS["json"].read(document, path.name)) == path.read_bytes(), path.name


def test_an_unknown_form_is_refused_with_the_closest():
    with pytest.raises(UnknownNameError, match="'onnxruntime-json'"):
        cache_form("onnxruntime-jsn")


# Files of ONNX Runtime -----------------------------------------------------------------------------------------------


@pytest.fixture
def onnxruntime_folder(tmp_path):
    calibrate = pytest.importorskip("onnxruntime.quantization.calibrate")
    from onnxruntime.quantization import write_calibration_table

    ends = {"x": (-1.5, 2.5), "a b: c": (0.0, 3.3)}
    arrays = {name: tuple(np.array(end, np.float32) for end in both) for name, both in ends.items()}
    write_calibration_table(calibrate.TensorsData(calibrate.CalibrationMethod.MinMax, arrays), str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("calibration.json", "onnxruntime-json"),
        ("calibration.flatbuffers", "onnxruntime-flatbuffers"),
        ("calibration.cache", "onnxruntime-text"),
    ],
)
def test_what_onnxruntime_writes_is_read(onnxruntime_folder, file, form):
    found = read_ranges_file(onnxruntime_folder / file)
    assert found.form == form
    thresholds = {one.name: one.dynamic_range.threshold for one in found.entries}
    assert thresholds == {"x": 2.5, "a b: c": float(np.float32(3.3))}
    if form == "onnxruntime-json":
        assert found.by_name["x"].dynamic_range.minimum == -1.5
        assert found.facts == {"calibration method": "CalibrationMethod.MinMax"}


def test_onnxruntime_reads_what_is_written_for_it(tmp_path):
    calibrate = pytest.importorskip("onnxruntime.quantization.calibrate")
    from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable

    names = ["x", "", "four", "(Unnamed Layer* 3) [Shuffle]: ö", "a" * 1000]
    written = stored({name: 0.5 + index for index, name in enumerate(names)})
    expected = {name: 127.0 * (0.5 + index) for index, name in enumerate(names)}
    table = TrtTable.GetRootAs(FORMS["onnxruntime-flatbuffers"].write(written), 0)
    pairs = [table.Dict(index) for index in range(table.DictLength())]
    assert {one.Key().decode(): float(one.Value()) for one in pairs} == expected

    (tmp_path / "calibration.json").write_bytes(FORMS["onnxruntime-json"].write(written))
    data = calibrate.load_tensors_data(tmp_path / "calibration.json")
    assert {name: float(one.range_value[1]) for name, one in data.items()} == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"x": [-2.5, 1.5]}',
        '{"x": {"lowest": -2.5, "highest": 1.5}}',
        '{"x": {"lowest": {"data": [-2.5]}, "highest": {"data": 1.5}, "CLS": "TensorData"}}',
        '{"CLS": "TensorsData", "data": {"x": {"lowest": -2.5, "highest": 1.5}}}',
    ],
)
def test_older_tables_of_onnxruntime_are_read(text):
    [entry] = FORMS["onnxruntime-json"].read(text.encode(), "table").entries
    assert (entry.name, entry.dynamic_range.minimum, entry.dynamic_range.maximum) == ("x", -2.5, 1.5)


# Flaws ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("tensorrt", "x: 3f800000\n", "line 1: The first line .*found the entry 'x: 3f800000'"),
        ("tensorrt", "hello\n", "line 1: The file is not a calibration cache .*only 'hello'"),
        ("tensorrt", "\0" * 9, "line 1: The file is not a calibration cache"),
        ("ranges", "a: 1\nb\n", r"line 2: Not a dynamic range .*'b'"),
        ("ranges", "a: 1\nb: inf\n", "line 2: A scale must be positive and finite .*inf for 'b'"),
        ("ranges", "a: 1\nb: -1\n", "line 2: A scale must be positive and finite"),
        ("ranges", "a: 1\nb: 2\na: 3\n", "line 3: Tensor names must be unique"),
        ("onnxruntime-text", "a 1\nb nan\n", "line 2: A scale must be positive and finite .*nan for 'b'"),
        ("onnxruntime-json", '{"a": [2, 1]}', "entry 1: The lowest value must not be above the highest"),
        ("onnxruntime-json", '{"a": [1, 2], "a": [1, 3]}', "entry 2: Tensor names must be unique"),
        ("onnxruntime-json", '{"a": [1, NaN]}', "entry 1: A scale must be positive and finite"),
        ("onnxruntime-json", '{"a": [1, %s]}' % ("9" * 400), "entry 1: A scale must be positive and finite"),
        ("onnxruntime-json", '{"\\ud800": [1, 2]}', "entry 1: Not a range"),
        ("onnxruntime-json", '{"a":\n [1, }', "line 2: The file is not valid JSON"),
        ("onnxruntime-json", "[" * 100000, "The JSON is nested too deeply"),
        ("onnxruntime-json", "[%s]" % ("9" * 5000), "not valid JSON|no calibration table"),
        ("json", "{}", "The JSON file is not a dryfit calibration cache"),
        ("json", '{"format": "dryfit calibration cache", "version": 2, "tensors": []}', "version.*found 2"),
    ],
)
def test_a_flaw_is_an_error_that_names_file_and_place(form, text, message, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(CalibrationError, match=message) as refused:
        read_calibration_cache(path, form)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ({"name": 3}, "Not a tensor"),
        ({"name": "a", "range": [1, 2, 3], "scale": 1}, "Not a range"),
        ({"name": "a", "range": [-127, 127], "scale": 2}, "Scale and range must match"),
        ({"name": "a", "range": None, "scale": 1}, "Not a range"),
        ({"name": "a", "range": None, "scale": None, "origin": "nowhere"}, "Unknown origin"),
        ({"name": "a", "range": None, "scale": None, "details": 1}, OBJECTS),
        ({"name": "a", "range": None, "scale": None, "statistics": {"count": [1]}}, OBJECTS),
        ({"name": "a", "range": None, "scale": None, "details": {"divergence": math.nan}}, OBJECTS),
    ],
)
def test_a_tensor_of_dryfits_own_form_that_contradicts_itself_is_damage(tensor, message):
    text = json.dumps({"format": "dryfit calibration cache", "version": 1, "tensors": [tensor]})
    [damage] = FORMS["json"].read(text.encode(), "file").damages
    assert (damage.message, damage.place) == (message, "entry 1")


@pytest.mark.parametrize(
    ("threshold", "flaw"),
    [(1.0, None), (0.0, Flaw.ZERO), (1e-60, Flaw.ZERO), (-1.0, Flaw.NEGATIVE), (-0.0, Flaw.ZERO)]
    + [(one, Flaw.NOT_FINITE) for one in (math.nan, math.inf, -math.inf, 1e60)],
)
def test_a_threshold_is_sound_or_has_a_flaw(threshold, flaw):
    entry = StoredRange.of_threshold("x", threshold)
    assert entry.flaw is flaw
    assert (entry.dynamic_range is None) == (flaw is not None)


def test_all_flaws_are_counted_in_the_error():
    with pytest.raises(CalibrationError, match=r"line 3.*2 more: `dryfit cache check` lists them"):
        FORMS["tensorrt"].read(b"1\na: 1\nb\na: 1\nc: ff800000\n", "file").require_sound("file")


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_forms, "LARGEST_BYTES", 10)
    (tmp_path / "large").write_bytes(b"1\na: 1\nb: 1\n")
    with pytest.raises(CalibrationError, match=r"too large .*allowed: 10 bytes"):
        read_ranges_file(tmp_path / "large")


@pytest.mark.parametrize("form", ["tensorrt", "ranges", "onnxruntime-text"])
def test_a_name_that_would_break_a_line_is_not_written(form):
    with pytest.raises(CalibrationError, match=r"a\\nb"):
        FORMS[form].write(stored({"a\nb": 1.0}))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_tensors_without_a_scale_are_kept_or_left_out_as_the_form_says(form):
    found = form.read(form.write(stored({"a": 1.0, "none": 0.0})), "file")
    assert [one.name for one in found.entries] == (["a", "none"] if form.keeps_missing else ["a"])


def test_dryfits_own_form_keeps_what_calibration_saw(tmp_path):
    seen = Histogram("x", skips_nonfinite=True)
    seen.update(np.float32([0.0, -0.5, 2.0, math.nan]), "sample")
    solutions = {
        "x": Solution(DynamicRange(-1.0, 1.5), details={"divergence": np.float32(0.5), "worst": math.inf}),
        "y": Solution(DynamicRange(-1.0, 1.0), details={SHARED_WITH: "x"}),
        "none": Solution(None, "every value is zero"),
    }
    written = stored_solutions(solutions, {"x": seen}, {"model": "sha256:1", "samples seen": 1}, HEADER)
    (tmp_path / "ranges.json").write_bytes(FORMS["json"].write(written))
    found = read_ranges_file(tmp_path / "ranges.json")
    x, y, none = found.entries
    assert (found.header, found.facts) == (HEADER, {"model": "sha256:1", "samples seen": 1})
    assert (x.dynamic_range, x.origin) == (DynamicRange(-1.0, 1.5), RangeOrigin.CALIBRATED)
    assert x.details == {"divergence": 0.5, "worst": None}
    assert x.statistics == {"count": 3, "zeros": 1, "skipped": 1, "minimum": -0.5, "maximum": 2.0}
    assert (y.origin, y.details) == (RangeOrigin.SHARED, {SHARED_WITH: "x"})
    assert (none.dynamic_range, none.details) == (None, {"reason": "every value is zero"})


# Hostile bytes -------------------------------------------------------------------------------------------------------

SOUND = [form.write(stored({"a": 1.0, "b c: d": 2.0, "ö": 0.5})) for form in FORMS.values()]


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=200), st.tuples(st.sampled_from(SOUND), st.data())))
def test_any_bytes_are_read_or_refused_with_an_error_of_ours(source):
    data = source if isinstance(source, bytes) else damaged(*source)
    for form in (form_of(data), *FORMS):
        with contextlib.suppress(CalibrationError):
            found = FORMS[form].read(data, "file").require_sound("file")
            assert len(found.by_name) == len(found.entries)
            assert all(one.flaw in (None, Flaw.ZERO) for one in found.entries)


def damaged(sound, data):
    """A sound file with some bytes changed, and perhaps its end cut off."""
    found = bytearray(sound)
    for _ in range(data.draw(st.integers(0, 4))):
        found[data.draw(st.integers(0, len(found) - 1))] = data.draw(st.integers(0, 255))
    return bytes(found[: data.draw(st.integers(0, len(found)))])


def test_many_entries_that_share_one_long_text_are_refused_in_time():
    """The file is small and what it says would not be: 1000 pairs of 64 KiB, at each end of which one text lies."""
    text = struct.pack("<I", 65536) + b"x" * 65536 + bytes(4)
    head = struct.pack("<IHHHxxHHHHiII", 20, 6, 8, 4, 8, 12, 4, 8, 16, 4, 1000)
    pair_at = 32 + 4000
    offsets = b"".join(struct.pack("<I", pair_at - (32 + 4 * index)) for index in range(1000))
    pair = struct.pack("<iII", pair_at - 12, 8, 4)
    with pytest.raises(CalibrationError, match="texts of more than the file's"):
        FORMS["onnxruntime-flatbuffers"].read(head + offsets + pair + text, "file")


def test_a_cache_of_many_tensors_on_windows_without_a_last_line_end_is_read():
    lines = [HEADER, *(f"tensor: {index}: {index + 1:X}" for index in range(20000))]
    found = FORMS["tensorrt"].read("\r\n".join(lines).encode(), "file").require_sound("file")
    assert len(found.entries) == 20000
    assert found.entries[-1].name == "tensor: 19999"


@pytest.fixture
def written(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "ranges.txt"
        path.write_bytes(text.encode())
        return path

    return write


def test_a_line_is_a_tensor_and_its_range_and_the_last_colon_parts_them(written):
    found = read_ranges(written("gpu_0/data_0: 1.00024\r\n(Unnamed Layer* 3) [Pooling]: a: 2.5\n\n"))
    assert found == {
        "gpu_0/data_0": DynamicRange(-1.00024, 1.00024),
        "(Unnamed Layer* 3) [Pooling]: a": DynamicRange(-2.5, 2.5),
    }


@pytest.mark.parametrize("line", ["conv1", "conv1:", "conv1: x", ": 1", "conv1: -1", "conv1: nan", "conv1: 1e60"])
def test_a_line_that_is_no_range_is_refused_with_file_and_line(line, written):
    with pytest.raises(CalibrationError, match=r"ranges\.txt, line 2"):
        read_ranges(written(f"data: 1\n{line}\n"))


def test_a_tensor_that_occurs_twice_is_refused(written):
    with pytest.raises(CalibrationError, match=r"ranges\.txt, line 3"):
        read_ranges(written("a: 1\nb: 2\na: 3\n"))


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(CalibrationError, match=r"nowhere\.txt"):
        read_ranges(tmp_path / "nowhere.txt")


def test_what_is_written_is_read_again(written):
    ranges = {"a b: (c)": DynamicRange(-5.43116, 5.43116), "d": DynamicRange(-1e-30, 1e-30)}
    entries = [StoredRange.of_threshold(name, one.threshold) for name, one in ranges.items()]
    text = cache_form(RANGE_LINES.name).write(StoredRanges(entries, RANGE_LINES.name)).decode()
    assert read_ranges(written(text)) == ranges


def test_the_ranges_of_a_file_are_set_by_hand_and_names_that_the_network_lacks_are_refused_together(written):
    network = chain("c", "r")
    set_ranges(network, read_ranges(written("x: 1\nc0: 2\n")))
    assert [tensor.dynamic_range for tensor in network.tensors] == [(-1.0, 1.0), (-2.0, 2.0), None]
    with pytest.raises(CalibrationError, match="'y', 'z'"):
        set_ranges(network, read_ranges(written("y: 1\nz: 2\nr1: 3\n")))
    assert network.tensor("r1").dynamic_range is None
