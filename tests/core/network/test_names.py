"""Tensors and layers are found by the names that they are given, however these are given."""

import numpy as np
import pytest

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder
from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network


def network_of_two():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 4))
    first = network.add_activation(x, ActivationType.RELU)
    second = network.add_activation(first.get_output(0), ActivationType.TANH)
    network.mark_output(second.get_output(0))
    return network, first, second


@pytest.mark.parametrize("rename", [Network.rename_tensor, lambda network, tensor, name: setattr(tensor, "name", name)])
def test_a_renamed_tensor_is_found_by_its_new_name_only(rename):
    network, first, _ = network_of_two()
    tensor, revision = first.get_output(0), network.revision
    old = tensor.name
    rename(network, tensor, "inner")
    assert network.tensor("inner") is tensor
    assert network.find_tensor(old) is None
    assert network.revision > revision
    with pytest.raises(UnknownNameError, match="inner"):
        network.tensor(old)
    with pytest.raises(NetworkError, match="Tensor names must be unique"):
        network.add_input("inner", DataType.FLOAT, (1,))
    network.add_input(old, DataType.FLOAT, (1,))
    assert {one.name for one in copy_network(network).tensors} == {one.name for one in network.tensors}


def test_the_name_of_another_tensor_is_refused():
    network, first, _ = network_of_two()
    tensor = first.get_output(0)
    old = tensor.name
    with pytest.raises(NetworkError, match="Tensor names must be unique"):
        tensor.name = "x"
    assert tensor.name == old
    assert network.tensor(old) is tensor
    tensor.name = old


def test_ranges_of_a_renamed_tensor_are_used_without_a_warning():
    network, first, second = network_of_two()
    first.get_output(0).name, second.get_output(0).name = "inner", "y"
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.calibration_cache = b"TRT-8503-EntropyCalibration2\nx: 3c010a14\ninner: 3c010a14\ny: 3c010a14\n"
    plan = Builder().build_plan(network, config)
    assert not any("does not have" in warning for warning in plan.warnings)


def test_a_layer_s_name_that_another_has_gets_a_number():
    network, first, second = network_of_two()
    first.name = "same"
    second.name = "same"
    assert [layer.name for layer in network.layers] == ["same", "same_1"]
    network.rename_layer(first, "same_1")
    assert (first.name, network.layer("same_1")) == ("same_1_1", second)
    assert np.unique([layer.name for layer in network.layers]).size == 2
