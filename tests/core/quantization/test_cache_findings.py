"""What is wrong with files of ranges."""

from __future__ import annotations

import pytest
from tests.core.builder.networks import chain

from dryfit.quantization.cache_findings import FindingKind, findings_for_model, findings_in_file
from dryfit.quantization.calibration_cache import stored_in_cache
from dryfit.quantization.stored_ranges import StoredRange, StoredRanges


def kinds(found):
    return [(one.kind, one.tensor, one.place) for one in found]


def stored(*names, **facts):
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
    assert not [*findings_for_model(stored(*names), network)]
    found = kinds(findings_for_model(stored(*names[:-1], "stranger", "(Unnamed Layer* 3) [Constant]_output"), network))
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
    share = [one.kind for one in findings_for_model(stored(names[0], "p", "q"), network)]
    assert FindingKind.FOREIGN in share
    half = [one.kind for one in findings_for_model(stored(names[0], "p"), network)]
    assert FindingKind.FOREIGN not in half


def test_a_file_of_the_same_names_for_another_file_is_another_models():
    network = chain("c", "r", "c")
    names = [tensor.name for tensor in network.tensors if tensor.dtype.is_floating_point]
    [found] = findings_for_model(stored(*names, model="sha256:1"), network, "sha256:2")
    assert found.kind is FindingKind.FOREIGN
    assert "sha256:1" in found.text
    assert "sha256:2" in found.text
    assert not [*findings_for_model(stored(*names, model="sha256:1"), network, "sha256:1")]
