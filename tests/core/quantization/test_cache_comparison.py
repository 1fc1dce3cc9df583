"""What is wrong with files of ranges, and how they differ."""

from __future__ import annotations

import math

import pytest
from tests.core.builder.networks import chain

from dryfit.errors import CalibrationError
from dryfit.quantization.cache_comparison import (
    ConflictRule,
    FindingKind,
    compare,
    findings_for_model,
    findings_in_file,
    merge,
)
from dryfit.quantization.calibration_cache import stored_in_cache
from dryfit.quantization.stored_ranges import StoredRange, StoredRanges


def stored(header="1", facts=None, **scales):
    entries = [StoredRange.of_scale(name, scale) for name, scale in scales.items()]
    return StoredRanges(entries, "tensorrt", header, facts or {})


def test_differences_come_by_their_ratio_whichever_scale_is_larger():
    found = compare(stored(a=1.0, b=1.0, c=4.0, d=0.0, e=2.0), stored(b=1.5, a=1.0, c=1.0, d=1.0, f=1.0))
    assert [(one.tensor, one.ratio) for one in found.changed] == [("d", math.inf), ("c", 4.0), ("b", 1.5)]
    assert (found.equal, found.removed, found.added) == (1, ["e"], ["f"])
    assert found.largest_ratio == math.inf


def test_a_file_does_not_differ_from_itself():
    found = compare(stored(a=1.0, b=0.0), stored(a=1.0, b=0.0))
    assert (found.changed, found.removed, found.added, found.equal, found.largest_ratio) == ([], [], [], 2, 1.0)


@pytest.mark.parametrize(("rule", "scale"), [("first", 2.0), ("last", 1.0), ("widest", 3.0)])
def test_the_rule_says_which_scale_counts(rule, scale):
    files = [("x", stored(a=2.0)), ("y", stored(a=3.0, b=1.0)), ("z", stored(a=1.0))]
    found = merge(files, ConflictRule(rule))
    assert {one.name: one.scale for one in found.stored.entries} == {"a": scale, "b": 1.0}
    assert [(index, one.scale) for index, one in found.conflicts["a"]] == [(0, 2.0), (1, 3.0), (2, 1.0)]


@pytest.mark.parametrize("rule", ConflictRule)
def test_a_scale_and_none_and_equal_scales_are_no_conflict(rule):
    found = merge([("x", stored(a=0.0, b=1.0)), ("y", stored(a=2.0, b=1.0)), ("z", stored(a=0.0))], rule)
    assert {one.name: one.scale for one in found.stored.entries} == {"a": 2.0, "b": 1.0}
    assert not found.conflicts


def test_all_conflicts_are_told_with_their_files():
    with pytest.raises(CalibrationError, match=r"2 tensors: .*'a': 1 in x, 2 in y; 'b': 3 in x, 4 in y.*first, last"):
        merge([("x", stored(a=1.0, b=3.0)), ("y", stored(a=2.0, b=4.0))])


def test_the_first_files_line_counts_and_facts_that_all_tell():
    first = stored("TRT-8600-EntropyCalibration2", {"model": "m", "samples": 3}, a=1.0)
    found = merge([("x", first), ("y", stored("1", {"model": "m", "samples": 4}, b=1.0))]).stored
    assert (found.header, found.form, found.facts) == (first.header, "tensorrt", {"model": "m"})


def test_no_file_cannot_be_merged():
    with pytest.raises(CalibrationError, match="At least one file is required"):
        merge([])


def kinds(found):
    return [(one.kind, one.tensor, one.place) for one in found]


def stored_of_cache_findings(*names, **facts):
    return StoredRanges([StoredRange.of_scale(name, 1.0, place=f"line {name}") for name in names], "json", "", facts)


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        ("b", (FindingKind.DAMAGED, "", "line 3")),
        ("a: 1", (FindingKind.DUPLICATE, "a", "line 3")),
        ("b: bf800000", (FindingKind.NEGATIVE, "b", "line 3")),
        ("b: 80000000", (FindingKind.NEGATIVE, "b", "line 3")),
        ("b: 7fc00000", (FindingKind.NOT_FINITE, "b", "line 3")),
        ("b: ff800000", (FindingKind.NOT_FINITE, "b", "line 3")),
        ("b: 0", (FindingKind.ZERO, "b", "line 3")),
    ],
)
def test_each_flaw_of_a_line_is_found(lines, finding):
    assert kinds(findings_in_file(stored_in_cache(f"1\na: 3f800000\n{lines}\n".encode()))) == [finding]


def test_a_sound_file_has_no_findings():
    assert not [*findings_in_file(stored_in_cache(b"1\na: 3f800000\nb: 1\n"))]


def test_tensors_without_scale_and_scales_without_tensor_are_found():
    network = chain("c", "r", "c")
    names = [tensor.name for tensor in network.tensors if tensor.dtype.is_floating_point]
    assert not [*findings_for_model(stored_of_cache_findings(*names), network)]
    found = kinds(
        findings_for_model(
            stored_of_cache_findings(*names[:-1], "stranger", "(Unnamed Layer* 3) [Constant]_output"), network
        )
    )
    assert found == [
        (FindingKind.MISSING, names[-1], ""),
        (FindingKind.UNKNOWN, "stranger", "line stranger"),
        (FindingKind.UNNAMED, "(Unnamed Layer* 3) [Constant]_output", "line (Unnamed Layer* 3) [Constant]_output"),
    ]


def test_what_has_an_entry_without_a_scale_is_not_missing_too():
    network = chain("c", "r")
    entries = [StoredRange.of_scale(tensor.name, 0.0) for tensor in network.tensors]
    assert not [*findings_for_model(StoredRanges(entries, "tensorrt"), network)]


def test_a_file_of_other_names_is_another_models():
    network = chain("c", "r", "c")
    names = [tensor.name for tensor in network.tensors if tensor.dtype.is_floating_point]
    share = [one.kind for one in findings_for_model(stored_of_cache_findings(names[0], "p", "q"), network)]
    assert FindingKind.FOREIGN in share
    half = [one.kind for one in findings_for_model(stored_of_cache_findings(names[0], "p"), network)]
    assert FindingKind.FOREIGN not in half


def test_a_file_of_the_same_names_for_another_file_is_another_models():
    network = chain("c", "r", "c")
    names = [tensor.name for tensor in network.tensors if tensor.dtype.is_floating_point]
    [found] = findings_for_model(stored_of_cache_findings(*names, model="sha256:1"), network, "sha256:2")
    assert found.kind is FindingKind.FOREIGN
    assert "sha256:1" in found.text
    assert "sha256:2" in found.text
    assert not [*findings_for_model(stored_of_cache_findings(*names, model="sha256:1"), network, "sha256:1")]
