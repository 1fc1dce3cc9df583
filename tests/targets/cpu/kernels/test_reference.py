"""The kernel that evaluates references."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import reference_kernel, run_group, specs_of

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding
from dryfit_cpu.kernels import KERNELS


def test_it_serves_every_kind_and_type_after_all_others():
    kernel = reference_kernel()
    assert "a kind of tomorrow" in kernel.kinds
    assert kernel.data_types == frozenset(DataType)
    assert kernel.priority < min(other.priority for other in KERNELS if other.name != kernel.name)


def test_kernels_have_different_names():
    names = [kernel.name for kernel in KERNELS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("cpu.") for name in names)


def test_a_group_is_rounded_to_fp16_once():
    network = Network()
    x = network.add_input("x", DataType.HALF, (1,))
    third = network.add_scale(x, ScaleMode.UNIFORM, scale=np.array([1 / 3], np.float32))
    thrice = network.add_scale(third.get_output(0), ScaleMode.UNIFORM, scale=np.array([3.0], np.float32))
    values = np.array([1.001], np.float16)
    grouped = run_group(network, [third, thrice], {"x": values}, kernel=reference_kernel(), layout="linear")
    assert grouped[0] == np.float16(np.float32(values[0]) * np.float32(1 / 3) * np.float32(3))


def test_bfloat16_is_computed():
    network = Network()
    x = network.add_input("x", DataType.BF16, (5,))
    layer = network.add_activation(x, ActivationType.RELU)
    values = np.array([-1, -0.5, 0, 0.5, 1.5]).astype(DataType.BF16.numpy)
    result = run_group(network, [layer], {"x": values}, kernel=reference_kernel(), layout="linear")
    assert result.tolist() == [0, 0, 0, 0.5, 1.5]


def test_integers_stay_integers():
    network = Network()
    x = network.add_input("x", DataType.INT64, (3,))
    layer = network.add_elementwise(x, x, ElementWiseOperation.PROD)
    values = np.array([2**40, -3, 5])
    result = run_group(network, [layer], {"x": values}, kernel=reference_kernel(), layout="linear")
    assert result.tolist() == [2**80 % 2**64, 9, 25]


@pytest.mark.parametrize("name", ["cpu.pointwise", "cpu.reference"])
def test_a_missing_array_is_named(name):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (3,))
    layer = network.add_activation(x, ActivationType.RELU)
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    arrays = {layer.get_output(0).name: np.empty(3, np.float32)}
    binding = Binding(LayerGroup([layer]), specs_of(network), arrays, {}, np.empty(0, np.uint8))
    with pytest.raises(ExecutionError, match="tensor 'x'"):
        kernel.bind(binding).run()


@pytest.mark.parametrize("wrong", [np.empty(4, np.float32), np.empty(3, np.float16)])
def test_an_array_of_another_shape_or_type_is_refused_before_an_address_is_taken(wrong):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (3,))
    layer = network.add_activation(x, ActivationType.RELU)
    kernel = next(kernel for kernel in KERNELS if kernel.name == "cpu.pointwise")
    arrays = {"x": wrong, layer.get_output(0).name: np.empty(3, np.float32)}
    binding = Binding(LayerGroup([layer]), specs_of(network), arrays, {}, np.empty(0, np.uint8))
    with pytest.raises(ExecutionError, match="does not match the tensor") as caught:
        kernel.bind(binding)
    assert caught.value.allowed == "float32 (3,)"
