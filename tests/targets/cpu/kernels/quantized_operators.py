"""Networks of one quantized operator, for kernels that are held against its method's definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.targets.cpu.group_runner import Guarded, chosen_kernel, run_group

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantized_operator import UNLIMITED, QuantizedOperator
from dryfit.network.network import Network

Array = np.ndarray[Any, Any]

WINDOW = {"stride_nd": (1, 1), "dilation_nd": (1, 1), "pre_padding": (0, 0), "post_padding": (0, 0)}
"""Parameters of a window that slides by one."""


def weighted_operator(
    computes: str,
    method: str,
    shape: Sequence[int],
    weights: Array,
    bias: Array | None,
    fields: Mapping[str, Any],
    *,
    dtype: str = "int8",
    zero_point: int = 3,
    scales: Array | float = 0.005,
    output_scale: float = 0.05,
    output_zero_point: int = -5,
    weights_zero_point: int = 0,
    limits: tuple[float, float] = UNLIMITED,
) -> Network:
    """A network of a weighted operator on `x`, of scale 0.02; in UINT8 all codes and zero points are 128 higher."""
    network, code = Network(), DataType.from_numpy(np.dtype(dtype))
    offset = 128 if dtype == "uint8" else 0
    if dtype == "uint8":
        weights = (weights.view(np.uint8) ^ np.uint8(128)).reshape(weights.shape)
    x = network.add_input("x", code, shape)
    constants = [weights, *([] if bias is None else [bias])]
    inputs = [x, *(network.add_constant(one.shape, one).outputs[0] for one in constants)]
    sw = np.asarray(scales, np.float32)
    has_bias = [None] if bias is not None else []
    zw = np.full(sw.shape, weights_zero_point + offset, np.int32)
    layer = QuantizedOperator(
        computes=computes,
        method=method,
        fields=dict(fields),
        scales=(np.array(0.02, np.float32), sw, *has_bias),
        zero_points=(np.array(zero_point + offset, np.int32), zw, *has_bias),
        output_scale=np.array(output_scale, np.float32),
        output_zero_point=np.array(output_zero_point + offset, np.int32),
        to_type=code,
        limits=limits,
    )
    network.mark_output(network.add_layer(layer, inputs).outputs[0])
    return network


def operator_of_codes(
    computes: str,
    method: str,
    shapes: Sequence[Sequence[int]],
    fields: Mapping[str, Any],
    *,
    dtype: str = "int8",
    grids: Sequence[tuple[float, int]] = ((0.02, 3), (0.03, -7)),
    output: tuple[float, int] | None = (0.05, -5),
) -> Network:
    """A network of an operator whose operands are all inputs: `x0`, `x1`, ...; without an output grid it is real."""
    network, code = Network(), DataType.from_numpy(np.dtype(dtype))
    offset = 128 if dtype == "uint8" else 0
    inputs = [network.add_input(f"x{index}", code, shape) for index, shape in enumerate(shapes)]
    used = list(grids)[: len(shapes)]
    layer = QuantizedOperator(
        computes=computes,
        method=method,
        fields=dict(fields),
        scales=tuple(np.array(scale, np.float32) for scale, _ in used),
        zero_points=tuple(np.array(zero_point + offset, np.int32) for _, zero_point in used),
        output_scale=None if output is None else np.array(output[0], np.float32),
        output_zero_point=None if output is None else np.array(output[1] + offset, np.int32),
        to_type=DataType.FLOAT if output is None else code,
    )
    network.mark_output(network.add_layer(layer, inputs).outputs[0])
    return network


def codes_for(network: Network, seed: int = 0, layout: str = "channels_last") -> dict[str, Array]:
    """Random codes for all inputs of a network."""
    generator, feeds = np.random.default_rng(seed), {}
    for tensor in network.inputs:
        array = Guarded.new(tensor.shape, tensor.dtype.numpy, layout).array
        array[...] = generator.integers(0, 256, tensor.shape).astype(np.uint8).view(array.dtype)
        feeds[tensor.name] = array
    return feeds


def assert_like_method(
    network: Network, kernel: str, feeds: Mapping[str, Array] | None = None, layout: str = "channels_last"
) -> None:
    """The kernel of this name is chosen, and gives what the method's definition gives, bit for bit."""
    layer, feeds = network.layers[-1], codes_for(network, layout=layout) if feeds is None else feeds
    assert isinstance(layer, QuantizedOperator)
    assert chosen_kernel(network, [layer]).name == kernel
    inputs = [None if one is None else feeds.get(one.name, one.spec.value) for one in layer.inputs]
    expected = layer.operator_method().evaluate(layer, inputs)[0]
    found = run_group(network, [layer], feeds, layout=layout)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
