"""Ranges set by hand from a file in sampleINT8API's form."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.builder.networks import chain

from dryfit.errors import CalibrationError
from dryfit.quantization.dynamic_range import DynamicRange
from dryfit.quantization.range_file import ranges_text, read_ranges, set_ranges


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
    assert read_ranges(written(ranges_text(ranges))) == ranges


def test_the_ranges_of_a_file_are_set_by_hand_and_names_that_the_network_lacks_are_refused_together(written):
    network = chain("c", "r")
    set_ranges(network, read_ranges(written("x: 1\nc0: 2\n")))
    assert [tensor.dynamic_range for tensor in network.tensors] == [(-1.0, 1.0), (-2.0, 2.0), None]
    with pytest.raises(CalibrationError, match="'y', 'z'"):
        set_ranges(network, read_ranges(written("y: 1\nz: 2\nr1: 3\n")))
    assert network.tensor("r1").dynamic_range is None
