"""Q/DQ nodes are taken out, what they said is kept, and what implicit scales cannot say is refused by name."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers, run_runtime
from tests.core.onnx.translation.quantized_models import NOWHERE, constant, named, pair, scalars

from dryfit.errors import OnnxImportError
from dryfit.onnx.translation.plain_model import PlainModel, plain_model

CODES = np.random.default_rng(3).integers(-127, 128, (4, 2, 1, 1)).astype(np.int8)
SCALES = np.array([0.5, 0.1, 0.03, 2.0], np.float32)


def convolution(weights: str, *, scale: np.ndarray = SCALES, **constants: np.ndarray) -> onnx.ModelProto:
    """A convolution whose input is quantized by 0.05, with weights that a text makes."""
    zero = np.zeros(scale.shape, np.int8)
    return named(
        model(
            f"{pair('x', 'xq', 's')} {weights} y = Conv(xq, w)",
            inputs="float[1,2,4,4] x",
            outputs="float[1,4,4,4] y",
            weights={**scalars(s=0.05), "ws": scale, "wz": zero, **constants},
        )
    )


def plain(parsed: onnx.ModelProto, **settings: bool) -> PlainModel:
    return plain_model(parsed, NOWHERE, **settings)


def test_integer_weights_become_code_times_scale_and_the_model_computes_what_they_mean() -> None:
    parsed = convolution("w = DequantizeLinear<axis = 0>(c, ws, wz)", c=CODES)
    found = plain(parsed)
    expected = CODES.astype(np.float32) * SCALES[:, None, None, None]
    np.testing.assert_array_equal(constant(found.model, "w"), expected)
    assert [node.op_type for node in found.model.graph.node] == ["Conv"]
    assert list(found.model.graph.node[0].input) == ["x", "w"]
    x = numbers(1, 2, 4, 4)
    rounded = (np.clip(np.rint(x / np.float32(0.05)), -128, 127) * np.float32(0.05)).astype(np.float32)
    np.testing.assert_allclose(
        run_runtime(found.model, {"x": rounded})[0], run_runtime(parsed, {"x": x})[0], rtol=1e-4, atol=1e-3
    )


def test_real_weights_behind_a_pair_become_what_the_pair_makes_of_them() -> None:
    real = numbers(4, 2, 1, 1) * 100
    parsed = convolution("q = QuantizeLinear<axis = 0>(r, ws, wz) w = DequantizeLinear<axis = 0>(q, ws, wz)", r=real)
    spread = SCALES[:, None, None, None]
    expected = np.clip(np.rint(real / spread), -128, 127).astype(np.float32) * spread
    np.testing.assert_array_equal(constant(plain(parsed).model, "w"), expected)


def test_weights_are_followed_through_reshapes_and_transposes_to_their_channels() -> None:
    turned = CODES.reshape(4, 2).T.copy()
    turned[:, 1] = (100, 3)
    parsed = named(
        model(
            f"{pair('x', 'xq', 's')} d = DequantizeLinear<axis = 1>(c, ws, wz) w = Transpose<perm = [1, 0]>(d) "
            "y = Gemm<transB = 1>(xq, w)",
            inputs="float[3,2] x",
            outputs="float[3,4] y",
            weights={**scalars(s=0.05), "ws": SCALES, "wz": np.zeros(4, np.int8), "c": turned},
        )
    )
    (found,) = plain(parsed).requantized
    # Only the second channel does not reach 127 among the channels that are as they were.
    reaches = np.abs(turned).max(axis=0) == 127
    assert (found.node, found.channels, found.codes) == ("Gemm_y", 4, 8)
    assert found.same_channels >= int(reaches.sum())
    assert found.changed_codes > 0


def test_a_channel_that_reaches_127_keeps_its_codes_and_another_does_not() -> None:
    codes = np.array([[127, 5], [-127, 3], [64, 5], [100, -33]], np.int8).reshape(4, 2, 1, 1)
    (found,) = plain(convolution("w = DequantizeLinear<axis = 0>(c, ws, wz)", c=codes)).requantized
    assert (found.channels, found.same_channels, found.changed_codes) == (4, 2, 4)
    assert 0 < found.largest_difference <= 0.5


def test_codes_of_minus_128_are_clipped_where_that_is_asked_for() -> None:
    codes = np.array([[-128, 64], [127, 1], [127, 2], [127, 3]], np.int8).reshape(4, 2, 1, 1)
    parsed = convolution("w = DequantizeLinear<axis = 0>(c, ws, wz)", c=codes)
    assert plain(parsed).requantized[0].same_channels == 3
    clipped = plain(parsed, clips_weights=True)
    assert clipped.requantized[0].same_channels == 4
    assert constant(clipped.model, "w")[0, 0, 0, 0] == -127 * np.float32(0.5)


def test_an_integer_bias_becomes_real() -> None:
    parsed = convolution(
        "w = DequantizeLinear<axis = 0>(c, ws, wz) b = DequantizeLinear(i, bs)",
        c=CODES,
        i=np.array([10, -3, 0, 7], np.int32),
        bs=np.array(0.25, np.float32),
    )
    parsed.graph.node[-1].input.append("b")
    np.testing.assert_array_equal(constant(plain(parsed).model, "b"), np.float32([2.5, -0.75, 0, 1.75]))


def test_outputs_keep_the_names_that_their_pairs_gave_and_unnamed_nodes_are_found_again() -> None:
    parsed = model(
        f"{pair('x', 'a', 's')} b = Relu(a) {pair('b', 'y', 't')}",
        inputs="float[1,2] x",
        outputs="float[1,2] y",
        weights=scalars(s=0.5, t=0.25),
    )
    found = plain(parsed)
    assert [(list(node.input), list(node.output)) for node in found.model.graph.node] == [(["x"], ["y"])]
    assert found.scales == {"x": (0.5,), "y": (0.25,)}
    assert found.dequantized == {"node_of_y": frozenset({"x"})}
    assert found.quantized == {"x": "a_codes", "y": "y_codes"}


def test_an_output_whose_value_has_to_keep_its_own_name_gets_an_identity() -> None:
    parsed = model(pair("x", "y", "s"), inputs="float[2] x", outputs="float[2] y", weights=scalars(s=0.5))
    assert [(node.op_type, list(node.input), list(node.output)) for node in plain(parsed).model.graph.node] == [
        ("Identity", ["x"], ["y"])
    ]


def test_inputs_and_outputs_in_int8_become_real_and_are_told() -> None:
    parsed = model(
        "a = DequantizeLinear(x, s, z) b = Relu(a) y = QuantizeLinear(b, t, z)",
        inputs="int8[2] x",
        outputs="int8[2] y",
        weights=scalars(s=0.5, t=0.25),
    )
    found = plain(parsed)
    assert found.integer_borders == {"x": 0.5, "y": 0.25}
    borders = (found.model.graph.input[0], found.model.graph.output[0])
    assert {one.type.tensor_type.elem_type for one in borders} == {onnx.TensorProto.FLOAT}
    onnx.checker.check_model(found.model, full_check=True)


def test_layers_that_move_codes_move_values() -> None:
    parsed = named(
        model(
            "q = QuantizeLinear(x, s, z) m = MaxPool<kernel_shape = [2, 2]>(q) "
            "d = DequantizeLinear(m, s, z) y = Relu(d)",
            inputs="float[1,1,4,4] x",
            outputs="float[1,1,3,3] y",
            weights=scalars(s=0.5),
        )
    )
    found = plain(parsed)
    assert [list(node.input) for node in found.model.graph.node] == [["x"], ["m"]]
    assert found.scales == {"x": (0.5,), "m": (0.5,)}


REFUSED = {
    "zero point": ("xq = DequantizeLinear(q, s, o) y = Relu(xq)", "the zero point is 3, and must be 0"),
    "per channel": ("q2 = QuantizeLinear<axis = 1>(x, v, vz) y = DequantizeLinear<axis = 1>(q2, v, vz)", "2 scales"),
    "other scale": ("y = DequantizeLinear(q, t, z)", "quantized by 0.5 and is dequantized by 0.25"),
    "sum of codes": ("m = Add(q, q) y = DequantizeLinear(m, s, z)", "Add computes on INT8 codes"),
    "unsigned": ("q2 = QuantizeLinear(x, s, u) y = DequantizeLinear(q2, s, u)", "UINT8: implicit INT8 is symmetric"),
    "unknown scale": ("k = Abs(s) q2 = QuantizeLinear(x, k, z) y = DequantizeLinear(q2, k, z)", "must be constants"),
    "negative scale": ("q2 = QuantizeLinear(x, n, z) y = DequantizeLinear(q2, n, z)", "not positive and finite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_implicit_scales_cannot_say_is_refused_by_node_and_tensor(case: str) -> None:
    body, words = REFUSED[case]
    extra = {
        "o": np.array(3, np.int8),
        "u": np.array(0, np.uint8),
        "v": np.array([0.5, 0.25], np.float32),
        "vz": np.zeros(2, np.int8),
    }
    parsed = named(
        model(
            f"q = QuantizeLinear(x, s, z) {body}",
            inputs="float[1,2] x",
            outputs="float[1,2] y",
            weights={**scalars(s=0.5, t=0.25, n=-1.0), **extra},
        )
    )
    with pytest.raises(OnnxImportError, match=words) as refused:
        plain(parsed)
    assert "node '" in str(refused.value)
    assert "tensor '" in str(refused.value)


def test_all_reasons_are_told_at_once() -> None:
    parsed = named(
        model(
            "q = QuantizeLinear(x, s, o) a = DequantizeLinear(q, s, o) y = Relu(a)",
            inputs="float[2] x",
            outputs="float[2] y",
            weights={**scalars(s=0.5), "o": np.array(3, np.int8)},
        )
    )
    with pytest.raises(OnnxImportError) as refused:
        plain(parsed)
    assert str(refused.value).count("the zero point is 3") == 2


def test_block_scales_are_refused() -> None:
    parsed = named(
        model(
            "w = DequantizeLinear<axis = 1, block_size = 2>(c, v) y = MatMul(x, w)",
            inputs="float[1,2] x",
            outputs="float[1,4] y",
            opset=21,
            weights={"c": np.ones((2, 4), np.int8), "v": np.ones((2, 2), np.float32)},
        )
    )
    with pytest.raises(OnnxImportError, match="one scale per block of 2"):
        plain(parsed)


def test_a_branch_that_reads_a_pair_is_refused() -> None:
    branches = [
        onnx.helper.make_graph(
            [onnx.helper.make_node("Relu", ["a"], [name])], name, [], [onnx.helper.make_tensor_value_info(name, 1, [2])]
        )
        for name in ("first", "second")
    ]
    parsed = model(
        f"{pair('x', 'a', 's')} c = Greater(x, s) y = Abs(x)",
        inputs="float[2] x, bool k",
        outputs="float[2] y",
        weights=scalars(s=0.5),
    )
    parsed.graph.node[-1].CopyFrom(
        onnx.helper.make_node("If", ["k"], ["y"], "choice", then_branch=branches[0], else_branch=branches[1])
    )
    with pytest.raises(OnnxImportError, match="node 'choice', tensor 'a': a branch or the body of a loop reads it"):
        plain(parsed)
