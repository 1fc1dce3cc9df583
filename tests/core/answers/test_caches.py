"""Questions about calibration caches from Python, and caches made of others."""

from __future__ import annotations

import pytest

import dryfit

HEADER = "TRT-8600-EntropyCalibration2"


@pytest.fixture
def caches(tmp_path):
    """Two caches that differ in `b` and `c`."""
    first, second = tmp_path / "first.cache", tmp_path / "second.cache"
    first.write_text(f"{HEADER}\na: 3f800000\nb: 3f800000\nc: 0\n")
    second.write_text(f"{HEADER}\na: 3f800000\nb: 40000000\n")
    return first, second


def test_a_cache_is_shown_as_records(caches):
    answer = dryfit.show_cache(caches[0])
    assert (answer.algorithm, [one.scale for one in answer.tensors]) == ("ENTROPY_CALIBRATION_2", [1.0, 1.0, None])
    assert answer.summary_line() == "3 tensors, 1 of them without a scale"


def test_two_caches_are_compared(caches):
    answer = dryfit.diff_caches(*caches, fail_on="ratio>1.5,added")
    assert [(one.name, one.ratio) for one in answer.changed] == [("b", 2.0)]
    assert (answer.equal, answer.removed) == (1, ["c"])
    assert [one.failed for one in answer.conditions] == [True, False]


def test_what_is_wrong_is_found_at_once(caches):
    answer = dryfit.check_cache(caches[0], fail_on="zero")
    assert [(one.kind, one.tensor) for one in answer.findings] == [("zero", "c")]
    assert answer.conditions[0].failed


def test_caches_are_merged_and_converted(caches, tmp_path):
    merged = dryfit.merge_caches(caches, tmp_path / "merged.cache", on_conflict="widest")
    assert (merged.tensors, [one.name for one in merged.conflicts]) == (3, ["b"])
    assert "the widest one is used" in merged.notes[0]
    converted = dryfit.convert_cache(tmp_path / "merged.cache", tmp_path / "ranges.txt", to="ranges")
    assert (converted.left_out, converted.form) == (["c"], "ranges")
    with pytest.raises(dryfit.UnknownNameError, match="--on-conflict"):
        dryfit.merge_caches(caches, tmp_path / "x", on_conflict="wider")
