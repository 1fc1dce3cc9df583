"""Single FP32 layers: dryfit's host kernels against ONNX Runtime, interleaved in one process.

Usage: python benchmarks/kernels.py [--rounds 20] [--threads 1] [--only depthwise]

A line per layer: both sides' least time and the median of the ratios of neighbouring bests of three (above 1 dryfit is
faster). Inputs and outputs lie as the kernels ask for, channels last where they do; ONNX Runtime's are as always.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix_multiply import MatrixOperation
from dryfit.network.layers.pooling import PoolingType
from dryfit.network.layers.resize import InterpolationMode, ResizeCoordinateTransformation
from dryfit.network.network import Network
from kernels_runner import KernelRunner
from resnet50_fp32 import best_of_three, cpu_name

Array = np.ndarray[Any, Any]
Case = tuple[str, Callable[[Network], None], Any]

_GENERATOR = np.random.default_rng(0)


def weights(*shape: int) -> Array:
    """Random FP32 weights."""
    return (_GENERATOR.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def model(operator: str, inputs: dict[str, tuple[int, ...]], constants: dict[str, Array], **attributes: Any) -> Any:
    """A model of one node."""
    graph = helper.make_graph(
        [helper.make_node(operator, [*inputs, *constants], ["y"], **attributes)],
        operator,
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolution(name: str, C: int, K: int, extent: int, k: int, stride: int = 1, groups: int = 1) -> Case:
    """A square convolution."""
    kernel, bias, shape, pads = weights(K, C // groups, k, k), weights(K), (1, C, extent, extent), (k // 2, k // 2)

    def build(network: Network) -> None:
        layer = Convolution(
            num_output_maps=K,
            kernel_size_nd=(k, k),
            kernel=kernel,
            bias=bias,
            stride_nd=(stride, stride),
            pre_padding=pads,
            post_padding=pads,
            num_groups=groups,
        )
        network.add_layer(layer, [network.add_input("x", DataType.FLOAT, shape)])

    strides = [stride, stride]
    return (
        name,
        build,
        model("Conv", {"x": shape}, {"w": kernel, "b": bias}, pads=pads * 2, strides=strides, group=groups),
    )


def cases() -> list[Case]:
    """The layers that are measured."""
    image, kernel = (1, 64, 112, 112), weights(64, 32, 4, 4)

    def x(network: Network, shape: tuple[int, ...] = image) -> Any:
        return network.add_input("x", DataType.FLOAT, shape)

    def pool(kind: PoolingType) -> Callable[[Network], None]:
        def build(network: Network) -> None:
            layer = network.add_pooling_nd(x(network), kind, (3, 3))
            layer.stride_nd, layer.padding_nd = (2, 2), (1, 1)

        return build

    def deconvolution(network: Network) -> None:
        layer = Deconvolution(
            num_output_maps=32,
            kernel_size_nd=(4, 4),
            kernel=kernel,
            stride_nd=(2, 2),
            pre_padding=(1, 1),
            post_padding=(1, 1),
        )
        network.add_layer(layer, [x(network, (1, 64, 56, 56))])

    def resize(network: Network) -> None:
        layer = network.add_resize(x(network))
        layer.scales, layer.resize_mode = (1.0, 1.0, 2.0, 2.0), InterpolationMode.LINEAR
        layer.coordinate_transformation = ResizeCoordinateTransformation.HALF_PIXEL

    def softmax(network: Network) -> None:
        network.add_softmax(x(network, (1, 12, 128, 128))).axes = 8

    def products(network: Network) -> None:
        y = network.add_input("z", DataType.FLOAT, (12, 64, 128))
        network.add_matrix_multiply(x(network, (12, 128, 64)), MatrixOperation.NONE, y, MatrixOperation.NONE)

    def add(network: Network) -> None:
        network.add_elementwise(x(network), network.add_input("z", DataType.FLOAT, image), ElementWiseOperation.SUM)

    def sigmoid(network: Network) -> None:
        network.add_activation(x(network), ActivationType.SIGMOID)

    scales = {"roi": np.empty(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    pooling: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    return [
        convolution("7x7 stride 2, 3 channels", 3, 64, 224, 7, 2),
        convolution("3x3, 64 channels", 64, 64, 56, 3),
        convolution("3x3, 512 channels", 512, 512, 7, 3),
        convolution("1x1, 256 to 64", 256, 64, 56, 1),
        convolution("1x1 stride 2", 256, 512, 56, 1, 2),
        convolution("3x3 in 32 groups", 128, 128, 56, 3, 1, 32),
        convolution("3x3 on 5x5", 256, 256, 5, 3),
        convolution("depthwise 3x3", 128, 128, 56, 3, 1, 128),
        convolution("depthwise 3x3 stride 2", 128, 128, 56, 3, 2, 128),
        convolution("depthwise 5x5", 240, 240, 28, 5, 1, 240),
        ("deconvolution 4x4 stride 2", deconvolution, model(
            "ConvTranspose", {"x": (1, 64, 56, 56)}, {"w": kernel}, strides=[2, 2], pads=[1, 1, 1, 1])),
        ("maximum pooling 3x3", pool(PoolingType.MAX), model("MaxPool", {"x": image}, {}, **pooling)),
        ("average pooling 3x3", pool(PoolingType.AVERAGE), model("AveragePool", {"x": image}, {}, **pooling)),
        ("resize x2, linear", resize, model("Resize", {"x": image}, scales, mode="linear")),
        ("softmax of 128", softmax, model("Softmax", {"x": (1, 12, 128, 128)}, {}, axis=3)),
        ("12 products 128x64x128", products, model("MatMul", {"x": (12, 128, 64), "z": (12, 64, 128)}, {})),
        ("addition", add, model("Add", {"x": image, "z": image}, {})),
        ("sigmoid", sigmoid, model("Sigmoid", {"x": image}, {})),
    ]  # fmt: skip


def main() -> None:
    """Check each layer against ONNX Runtime, then time both in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="layers whose name contains this")
    arguments = parser.parse_args()
    print(f"{cpu_name()}, onnxruntime {onnxruntime.__version__}, {arguments.threads} threads")
    for name, build, onnx_model in cases():
        if arguments.only in name:
            compare(name, build, onnx_model, arguments.threads, arguments.rounds)


def compare(name: str, build: Callable[[Network], None], onnx_model: Any, threads: int, rounds: int) -> None:
    """Print one line."""
    network = Network()
    build(network)
    network.mark_output(network.layers[-1].get_output(0))
    runner = KernelRunner(network, threads, channels_last=not name.startswith("softmax"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(onnx_model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {t.name: _GENERATOR.standard_normal(t.shape).astype(np.float32) for t in network.inputs}
    runner.load(feeds)
    runner.schedule.run()
    expected = session.run(None, feeds)[0]
    np.testing.assert_allclose(runner.arrays[network.outputs[0].name], expected, rtol=1e-3, atol=1e-4)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(best_of_three(runner.schedule.run))
        theirs.append(best_of_three(lambda: session.run(None, feeds)))
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    print(f"{name:28} {1e6 * min(ours):8.0f} us {1e6 * min(theirs):8.0f} us  {ratio:5.2f}")


if __name__ == "__main__":
    main()
