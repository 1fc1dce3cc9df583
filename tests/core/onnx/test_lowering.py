"""Which layers an operator becomes: it decides where they can run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.core.onnx.models import assert_agrees, model, numbers

from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx

X = numbers(2, 3, 4, 4)


def imported(nodes: str, weights: Mapping[str, np.ndarray] | None = None, outputs: str = "float[?,?,?,?] y") -> Network:
    parsed = model(nodes, inputs="float[2,3,4,4] x", outputs=outputs, weights=weights)
    assert_agrees(parsed, {"x": X})
    return network_from_onnx(parsed)


def kinds(network: Network) -> list[str]:
    return [layer.kind for layer in network]


def test_batch_normalization_is_one_scale_a_channel() -> None:
    weights = {name: np.abs(numbers(3, seed=index)) for index, name in enumerate("gbmv", 1)}
    network = imported("y = BatchNormalization(x, g, b, m, v)", weights)
    assert kinds(network) == ["scale"]
    assert network.layers[0].mode is ScaleMode.CHANNEL
    assert network.layers[0].channel_axis == 1


def test_gemm_after_flatten_is_a_fully_connected_layer_of_what_was_flattened() -> None:
    network = imported("f = Flatten(x) y = Gemm(f, w, b)", {"w": numbers(48, 5), "b": numbers(5)}, "float[2,5] y")
    assert kinds(network) == ["fully_connected", "shuffle"]
    layer = network.layers[0]
    assert isinstance(layer, FullyConnected)
    assert layer.inputs == [network.inputs[0]]
    assert (layer.num_output_channels, layer.kernel.shape, layer.name) == (5, (5, 48), "node_of_y")


def test_gemm_with_factors_is_fully_connected_with_scaled_weights() -> None:
    weights = {"w": numbers(5, 48), "b": numbers(5)}
    network = imported("f = Flatten(x) y = Gemm<alpha=0.5, beta=2.0, transB=1>(f, w, b)", weights, "float[2,5] y")
    assert kinds(network) == ["fully_connected", "shuffle"]
    np.testing.assert_array_equal(network.layers[0].kernel, weights["w"] * np.float32(0.5))


def test_gemm_of_two_computed_matrices_is_a_matrix_product() -> None:
    network = imported("f = Flatten(x) y = Gemm<transB=1>(f, f)", None, "float[2,2] y")
    assert kinds(network) == ["shuffle", "matrix_multiply"]


@pytest.mark.parametrize(("operator", "kind"), [("GlobalAveragePool", "AVG"), ("GlobalMaxPool", "MAX")])
def test_global_pooling_is_a_reduction(operator: str, kind: str) -> None:
    network = imported(f"y = {operator}(x)")
    assert kinds(network) == ["reduce"]
    assert (network.layers[0].op.name, network.layers[0].axes, network.layers[0].keep_dims) == (kind, 0b1100, True)


def test_split_is_slices() -> None:
    network = imported("y, z = Split<axis=1>(x, s)", {"s": np.array([1, 2])}, "float[2,1,4,4] y, float[2,2,4,4] z")
    assert kinds(network) == ["slice", "slice"]
    assert [layer.start for layer in network] == [(0,), (1,)]
    assert [layer.axes for layer in network] == [(1,), (1,)]


def test_clip_with_known_bounds_is_an_activation() -> None:
    bounds = {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    network = imported("y = Clip(x, low, high)", bounds)
    layer = network.layers[0]
    assert (kinds(network), layer.activation_type) == (["activation"], ActivationType.CLIP)
    assert (layer.alpha, layer.beta) == (0.0, 6.0)


def test_a_constant_of_lower_rank_is_reshaped_when_it_is_imported() -> None:
    network = imported("y = Add(x, c)", {"c": numbers(3, 1, 1)})
    assert kinds(network) == ["constant", "elementwise"]
    assert network.layers[0].shape == (1, 3, 1, 1)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Transpose<perm=[0,2,3,1]>(x)", ["shuffle"]),
        ("y = Flatten(x)", ["shuffle"]),
        ("y = Dropout(x)", ["identity"]),
        ("y = LeakyRelu<alpha=0.1>(x)", ["activation"]),
        ("y = Softmax<axis=1>(x)", ["softmax"]),
        ("y = LRN<size=3>(x)", ["lrn"]),
        ("y = Concat<axis=1>(x, x)", ["concatenation"]),
        ("y = Sum(x, x, x)", ["elementwise", "elementwise"]),
        ("y = Pow(x, x)", ["elementwise"]),
        ("y = AveragePool<kernel_shape=[2,2], ceil_mode=1>(x)", ["pooling"]),
        ("y = ReduceL2<axes=[1]>(x)", ["elementwise", "reduce", "unary"]),
        ("y, i = MaxPool<kernel_shape=[2,2]>(x)", ["pooling"]),
    ],
)
def test_an_operator_becomes_these_layers(nodes: str, expected: list[str]) -> None:
    if "Pow" in nodes:
        network = network_from_onnx(model(nodes, inputs="float[2,3,4,4] x", outputs="float[?,?,?,?] y"))
    else:
        network = imported(nodes, outputs="float[?,?] y" if "Flatten" in nodes else "float[?,?,?,?] y")
    assert kinds(network) == expected


def test_pad_is_a_slice_that_fills() -> None:
    network = imported("y = Pad(x, p)", {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])})
    assert kinds(network) == ["slice"]
    layer = network.layers[0]
    assert (layer.start, layer.shape, layer.axes, layer.mode.name) == ((-1, -1), (6, 6), (2, 3), "FILL")


def test_weights_of_convolutions_are_parameters_and_bias_too() -> None:
    network = imported(
        "y = Conv<group=1, pads=[1,1,1,1], strides=[2,2]>(x, w, b)", {"w": numbers(5, 3, 3, 3), "b": numbers(5)}
    )
    layer = network.layers[0]
    assert kinds(network) == ["convolution"]
    assert (layer.kernel.shape, layer.bias.shape, layer.stride_nd) == ((5, 3, 3, 3), (5,), (2, 2))


def test_quantized_weights_stay_quantized() -> None:
    weights = {
        "q": np.arange(-40, 41, dtype=np.int8).reshape(3, 3, 3, 3),
        "s": np.array([0.1, 0.2, 0.3], np.float32),
        "z": np.zeros(3, np.int8),
        "bias": np.array([100, -100, 3], np.int32),
        "bs": np.array([0.001, 0.002, 0.003], np.float32),
    }
    network = imported(
        "w = DequantizeLinear<axis=0>(q, s, z) b = DequantizeLinear<axis=0>(bias, bs) y = Conv(x, w, b)", weights
    )
    assert kinds(network) == ["constant", "constant", "dequantize", "convolution"]
    convolution, dequantize = network.layers[3], network.layers[2]
    assert convolution.kernel is None
    assert convolution.inputs[1] is dequantize.outputs[0]
    assert (dequantize.axis, len(dequantize.inputs)) == (0, 2)
    np.testing.assert_allclose(convolution.bias, [0.1, -0.2, 0.009], rtol=1e-6)


def test_an_asymmetric_zero_point_is_kept() -> None:
    weights = {"s": np.array(0.05, np.float32), "z": np.array(100, np.uint8)}
    network = imported("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)", weights)
    quantize = next(layer for layer in network if layer.kind == "quantize")
    assert len(quantize.inputs) == 3
    assert quantize.is_host_only


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_with_quantized_weights_is_fully_connected_and_keeps_quantize_beside_it(transposed: int) -> None:
    codes = np.random.default_rng(0).integers(-127, 128, (5, 48) if transposed else (48, 5)).astype(np.int8)
    weights = {"q": codes, "s": np.linspace(0.001, 0.002, 5, dtype=np.float32), "z": np.zeros(5, np.int8)}
    weights |= {"t": np.array(0.02, np.float32), "u": np.array(0, np.int8), "b": numbers(5)}
    network = imported(
        f"""f = Flatten(x) i = QuantizeLinear(f, t, u) j = DequantizeLinear(i, t, u)
        w = DequantizeLinear<axis={1 - transposed}>(q, s, z) y = Gemm<transB={transposed}>(j, w, b)""",
        weights,
        "float[2,5] y",
    )
    connected = next(layer for layer in network if layer.kind == "fully_connected")
    assert [tensor.producer.kind for tensor in connected.inputs] == ["dequantize", "dequantize"]
    data, kernel = (tensor.producer for tensor in connected.inputs)
    assert data.inputs[0].producer.inputs[0] is network.inputs[0]
    assert (kernel.axis, kernel.outputs[0].shape) == (0, (5, 48))
    assert sorted(kinds(network)).count("quantize") == 1
    assert data.onnx_nodes == ("node_of_j",)
