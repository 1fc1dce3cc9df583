"""The target passes the tests that dryfit's own targets are held to, with layers at each of its limits."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from dryfit_ethos_u import TARGET
from tflite_writer import Operator, Tensor, write

import dryfit
from dryfit.answers.asked import import_model
from dryfit.network.layer import Layer
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.plugins.contributions import ImportOptions
from dryfit.testing.target_conformance import TargetConformance

SAME, VALID = 0, 1


def layer_of(operator: Operator) -> Layer:
    """The main layer of a TFLite operator."""
    network = import_model(write([operator]), ImportOptions(quantize_method="")).network
    return network.layer(f"{operator.name}_0")


def tensor(*shape: int, kind: str = "int8") -> Tensor:
    return Tensor(shape, kind, 0.05, 0)


def convolution(stride: int = 1, weights: np.ndarray | None = None, bias: int = 0) -> Layer:
    """A convolution over padding, of two channels."""
    codes = np.ones((2, 3, 3, 2)) if weights is None else weights
    kernel = Tensor(codes.shape, "int8", 0.01, 0, 0, codes)
    units = Tensor((2,), "int64", 0.0005, values=np.full(2, bias))
    x, y = tensor(1, 9, 9, 2, kind="int16"), tensor(1, -(-9 // stride), -(-9 // stride), 2, kind="int16")
    options = {"padding": SAME, "strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1}
    return layer_of(Operator("CONV_2D", [x, kernel, units], [y], options))


def wide_product(total: int) -> Layer:
    """A fully connected layer whose weights have this sum for each result."""
    count = -(-total // 127)
    codes = np.full((1, count), 127)
    codes[0, -1] = total - 127 * (count - 1)
    inputs = [tensor(1, count), Tensor((1, count), "int8", 0.01, values=codes), None]
    return layer_of(Operator("FULLY_CONNECTED", inputs, [tensor(1, 1)]))


def pooling(name: str, height: int, width: int, padding: int, extents: tuple[int, int]) -> Layer:
    result = [
        extent if padding == SAME else extent - size + 1 for extent, size in zip(extents, (height, width), strict=True)
    ]
    options = {"padding": padding, "strideH": 1, "strideW": 1, "filterHeight": height, "filterWidth": width}
    return layer_of(Operator(name, [tensor(1, *extents, 1)], [tensor(1, *result, 1)], options))


def mean(shape: tuple[int, ...]) -> Layer:
    axes = Tensor((2,), "int32", None, values=np.array([1, 2]))
    result = tensor(shape[0], 1, 1, shape[3])
    return layer_of(Operator("MEAN", [tensor(*shape), axes], [result], {"keepDims": True}))


def softmax(rows: int) -> Layer:
    return layer_of(Operator("SOFTMAX", [tensor(rows, 2)], [Tensor((rows, 2), "int8", 1 / 256, -128)], {"beta": 1.0}))


def largest(channels: int) -> Layer:
    axis = Tensor((), "int32", None, values=np.array(3))
    inputs = [tensor(1, 2, 2, channels), axis]
    return layer_of(Operator("ARG_MAX", inputs, [Tensor((1, 2, 2), "int32", None)], {"outputType": 2}))


def by_method(method: str) -> Layer:
    """A quantized operator of a quantize method."""
    network = dryfit.Network("operator")
    x = network.add_input("x", dryfit.DataType.INT8, (1, 2, 4, 4))
    scale, zero = np.array(0.5, np.float32), np.array(0, np.int32)
    made = QuantizedOperator(
        computes="pooling",
        method=method,
        fields={"pooling_type": "MAX", "window_size_nd": (2, 2)},
        scales=(scale,),
        zero_points=(zero,),
        output_scale=scale,
        output_zero_point=zero,
        name="operator",
    )
    network.mark_output(network.add_layer(made, [x]).outputs[0])
    return network.layer("operator")


HAS_TFLITE = all(find_spec(name) is not None for name in ("ai_edge_litert", "flatbuffers", "tflite"))
AT_LIMITS = {
    "ethos_u.window.stride": lambda stride: convolution(stride=stride),
    "ethos_u.weights.sum": wide_product,
    "ethos_u.weights.sum_u85": wide_product,
    "ethos_u.pooling.average_window": lambda size: pooling("AVERAGE_POOL_2D", size, size, SAME, (12, 12)),
    "ethos_u.pooling.height": lambda size: pooling("MAX_POOL_2D", size, 1, VALID, (300, 2)),
    "ethos_u.pooling.elements": lambda size: pooling("MAX_POOL_2D", 1, size, VALID, (1, size)),
    "ethos_u.mean.axis": lambda extent: mean((1, extent, 1, 2)),
    "ethos_u.mean.batch": lambda batch: mean((batch, 2, 2, 2)),
    "ethos_u.softmax.positions": softmax,
    "ethos_u.maximum.channels": largest,
    "ethos_u.arithmetic": by_method,
}


class TestEthosU(TargetConformance):
    target = TARGET
    boundary_layers = AT_LIMITS if HAS_TFLITE else {}
