"""Inputs of trtexec: raw bytes in the format of the binding, or random values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, relu_network

from dryfit.answers.trtexec.inputs import inference_inputs, input_files, matches, random_values
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType


@pytest.fixture
def engine() -> Engine:
    return Engine(plan_of(relu_network()))


def test_raw_bytes_are_read_in_type_and_shape(engine, tmp_path):
    values = np.float32([[1, 2, 3], [4, 5, 6]])
    values.tofile(tmp_path / "x.bin")
    found = inference_inputs(engine, {"x": tmp_path / "x.bin"}, {})
    assert np.array_equal(found.arrays["x"], values)
    assert found.arrays["x"].dtype == np.float32
    assert found.lines == [
        f"Using values loaded from {tmp_path / 'x.bin'} for input x",
        "Input binding for x with dimensions 2x3 is created.",
    ]
    assert found.warnings == []


def test_a_file_of_another_size_is_refused_with_the_bytes_of_the_input(engine, tmp_path):
    np.zeros((2, 3), np.float64).tofile(tmp_path / "x.bin")
    with pytest.raises(ExecutionError, match=r"found 48 bytes; allowed: 24 bytes: 2x3 of FP32 in LINEAR") as raised:
        inference_inputs(engine, {"x": tmp_path / "x.bin"}, {})
    assert "astype('float32')" in raised.value.remedy


def test_a_file_of_numpy_is_refused_with_the_way_to_convert_it(engine, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(ExecutionError, match="size of the input") as raised:
        inference_inputs(engine, {"x": tmp_path / "x.npy"}, {})
    assert "without the header of .npy" in raised.value.remedy


def test_a_missing_file_and_an_unknown_input_are_refused(engine, tmp_path):
    with pytest.raises(ExecutionError, match="No such file"):
        inference_inputs(engine, {"x": tmp_path / "none.bin"}, {})
    with pytest.raises(UnknownNameError, match="'y'") as raised:
        inference_inputs(engine, {"y": tmp_path / "none.bin"}, {})
    assert raised.value.where == "--loadInputs"
    with pytest.raises(UnknownNameError) as raised:
        inference_inputs(engine, {}, {"xs": (2, 3)})
    assert raised.value.where == "--shapes"


def test_the_list_of_files_is_parsed_as_by_trtexec():
    assert input_files("a:a.bin,'b:0':dir/b.bin") == {"a": Path("a.bin"), "b:0": Path("dir/b.bin")}
    assert input_files("") == {}
    with pytest.raises(ConfigError, match="NAME:VALUE"):
        input_files("a.bin")


def test_random_values_are_the_same_each_time(engine):
    first, second = (inference_inputs(engine, {}, {}) for _ in range(2))
    assert np.array_equal(first.arrays["x"], second.arrays["x"])
    assert first.arrays["x"].shape == (2, 3)
    assert np.abs(first.arrays["x"]).max() <= 1
    assert first.lines[0] == "Using random values for input x"


def test_dynamic_extents_are_those_of_the_line_or_one():
    engine = Engine(plan_of(convolution_network()))
    assert inference_inputs(engine, {}, {"x": (5, 3, 8, 8)}).arrays["x"].shape == (5, 3, 8, 8)
    assert inference_inputs(engine, {}, {"*": (2, 3, 8, 8)}).arrays["x"].shape == (2, 3, 8, 8)
    found = inference_inputs(engine, {}, {})
    assert found.arrays["x"].shape == (1, 3, 8, 8)
    assert found.warnings == ["Input 'x' has a dynamic shape and none was specified: using 1x3x8x8"]


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (DataType.FLOAT, -1, 1),
        (DataType.HALF, -1, 1),
        (DataType.BF16, -1, 1),
        (DataType.INT8, -128, 127),
        (DataType.INT32, -128, 127),
        (DataType.INT64, -128, 127),
        (DataType.UINT8, 0, 255),
        (DataType.BOOL, 0, 1),
        (DataType.INT4, -8, 7),
        (DataType.UINT4, 0, 15),
    ],
)
def test_random_values_have_the_ranges_of_trtexec(dtype, low, high):
    values = random_values(np.random.default_rng(0), dtype, (5000,))
    assert values.dtype == dtype.numpy
    numbers = values.astype(np.float64)
    assert (numbers.min(), numbers.max()) == pytest.approx((low, high), abs=0.01)


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("x", "x", True),
        ("x", "xy", False),
        ("*", "anything", True),
        ("in*_0", "input_0", True),
        ("in*_0", "input_1", False),
        ("aba*ba", "aba", False),
        ("", "x", False),
    ],
)
def test_names_have_one_wildcard(pattern, name, is_match):
    assert matches(pattern, name) == is_match
