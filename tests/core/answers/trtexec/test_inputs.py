"""Inputs of trtexec: raw bytes in the format of the binding, or random values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import convolution_network, relu_network

from dryfit.answers.trtexec.inputs import inference_inputs, input_files, matches, random_values
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network


@pytest.fixture
def engine() -> Engine:
    return Engine(plan_of(relu_network()))


@pytest.fixture
def shape_engine() -> Engine:
    """x[12] -> shuffle to the shape `size` -> y."""
    network = Network("reshape")
    x = network.add_input("x", DataType.FLOAT, (12,))
    size = network.add_input("size", DataType.INT32, (2,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, size)
    network.mark_output(shuffle.get_output(0))
    config = BuilderConfig()
    profile = OptimizationProfile()
    profile.set_shape_input("size", (1, 1), (3, 4), (12, 12))
    config.add_optimization_profile(profile)
    return Builder().build_engine(network, config)


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


def test_an_input_that_fits_no_memory_is_refused_by_name():
    engine = Engine(plan_of(convolution_network()))
    with pytest.raises(ExecutionError, match="'x'"):
        inference_inputs(engine, {}, {"x": (2**50, 3, 8, 8)})


def test_an_input_that_carries_dimensions_has_the_values_of_the_line_or_ones(shape_engine):
    found = inference_inputs(shape_engine, {}, {"size": (2, 6)})
    assert found.arrays["size"].tolist() == [2, 6]
    assert found.arrays["size"].dtype == shape_engine.get_tensor_dtype("size").numpy
    assert "Set input shape tensor size to: 2x6" in found.lines
    ones = inference_inputs(shape_engine, {}, {})
    assert ones.arrays["size"].tolist() == [1, 1]
    assert ones.warnings == ["Input 'size' carries dimensions and none were specified: using 1"]
    with pytest.raises(ExecutionError, match="another number of values"):
        inference_inputs(shape_engine, {}, {"size": (2, 3, 2)})


def test_an_input_that_carries_dimensions_is_read_from_a_file(shape_engine, tmp_path):
    np.array([3, 4], shape_engine.get_tensor_dtype("size").numpy).tofile(tmp_path / "size.bin")
    found = inference_inputs(shape_engine, {"size": tmp_path / "size.bin"}, {})
    assert found.arrays["size"].tolist() == [3, 4]


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
