"""Each rule finds something in a minimal model that speaks against it, and nothing in the same model mended."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers

from dryfit.network.data_types import DataType
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.quantization.lint import SEVERITIES, LintFinding, all_lint_rules, lint_network
from dryfit.rule import Rule

KERNEL = numbers(4, 4, 1, 1)
CHANNEL_SCALES = np.abs(KERNEL).max(axis=(1, 2, 3)) / np.float32(127)
WEIGHTS = {
    "w": KERNEL,
    "ws": CHANNEL_SCALES,
    "gamma": np.array([0.5, 2, 1, 4], np.float32),
    "gammas": np.array([0.5, 2, 1, 4], np.float32).reshape(1, 4, 1, 1),
    "zeros": np.zeros(4, np.float32),
    "unit": np.ones(4, np.float32),
    "s": np.float32(0.5),
    "t": np.float32(0.25),
    "s4": np.full(4, 0.5, np.float32),
    "z": np.int8(0),
    "z3": np.int8(3),
    "u": np.uint8(0),
    "z4": np.zeros(4, np.int8),
    "tiny": np.float32(1e-3),
    "huge": np.float32(1),
}


def pair(x: str, y: str, scale: str = "s", zero: str = "z", axis: int = 1) -> str:
    """Q/DQ: y is x as it is after quantizing."""
    return (
        f"{y}_q = QuantizeLinear<axis={axis}>({x}, {scale}, {zero}) "
        f"{y} = DequantizeLinear<axis={axis}>({y}_q, {scale}, {zero}) "
    )


DATA = pair("x", "d")
KERNELS = pair("w", "k", "ws", "z4", 0)
CONV = DATA + KERNELS + "c = Conv(d, k) "
SUM = CONV + pair("x2", "e") + "y0 = Add(c, e) "

CASES = {
    "qdq.weighted.inputs": (DATA + "y = Conv(d, w)", CONV + "y = Relu(c)", "the weights are floating point"),
    "qdq.weighted.unquantized": (
        CONV + "y = Conv(c, w)",
        CONV + pair("c", "f") + "y = Conv(f, k)",
        "neither its data nor its weights",
    ),
    "qdq.output.nonlinear": (
        CONV + pair("c", "f") + "g = Sigmoid(f) y = Mul(f, g)",
        CONV + "g = Sigmoid(c) y = Mul(c, g)",
        "(sigmoid)",
    ),
    "qdq.output.activation": (
        CONV + pair("c", "f") + "g = Relu(f) " + pair("g", "h", "t") + "y = Conv(h, k)",
        CONV + "g = Relu(c) " + pair("g", "h", "t") + "y = Conv(h, k)",
        "it is quantized before",
    ),
    "qdq.output.sum": (
        CONV + pair("c", "f") + pair("x2", "e") + "y0 = Add(f, e) " + pair("y0", "y"),
        SUM + pair("y0", "y"),
        "before the sum",
    ),
    "qdq.output.normalization": (
        CONV + pair("c", "f") + "y = BatchNormalization(f, gamma, zeros, zeros, unit)",
        CONV + "y = BatchNormalization(c, gamma, zeros, zeros, unit)",
        "it is quantized before",
    ),
    "qdq.output.unread": (CONV + pair("c", "y"), CONV + "y = Identity(c)", "immediately dequantized"),
    "qdq.residual.unquantized": (
        CONV + "y0 = Add(c, x2) r = Relu(y0) " + pair("r", "g") + "y = Conv(g, k)",
        SUM + "r = Relu(y0) " + pair("r", "g") + "y = Conv(g, k)",
        "operand 1 is in floating point, so that TensorRT may keep 'node g_q'",
    ),
    "qdq.activation.granularity": (
        pair("x", "d", "s4", "z4") + KERNELS + "y = Conv(d, k)",
        CONV + "y = Relu(c)",
        "it has 4 scales, one per index of axis 1",
    ),
    "qdq.weights.per_tensor": (
        DATA + pair("w", "k", "t") + "y = Conv(d, k)",
        CONV + "y = Relu(c)",
        "4 output channels share one scale",
    ),
    "qdq.weights.axis": (
        DATA + pair("w", "k", "ws", "z4", 1) + "y = Conv(d, k)",
        CONV + "y = Relu(c)",
        "the scales follow axis 1, and the output channels are axis 0",
    ),
    "qdq.weights.clipped": (DATA + pair("w", "k", "tiny") + "y = Conv(d, k)", CONV + "y = Relu(c)", "are clipped"),
    "qdq.weights.coarse": (
        DATA + pair("w", "k", "huge") + "y = Conv(d, k)",
        CONV + "y = Relu(c)",
        "the scale is so large that the largest weight is code",
    ),
    "qdq.scales.concatenation": (
        pair("x", "d") + pair("x2", "e", "t") + "g = Concat<axis=1>(d, e) " + pair("g", "y"),
        pair("x", "d") + pair("x2", "e") + "g = Concat<axis=1>(d, e) " + pair("g", "y"),
        "'d' 0.5 and 'e' 0.25 differ",
    ),
    "qdq.scales.chain": (
        pair("x", "d") + "g = MaxPool<kernel_shape=[2, 2]>(d) " + pair("g", "y", "t"),
        pair("x", "d") + "g = MaxPool<kernel_shape=[2, 2]>(d) " + pair("g", "y"),
        "nothing is computed between two scales: 0.5 by",
    ),
    "qdq.type.zero_point": (
        pair("x", "d", zero="z3") + KERNELS + "y = Conv(d, k)",
        CONV + "y = Relu(c)",
        "its zero point is 3",
    ),
    "qdq.type.foreign": (
        pair("x", "d", zero="u") + KERNELS + "y = Conv(d, k)",
        CONV + "y = Relu(c)",
        "it is quantized to UINT8",
    ),
    "qdq.unweighted.one_sided": (
        pair("x", "d") + "y = AveragePool<kernel_shape=[2, 2]>(d)",
        pair("x", "d") + "g = AveragePool<kernel_shape=[2, 2]>(d) " + pair("g", "y"),
        "all inputs are quantized, and the output is not",
    ),
    "qdq.normalization.folded": (
        CONV + "f = Div(c, gammas) y = BatchNormalization<epsilon=0.0>(f, gamma, zeros, zeros, unit)",
        CONV + "y = BatchNormalization<epsilon=0.0>(c, gamma, zeros, zeros, unit)",
        "is divided by what",
    ),
}
"""Rule to (a model against it, the same one mended, what is found)."""


def findings(body: str) -> list[LintFinding]:
    """What the lint finds in a model of these nodes, whose inputs are `x` and `x2` and whose output is `y`."""
    shape = "float[1,4,8,8]"
    parsed = model(body, inputs=f"{shape} x, {shape} x2", outputs="float[N,C,H,W] y", weights=WEIGHTS)
    for node in parsed.graph.node:
        node.name = f"node {node.output[0]}"
    onnx.checker.check_model(parsed)
    return lint_network(network_from_onnx(parsed))


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_finds_what_speaks_against_it_and_nothing_once_it_is_mended(rule: str) -> None:
    broken, mended, found = CASES[rule]
    hits = [one for one in findings(broken) if one.rule == rule]
    assert len(hits) == 1
    assert found in hits[0].found
    assert [one.found for one in findings(mended) if one.rule == rule] == []


def test_every_rule_is_tested() -> None:
    by_network = {"qdq.type.int4_activation", "qdq.type.fp4_activation"}
    assert set(all_lint_rules()) == {*CASES, *by_network}


@pytest.mark.parametrize("rule", all_lint_rules().values(), ids=lambda rule: rule.id)
def test_every_rule_says_what_to_do_and_who_says_so(rule: Rule) -> None:
    assert rule.severity in SEVERITIES
    assert rule.remedy
    assert "TensorRT 10 developer guide" in rule.source
    assert not rule.text.endswith(".")


def test_a_finding_has_the_names_of_the_model() -> None:
    (found,) = [one for one in findings(CASES["qdq.output.sum"][0]) if one.rule == "qdq.output.sum"]
    assert (found.layer, found.kind, found.onnx_nodes, found.tensor) == ("node c", "convolution", ("node c",), "c")
    assert "'node y0'" in found.found


def quantized(to_type: DataType, of_constant: bool) -> Network:
    """A network that quantizes its input, or a constant, in blocks of one row."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (4, 32))
    constant = network.add_constant((4, 32), numbers(4, 32)).get_output(0)
    scale = network.add_constant((4, 1), np.full((4, 1), 0.5, np.float32)).get_output(0)
    layer = network.add_quantize(constant if of_constant else x, scale, to_type)
    network.mark_output(network.add_dequantize(layer.get_output(0), scale).get_output(0))
    return network


@pytest.mark.parametrize(
    ("to_type", "rule"),
    [(DataType.INT4, "qdq.type.int4_activation"), (DataType.FP4, "qdq.type.fp4_activation")],
)
def test_activations_in_four_bits_are_told_and_weights_are_not(to_type: DataType, rule: str) -> None:
    assert rule in [one.rule for one in lint_network(quantized(to_type, of_constant=False))]
    assert lint_network(quantized(to_type, of_constant=True)) == []


def test_weights_in_four_bits_under_real_data_are_meant_so() -> None:
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (4, 8))
    weights = network.add_constant((8, 4), numbers(8, 4)).get_output(0)
    scale = network.add_constant((2, 4), np.full((2, 4), 0.5, np.float32)).get_output(0)
    codes = network.add_quantize(weights, scale, DataType.INT4).get_output(0)
    real = network.add_dequantize(codes, scale).get_output(0)
    product = network.add_matrix_multiply(x, MatrixOperation.NONE, real, MatrixOperation.NONE)
    network.mark_output(product.get_output(0))
    assert [one.rule for one in lint_network(network)] == []


MATRIX = numbers(4, 8)
"""Weights of a product, `[4, 8]`."""


@pytest.mark.parametrize(
    ("body", "axis", "found"),
    [
        ("y = MatMul(d, k)", 1, []),
        ("y = MatMul(d, k)", 0, ["qdq.weights.axis"]),
        ("y = Gemm(d, k)", 1, []),
        ("y = Gemm<transB=1>(d, kt)", 0, []),
        ("t = Transpose<perm=[1, 0]>(kt) y = MatMul(d, t)", 0, []),
    ],
    ids=["columns", "rows", "as TensorFlow writes it", "as PyTorch writes it", "transposed behind"],
)
def test_the_channels_of_matrices_are_where_the_product_has_them(body: str, axis: int, found: list[str]) -> None:
    matrix = MATRIX if "kt" not in body else MATRIX.T.copy()
    name = "k" if "kt" not in body else "kt"
    scales = np.abs(matrix).max(axis=1 - axis) / np.float32(127)
    text = pair("x", "d") + pair("m", name, "ms", "mz", axis) + body
    weights = {"m": matrix, "ms": scales, "mz": np.zeros(len(scales), np.int8), "s": WEIGHTS["s"], "z": WEIGHTS["z"]}
    parsed = model(text, inputs="float[2,4] x", outputs="float[2,8] y", weights=weights)
    assert [one.rule for one in lint_network(network_from_onnx(parsed))] == found


def test_what_quantizes_outputs_as_tensorflow_does_is_told_at_each_activation() -> None:
    """A pair behind each layer: behind the convolution it stands before the ReLU, and the last is for the caller."""
    body = CONV + pair("c", "f") + "g = Relu(f) " + pair("g", "h") + "e = Conv(h, k) " + pair("e", "y")
    told = {(one.rule, one.tensor) for one in findings(body)}
    assert told == {("qdq.output.activation", "c"), ("qdq.output.unread", "e")}


def test_a_quantized_constant_that_clips_says_how_much() -> None:
    (found,) = [one for one in findings(CASES["qdq.weights.clipped"][0]) if one.rule == "qdq.weights.clipped"]
    clipped = np.abs(KERNEL) > 0.1275
    assert found.found.startswith(f"{clipped.mean():.2%} of the weights are clipped")


def test_arithmetic_on_integers_that_were_never_real_is_no_finding() -> None:
    parsed = model("y = Add(x, x2)", inputs="int8[4] x, int8[4] x2", outputs="int8[4] y", opset=14)
    assert lint_network(network_from_onnx(parsed)) == []


def test_a_network_without_quantization_has_no_findings() -> None:
    assert findings("f = Conv(x, w) y = Sigmoid(f)") == []


def test_long_chains_of_moving_layers_are_walked_without_recursion() -> None:
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (4, 4))
    scale = network.add_constant((), np.array(0.5, np.float32)).get_output(0)
    tensor = network.add_dequantize(network.add_quantize(x, scale).get_output(0), scale).get_output(0)
    for _ in range(3000):
        tensor = network.add_identity(tensor).get_output(0)
    network.mark_output(network.add_quantize(tensor, scale).get_output(0))
    assert lint_network(network) == []
