"""What an engine's tensors stand for in the user's network."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.engine.stored_tensors import StoredTensor, stored_tensors
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.quantization.rounding import RoundingMode

FLOAT, HALF, INT8 = DataType.FLOAT, DataType.HALF, DataType.INT8


def test_versions_of_a_tensor_are_found_through_conversions_on_both_sides():
    network = Network()
    x = network.add_input("x", FLOAT, (1, 8, 4, 4))
    kernel = np.ones((8, 8, 1, 1), np.float32)
    convolution = network.add_convolution_nd(x, 8, (1, 1), kernel)
    convolution.precision = INT8
    y = convolution.get_output(0)
    z = network.add_softmax(y).get_output(0)
    for tensor, name, threshold in ((x, "x", 127.0), (y, "y", 254.0), (z, "z", 1.0)):
        if tensor.name != name:
            network.rename_tensor(tensor, name)
        tensor.set_dynamic_range(-threshold, threshold)
    network.mark_output(z)
    builder = Builder()
    config = builder.create_builder_config()
    config.set_flag(BuilderFlag.INT8)
    config.set_flag(BuilderFlag.FP16)
    plan = builder.build_plan(network, config)
    found = stored_tensors(plan.network, {tensor.name: tensor.dtype for tensor in network.tensors})
    versions = {name: {(one.dtype, one.scale) for one in found.values() if one.of == name} for name in "xyz"}
    assert versions["x"] == {(FLOAT, None), (INT8, 1.0)}
    assert versions["z"] == {(FLOAT, None), (HALF, None)}
    assert all(one.of in "xyz" for one in found.values())


def test_codes_stand_for_numbers_and_numbers_become_codes():
    tensor = StoredTensor("y", "y", INT8, 0.5)
    codes = np.arange(-128, 128).astype(np.int8)
    np.testing.assert_array_equal(tensor.real(codes), np.arange(-128, 128) / 2)
    np.testing.assert_array_equal(tensor.represented(tensor.real(codes), RoundingMode.HALF_TO_EVEN), codes)
    ties = np.array([0.25, 0.75, -0.25, 1e9, -1e9], np.float32)
    assert tensor.represented(ties, RoundingMode.HALF_TO_EVEN).tolist() == [0, 2, 0, 127, -128]
    assert tensor.represented(ties, RoundingMode.HALF_AWAY_FROM_ZERO).tolist() == [1, 2, -1, 127, -128]


def test_signed_codes_stand_for_the_unsigned_ones_of_the_users_network():
    network = Network()
    x = network.add_input("x", FLOAT, (1, 4))
    scale = network.add_constant((), np.array(0.1, np.float32)).get_output(0)
    codes = network.add_quantize(x, scale, DataType.UINT8).get_output(0)
    network.rename_tensor(codes, "codes")
    network.mark_output(network.add_dequantize(codes, scale).get_output(0))
    config = Builder().create_builder_config()
    config.default_device_type = "CPU"
    plan = Builder().build_plan(network, config)
    found = stored_tensors(plan.network, {tensor.name: tensor.dtype for tensor in network.tensors})["codes"]
    assert found == StoredTensor("codes", "codes", INT8, None, is_signed=True)
    unsigned = np.arange(256).astype(np.uint8)
    stored = found.represented(unsigned, RoundingMode.HALF_TO_EVEN)
    assert (stored.dtype, stored[0], stored[255]) == (np.int8, -128, 127)
    np.testing.assert_array_equal(found.real(stored), unsigned)


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 7e-5, 123.456])
def test_codes_survive_the_way_through_numbers(scale):
    tensor = StoredTensor("y", "y", INT8, float(np.float32(scale)))
    codes = np.arange(-128, 128).astype(np.int8)
    np.testing.assert_array_equal(tensor.represented(tensor.real(codes), RoundingMode.HALF_AWAY_FROM_ZERO), codes)


def test_saturation_counts_the_ends_of_the_type():
    assert StoredTensor("y", "y", INT8, 1.0).saturation(np.array([-128, -127, 127, 0], np.int8)) == 2
    half = np.array([65504, -65504, np.inf, 65472, np.nan], np.float16)
    assert StoredTensor("y", "y", HALF).saturation(half) == 3
    assert StoredTensor("y", "y", FLOAT).saturation(np.ones(3, np.float32)) is None


def test_codes_without_one_scale_stand_for_nothing():
    network = Network()
    x = network.add_input("x", FLOAT, (1, 2, 1, 1))
    scales = network.add_constant((2,), np.array([1, 2], np.float32)).get_output(0)
    layer = network.add_quantize(x, scales)
    layer.axis = 1
    network.mark_output(layer.get_output(0))
    assert list(stored_tensors(network, {"x": FLOAT})) == ["x"]
    declared = {"x": FLOAT, layer.get_output(0).name: INT8}
    assert stored_tensors(network, declared)[layer.get_output(0).name].scale is None
