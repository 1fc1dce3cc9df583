"""Copies of ONNX models with other weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers, run_runtime

from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.pruned_model import ExchangedWeights, with_weights

NOWHERE = ExternalData(None)
KERNEL, HALF = numbers(6, 4, 1, 1), numbers(6, 4, 1, 1) / 2
CONV = {"inputs": "float[N,4,5,5] x", "outputs": "float[N,6,5,5] y"}


def named(body, **more):
    """A model whose nodes are called as what they compute."""
    parsed = model(body, **{**CONV, **more})
    for node in parsed.graph.node:
        node.name = f"the {node.output[0]}"
    return parsed


def exchanged(*nodes, before=KERNEL, after=HALF):
    return ExchangedWeights(nodes, before, after)


def initializer(parsed, name):
    return next(onnx.numpy_helper.to_array(one) for one in parsed.graph.initializer if one.name == name)


def test_an_initializer_is_exchanged_in_a_copy_and_nothing_else():
    parsed = named("c = Conv(x, w, b) y = Relu(c)", weights={"w": KERNEL, "b": numbers(6)})
    before = parsed.SerializeToString()
    copy, missing = with_weights(parsed, NOWHERE, [exchanged("the c")])
    assert missing == []
    assert parsed.SerializeToString() == before
    np.testing.assert_array_equal(initializer(copy, "w"), HALF)
    onnx.checker.check_model(copy)
    copy.graph.initializer[0].CopyFrom(parsed.graph.initializer[0])
    assert copy.SerializeToString() == before


def test_the_copy_computes_with_the_new_weights():
    parsed = named("y = Conv(x, w)", weights={"w": KERNEL})
    copy, _ = with_weights(parsed, NOWHERE, [exchanged("the y")])
    x = {"x": numbers(2, 4, 5, 5, seed=3)}
    np.testing.assert_allclose(run_runtime(copy, x)[0], run_runtime(parsed, x)[0] / 2, rtol=1e-6, atol=1e-6)


def test_weights_in_a_constant_node_are_exchanged_there():
    parsed = named("y = Conv(x, w)")
    constant = onnx.helper.make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(KERNEL))
    parsed.graph.node.insert(0, constant)
    copy, missing = with_weights(parsed, NOWHERE, [exchanged("the y")])
    assert missing == []
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(copy.graph.node[0].attribute[0].t), HALF)


@pytest.mark.parametrize("stored", [True, False], ids=["INT8", "FP32"])
def test_weights_are_found_behind_q_and_dq(stored):
    before = (KERNEL * 40).astype(np.int8) if stored else KERNEL
    after = before.copy()
    after[:, ::2] = 0
    quantize = "" if stored else "q = QuantizeLinear(w, s, z)"
    parsed = named(
        f"{quantize} d = DequantizeLinear({'w' if stored else 'q'}, s, z) y = Conv(x, d)",
        weights={"w": before, "s": np.float32(0.1), "z": np.int8(0)},
    )
    copy, missing = with_weights(parsed, NOWHERE, [exchanged("the y", before=before, after=after)])
    assert missing == []
    np.testing.assert_array_equal(initializer(copy, "w"), after)
    assert copy.graph.initializer[0].data_type == parsed.graph.initializer[0].data_type


def test_tied_weights_are_exchanged_once_for_all_who_read_them():
    parsed = named("a = Conv(x, w) b = Conv(x, w) y = Add(a, b)", weights={"w": KERNEL})
    copy, missing = with_weights(parsed, NOWHERE, [exchanged("the a", "the b")])
    assert missing == []
    np.testing.assert_array_equal(initializer(copy, "w"), HALF)


@pytest.mark.parametrize(
    "body",
    [
        "a = Conv(x, w) b = Conv(x, w) y = Add(a, b)",  # another convolution
        "a = Conv(x, w) r = ReduceSum(w) y = Add(a, r)",  # something else
        "v = Mul(w, w) y = Conv(x, v)",  # computed
        "v = Identity(w) y = Conv(x, v) z = Identity(v)",  # an output too
    ],
)
def test_weights_that_are_used_elsewhere_or_computed_are_left(body):
    outputs = "float[N,6,5,5] y, float[6,4,1,1] z" if " z = " in body else CONV["outputs"]
    parsed = named(body, weights={"w": KERNEL}, outputs=outputs)
    node = "the y" if "y = Conv" in body else "the a"
    asked = exchanged(node)
    copy, missing = with_weights(parsed, NOWHERE, [asked])
    assert missing == [asked]
    assert copy.SerializeToString() == parsed.SerializeToString()


@pytest.mark.parametrize("asked", [exchanged("the z"), exchanged("the y", before=HALF), exchanged("the r")])
def test_what_is_not_there_is_left(asked):
    parsed = named("r = Relu(x) y = Conv(r, w)", weights={"w": KERNEL})
    assert with_weights(parsed, NOWHERE, [asked])[1] == [asked]


def test_external_weights_come_into_the_copy(tmp_path):
    parsed = named("y = Conv(x, w)", weights={"w": KERNEL})
    onnx.save_model(
        parsed, str(tmp_path / "model.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    stored = onnx.load(str(tmp_path / "model.onnx"), load_external_data=False)
    copy, missing = with_weights(stored, ExternalData(tmp_path), [exchanged("the y")])
    assert missing == []
    assert copy.graph.initializer[0].data_location == onnx.TensorProto.DEFAULT
    np.testing.assert_array_equal(initializer(copy, "w"), HALF)
