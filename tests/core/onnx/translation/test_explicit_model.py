"""A Q/DQ model says what an implicit build does: ONNX Runtime computes the codes that the INT8 engine computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers, run_runtime
from tests.core.onnx.translation.quantized_models import (
    constant,
    explicit_of,
    int8_config,
    named,
    with_ranges,
)

from dryfit.building import Builder
from dryfit.errors import OnnxImportError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.onnx.translation.agreement import tensor_values
from dryfit.onnx.translation.explicit_model import ExplicitModel
from dryfit.onnx.translation.implicit_precisions import inlined, prepared_model


def codes_of(translated: ExplicitModel, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The codes of each quantized tensor as ONNX Runtime computes them, operator by operator."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the oracle of these tests")
    watched = onnx.ModelProto()
    watched.CopyFrom(translated.model)
    outputs = {one.name for one in watched.graph.output}
    for value in translated.quantized.values():
        if value not in outputs:
            watched.graph.output.append(onnx.helper.make_tensor_value_info(value, onnx.TensorProto.INT8, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(watched.SerializeToString(), options)
    names = list(translated.quantized.values())
    return dict(zip(translated.quantized, session.run(names, dict(feeds)), strict=True))


def engine_values(network: Network, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the implicit INT8 engine stores."""
    return tensor_values(Builder().build_engine(network, int8_config()), feeds, num_threads=1)


def agreeing(parsed: onnx.ModelProto, network: Network, *, stores_integers: bool = True) -> ExplicitModel:
    """Translate, and require codes that differ by one at most, in few places."""
    translated = explicit_of(parsed, network, stores_integers=stores_integers)
    onnx.checker.check_model(translated.model, full_check=True)
    feeds = {
        info.name: numbers(*(dim.dim_value for dim in info.type.tensor_type.shape.dim), seed=5)
        for info in parsed.graph.input
    }
    expected, found = codes_of(translated, feeds), engine_values(network, feeds)
    compared = [name for name in expected if name in found and found[name].dtype == np.int8]
    assert compared
    for name in compared:
        steps = np.abs(found[name].astype(int) - expected[name].astype(int))
        assert steps.max() <= 1, name
        assert np.count_nonzero(steps) <= max(2, steps.size // 200), name
    return translated


RESIDUAL = named(
    model(
        "a = Conv<pads = [1, 1, 1, 1]>(x, v) b = Relu(a) c = Conv(b, w, bias) d = Add(c, b) e = Relu(d) "
        "f = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(e) g = Conv(f, u) y = Conv(g, w)",
        inputs="float[1,3,8,8] x",
        outputs="float[1,4,4,4] y",
        weights={
            "v": numbers(4, 3, 3, 3),
            "w": numbers(4, 4, 1, 1, seed=1),
            "u": numbers(4, 4, 1, 1, seed=2),
            "bias": numbers(4, seed=3),
        },
    )
)
RANGES = {"x": 3.0, "a": 9.0, "b": 9.0, "c": 20.0, "d": 25.0, "e": 25.0, "f": 25.0, "g": 40.0, "y": 90.0}


@pytest.mark.parametrize("stores_integers", [True, False])
def test_pairs_stand_where_the_build_rounds_and_nowhere_else(stores_integers: bool) -> None:
    translated = agreeing(RESIDUAL, with_ranges(RESIDUAL, RANGES), stores_integers=stores_integers)
    # Inside a step, and before the last layer's real output, nothing is rounded.
    assert set(translated.scales) == {"x", "b", "e", "f"}
    assert translated.scales["b"] == float(np.float32(9.0 / 127))
    names = {node.name for node in translated.model.graph.node}
    assert {node.name for node in RESIDUAL.graph.node} <= names
    assert not translated.notes


def test_both_forms_of_weights_have_the_same_codes() -> None:
    network = with_ranges(RESIDUAL, RANGES)
    integers = explicit_of(RESIDUAL, network)
    real = explicit_of(RESIDUAL, network, stores_integers=False)
    codes = constant(integers.model, "v_quantized").astype(np.float32)
    scales = constant(real.model, "v_scale")[:, None, None, None]
    np.testing.assert_array_equal(np.rint(constant(real.model, "v") / scales), codes)
    assert codes.max() == 127 or codes.min() == -127


def test_a_batch_normalization_becomes_part_of_the_quantized_weights() -> None:
    parsed = named(
        model(
            "a = Conv(x, w) b = BatchNormalization(a, gamma, beta, mean, var) c = Relu(b) "
            "d = Conv(c, w) y = Conv(d, w)",
            inputs="float[1,4,4,4] x",
            outputs="float[1,4,4,4] y",
            weights={
                "w": numbers(4, 4, 1, 1),
                "gamma": np.float32([1, 2, 3, 4]),
                "beta": np.float32([0.5, 0, -1, 2]),
                "mean": np.float32([0, 1, 0.5, -2]),
                "var": np.float32([1, 4, 2, 9]),
            },
        )
    )
    translated = agreeing(parsed, with_ranges(parsed, {"x": 3, "a": 9, "b": 15, "c": 15, "d": 40, "y": 90}))
    assert "BatchNormalization" not in {node.op_type for node in translated.model.graph.node}
    (first,) = [node for node in translated.model.graph.node if node.output[0] == "b"]
    assert (first.op_type, first.name) == ("Conv", "Conv_a")


@pytest.mark.parametrize("transposed", [0, 1])
def test_the_weights_of_a_gemm_follow_its_transposition_and_hold_alpha(transposed: int) -> None:
    weights = numbers(6, 8) if transposed else numbers(8, 6)
    parsed = named(
        model(
            f"a = Gemm<transB = {transposed}, alpha = 0.5, beta = 2.0>(x, w, c) b = Relu(a) y = Gemm(b, v)",
            inputs="float[2,8] x",
            outputs="float[2,3] y",
            weights={"w": weights, "c": numbers(6, seed=1), "v": numbers(6, 3, seed=2)},
        )
    )
    network = with_ranges(parsed, {"x": 3, "a": 9, "b": 9, "y": 20, "Gemm_a/fully_connected_output": 9})
    translated = agreeing(parsed, network)
    assert "Gemm_a" in translated.weights


def test_matrix_products_and_deconvolutions_are_quantized_by_their_output_channels() -> None:
    parsed = named(
        model(
            "a = ConvTranspose(x, w) b = Relu(a) c = ConvTranspose<group = 4>(b, g) d = Relu(c) y = Conv(d, v)",
            inputs="float[1,4,4,4] x",
            outputs="float[1,4,4,4] y",
            weights={"w": numbers(4, 4, 1, 1), "g": numbers(4, 1, 1, 1, seed=1), "v": numbers(4, 4, 1, 1, seed=2)},
        )
    )
    translated = agreeing(parsed, with_ranges(parsed, {"x": 3, "a": 9, "b": 9, "c": 20, "d": 20, "y": 90}))
    axes = {
        node.input[0]: next(one.i for one in node.attribute if one.name == "axis")
        for node in translated.model.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0].endswith("_quantized")
    }
    assert axes == {"w_quantized": 1, "g_quantized": 0}


def test_scales_for_which_onnx_has_no_axis_are_told() -> None:
    parsed = named(
        model(
            "a = ConvTranspose<group = 2>(x, g) b = Relu(a) y = Conv(b, v)",
            inputs="float[1,4,4,4] x",
            outputs="float[1,4,4,4] y",
            weights={"g": numbers(4, 2, 1, 1), "v": numbers(4, 4, 1, 1, seed=2)},
        )
    )
    translated = explicit_of(parsed, with_ranges(parsed, {"x": 3, "a": 9, "b": 9, "y": 90}))
    reason = "its scales are per group and channel, which ONNX cannot express"
    assert translated.notes == [f"layer 'ConvTranspose_a' keeps floating-point weights: {reason}"]


def test_an_output_that_is_stored_in_int8_keeps_its_name_behind_a_pair() -> None:
    parsed = named(
        model(
            "a = Conv(x, w) b = Relu(a) c = Conv(b, w) y = Conv(c, w)",
            inputs="float[1,4,4,4] x",
            outputs="float[1,4,4,4] b, float[1,4,4,4] y",
            weights={"w": numbers(4, 4, 1, 1)},
        )
    )
    network = with_ranges(parsed, {"x": 3, "a": 9, "b": 9, "c": 30, "y": 90})
    network.layer("Conv_a").precision = network.layer("Relu_b").precision = DataType.INT8
    translated = explicit_of(parsed, network)
    assert [one.name for one in translated.model.graph.output] == ["b", "y"]
    feeds = {"x": numbers(1, 4, 4, 4)}
    expected, found = run_runtime(translated.model, feeds), engine_values(network, feeds)
    np.testing.assert_allclose(found["b"], expected[0], atol=1e-6)
    scale = np.float32(9 / 127)
    np.testing.assert_allclose(np.rint(expected[0] / scale) * scale, expected[0], atol=1e-5)


def test_tensors_of_a_narrower_type_are_refused_by_name() -> None:
    parsed = named(
        model(
            "a = Conv(x, w) b = Conv(a, w) y = Conv(b, w)",
            inputs="float16[1,4,4,4] x",
            outputs="float16[1,4,4,4] y",
            weights={"w": numbers(4, 4, 1, 1).astype(np.float16)},
        )
    )
    with pytest.raises(OnnxImportError, match="'a' FLOAT16"):
        explicit_of(parsed, with_ranges(parsed, {"x": 3, "a": 9, "b": 30, "y": 90}))


def test_an_older_opset_is_raised_and_functions_are_written_out() -> None:
    old = model("y = Relu(x)", inputs="float[2] x", outputs="float[2] y", opset=9)
    assert prepared_model(old).opset_import[0].version == 13
    assert [node.op_type for node in prepared_model(old).graph.node] == ["Relu"]
    text = (
        '<ir_version: 8, opset_import: ["" : 13, "own" : 1]> net (float[2] x) => (float[2] y) { y = own.twice(x) } '
        '<domain: "own", opset_import: ["" : 13]> twice (a) => (b) { b = Add(a, a) }'
    )
    assert [node.op_type for node in inlined(onnx.parser.parse_model(text)).graph.node] == ["Add"]


def test_nodes_of_one_name_are_told_apart() -> None:
    parsed = model("a = Relu(x) b = Exp(a) y = Abs(b)", inputs="float[2] x", outputs="float[2] y")
    for node, name in zip(parsed.graph.node, ("one", "one", "one_1"), strict=True):
        node.name = name
    assert [node.name for node in inlined(parsed).graph.node] == ["one", "one_2", "one_1"]
    assert parsed.graph.node[1].name == "one"
