import numpy as np
import pytest

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.plugins import registry


def network_with(dtype=DataType.FLOAT, shape=(1, 8, 16, 16)):
    network = Network("net")
    return network, network.add_input("x", dtype, shape)


def verdict(layer):
    return BuilderConfig().can_run_on(layer, "GPU")


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT32, DataType.INT64])
def test_every_type_of_tensorrt_runs(dtype):
    network, x = network_with(dtype)
    assert verdict(network.add_elementwise(x, x, ElementWiseOperation.SUM)).supported


@pytest.mark.parametrize("dtype", [DataType.DOUBLE, DataType.INT16, DataType.UINT32])
def test_a_type_that_only_the_host_has_is_refused_by_tensor(dtype):
    network, x = network_with(dtype)
    [found] = verdict(network.add_elementwise(x, x, ElementWiseOperation.SUM)).violations
    assert found.rule == "gpu.types"
    assert f"'x': {dtype.text}" in found.actual
    assert "CPU" in found.remedy


def test_an_operation_that_only_onnx_has_is_refused_by_name():
    network, x = network_with(DataType.INT32)
    [found] = verdict(network.add_elementwise(x, x, ElementWiseOperation.MOD)).violations
    assert (found.rule, found.parameter, found.actual) == ("gpu.parameters", "op", "MOD")


def test_options_that_only_onnx_has_are_refused():
    network, x = network_with()
    pooling = Pooling(pooling_type=PoolingType.MAX, window_size_nd=(2, 2), dilation_nd=(2, 2))
    [found] = verdict(network.add_layer(pooling, [x])).violations
    assert found.rule == "gpu.parameters"
    assert verdict(network.add_pooling_nd(x, PoolingType.MAX, (2, 2))).supported


def test_an_asymmetric_quantization_is_refused_with_its_tensors_and_what_to_do():
    network, x = network_with()
    scale = network.add_constant((), np.float32(0.1)).get_output(0)
    layer = network.add_quantize(x, scale, DataType.UINT8)
    layer.outputs[0].name = "codes"
    zero_point = network.add_constant((), np.uint8(120)).get_output(0)
    zero_point.name = "offset"
    layer.set_input(2, zero_point)
    [found] = verdict(layer).violations
    assert found.rule == "gpu.parameters"
    assert found.actual == (
        "a quantize with values of type UINT8 (tensor 'codes'), a zero point that is not 0 (tensor 'offset')"
    )
    assert found.allowed.startswith("symmetric INT8")
    assert "zero points of 0" in found.remedy
    assert "--fallback CPU" in found.remedy


def test_dynamic_shapes_large_kernels_and_any_activation_run():
    network, x = network_with(shape=(-1, 8, -1, 64))
    assert verdict(network.add_activation(x, ActivationType.GELU_ERF)).supported
    assert verdict(network.add_convolution_nd(x, 4, (1, 63), np.zeros((4, 8, 1, 63), np.float32))).supported


def test_the_workspace_has_no_limit_of_its_own():
    config = BuilderConfig()
    assert config.get_memory_pool_limit("WORKSPACE") is None
    config.set_memory_pool_limit("WORKSPACE", 12345)
    assert config.get_memory_pool_limit("WORKSPACE") == 12345


def test_a_format_of_the_gpu_serves_the_types_it_is_listed_for():
    formats = registry.target("GPU").input_formats
    assert all(formats[dtype][0].name == "LINEAR" for dtype in formats)
    assert set(formats) == {dtype for dtype in DataType if dtype.is_device_type}
    assert "CHW32" in {one.name for one in formats[DataType.INT8]}
    assert "HWC8" not in {one.name for one in formats[DataType.INT8]}


def test_reduced_precision_is_asked_for_by_flags():
    network, x = network_with()
    layer = network.add_activation(x, ActivationType.RELU)
    config = BuilderConfig()
    asked = []
    for flag in (None, BuilderFlag.BF16, BuilderFlag.FP16):
        if flag is not None:
            config.set_flag(flag)
        asked.append(config.question(layer, registry.target("GPU")).precision)
    assert asked == [DataType.FLOAT, DataType.BF16, DataType.HALF]
