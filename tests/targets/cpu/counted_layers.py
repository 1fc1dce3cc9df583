"""The layers whose instructions are counted: one for each kernel that networks spend their time in, FP32 and INT8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from tests.targets.cpu.group_runner import specs_of
from tests.targets.cpu.kernels.quantized_groups import QuantizedChain

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Convolution, FullyConnected
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, Schedule
from dryfit_cpu.kernels import KERNELS
from dryfit_cpu.kernels.operands import aligned_empty
from dryfit_cpu.schedule import create_schedule


@attrs.frozen
class CountedLayer:
    """A group of layers, the kernel that runs it, and how many multiply-accumulates (or values, pooled) it has."""

    name: str
    kernel: str
    network: Network
    layers: Sequence[Layer]
    operations: int


def convolution(name: str, kernel: str, C: int, K: int, extent: int, k: int, groups: int = 1) -> CountedLayer:
    """A square convolution that keeps the size of its image."""
    network, weights = Network(name), np.ones((K, C // groups, k, k), np.float32)
    layer = Convolution(
        num_output_maps=K, kernel_size_nd=(k, k), kernel=weights, bias=np.zeros(K, np.float32),
        pre_padding=(k // 2, k // 2), post_padding=(k // 2, k // 2), num_groups=groups,
    )  # fmt: skip
    network.add_layer(layer, [network.add_input("x", DataType.FLOAT, (1, C, extent, extent))])
    return CountedLayer(name, kernel, network, network.layers, extent * extent * weights.size)


def integer_convolution(name: str, kernel: str, C: int, K: int, extent: int, k: int, groups: int = 1) -> CountedLayer:
    """The same between INT8 images."""
    chain, weights = QuantizedChain((1, C, extent, extent)), np.ones((K, C // groups, k, k), np.int8)
    sides = {"pre_padding": (k // 2, k // 2), "post_padding": (k // 2, k // 2)}
    chain.convolve(weights, np.full(K, 0.01, np.float32), np.zeros(K, np.int32), num_groups=groups, **sides)
    chain.quantize(0.05)
    return CountedLayer(name, kernel, chain.network, chain.layers, extent * extent * weights.size)


def fully_connected(name: str, images: int, C: int, K: int) -> CountedLayer:
    """A product of images of one pixel with weights."""
    network, weights = Network(name), np.ones((K, C), np.float32)
    layer = FullyConnected(num_output_channels=K, kernel=weights, bias=np.zeros(K, np.float32))
    network.add_layer(layer, [network.add_input("x", DataType.FLOAT, (images, C, 1, 1))])
    return CountedLayer(name, "cpu.fully_connected", network, network.layers, images * weights.size)


def integer_fully_connected(name: str, images: int, C: int, K: int) -> CountedLayer:
    """The same between INT8 images."""
    chain, weights = QuantizedChain((images, C, 1, 1)), np.ones((K, C), np.int8)
    chain.multiply(FullyConnected(num_output_channels=K), weights, Dequantize(axis=0), np.full(K, 0.01, np.float32))
    chain.quantize(0.05)
    return CountedLayer(name, "cpu.integer_fully_connected", chain.network, chain.layers, images * weights.size)


def pooling(name: str, C: int, extent: int) -> CountedLayer:
    """A maximum over 3x3 in steps of 2."""
    network = Network(name)
    layer = network.add_pooling_nd(
        network.add_input("x", DataType.FLOAT, (1, C, extent, extent)), PoolingType.MAX, (3, 3)
    )
    layer.stride_nd, layer.padding_nd = (2, 2), (1, 1)
    return CountedLayer(name, "cpu.pooling", network, network.layers, C * (extent // 2) ** 2 * 9)


def counted_layers() -> Iterator[CountedLayer]:
    """The kernels that networks spend their time in."""
    yield convolution("3x3, 64 to 64, 28x28", "cpu.convolution", 64, 64, 28, 3)
    yield convolution("1x1, 256 to 64, 28x28", "cpu.convolution", 256, 64, 28, 1)
    yield convolution("3x3 by winograd, 64 to 64, 28x28", "cpu.winograd_4", 64, 64, 28, 3)
    yield convolution("depthwise 3x3, 192, 28x28", "cpu.depthwise_convolution", 192, 192, 28, 3, groups=192)
    yield convolution("3x3 in groups of four, 64, 28x28", "cpu.grouped_convolution", 64, 64, 28, 3, groups=16)
    yield fully_connected("fully connected, 512 to 1000", 1, 512, 1000)
    yield fully_connected("fully connected, batch 32, 512 to 1000", 32, 512, 1000)
    yield pooling("maximum 3x3 stride 2, 64, 56x56", 64, 56)
    yield integer_convolution("INT8 3x3, 64 to 64, 28x28", "cpu.integer_convolution", 64, 64, 28, 3)
    yield integer_convolution("INT8 3x3 by winograd, 64 to 64, 28x28", "cpu.integer_winograd", 64, 64, 28, 3)
    yield integer_convolution("INT8 1x1, 256 to 64, 28x28", "cpu.integer_convolution", 256, 64, 28, 1)
    yield integer_convolution(
        "INT8 depthwise 3x3, 192, 28x28", "cpu.integer_depthwise_convolution", 192, 192, 28, 3, groups=192
    )
    yield integer_fully_connected("INT8 fully connected, 512 to 1000", 1, 512, 1000)
    yield integer_fully_connected("INT8 fully connected, batch 32, 512 to 1000", 32, 512, 1000)


def bound(layer: CountedLayer) -> Schedule:
    """A schedule that runs a layer with one thread, on channels-last memory."""
    group, specs = LayerGroup(layer.layers), specs_of(layer.network)
    kernel = next(kernel for kernel in KERNELS if kernel.name == layer.kernel)
    arrays = {}
    for tensor in (*layer.network.inputs, *group.outputs):
        N, C, H, W = specs[tensor.name].shape
        arrays[tensor.name] = aligned_empty((N, H, W, C), specs[tensor.name].dtype.numpy).transpose(0, 3, 1, 2)
        arrays[tensor.name][...] = 1
    workspace = aligned_empty((kernel.workspace_bytes(group, specs, 1),), np.uint8)
    return create_schedule([kernel.bind(Binding(group, specs, arrays, kernel.pack(group), workspace, 1))], 1)
