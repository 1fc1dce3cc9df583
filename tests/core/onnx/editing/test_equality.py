"""A model that computes something else is found out."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers

from dryfit.errors import OnnxImportError
from dryfit.onnx.editing.equality import FLOAT_TOLERANCE, LARGEST_TOLERANCE, SEEDS, prove_equal

X, Y = "float[N,2,4,4] x", "float[N,2,4,4] y"


def body(text: str, *, inputs: str = X, outputs: str = Y, **weights: np.ndarray) -> onnx.ModelProto:
    return model(text, inputs=inputs, outputs=outputs, weights=weights)


def test_two_ways_of_writing_one_function_are_equal() -> None:
    proof = prove_equal(body("y = Add(x, x)"), body("y = Mul(x, c)", c=np.float32(2).reshape(())))
    assert proof.seeds == SEEDS
    assert proof.largest_difference == 0
    assert proof.tolerance == FLOAT_TOLERANCE


@pytest.mark.parametrize(
    "other",
    ["y = Relu(x)", "a = Add(x, x) y = Sub(a, c)", "y = Mul(x, c)", "a = Exp(x) b = Exp(a) y = Exp(b)"],
)
def test_another_function_is_refused_with_the_difference(other: str) -> None:
    with pytest.raises(
        OnnxImportError, match=r"value 'y', random inputs of seed \d.*differ by more than the tolerance"
    ) as raised:
        prove_equal(body("y = Add(x, x)"), body(other, c=np.float32(2.01).reshape(())))
    assert f"at most {FLOAT_TOLERANCE:g}" in str(raised.value)


def test_a_difference_that_only_large_numbers_show_is_found() -> None:
    clipped = body("y = Clip(x, a, b)", a=np.float32(-10).reshape(()), b=np.float32(10).reshape(()))
    with pytest.raises(OnnxImportError, match="outputs of the edited model differ by more than the tolerance"):
        prove_equal(body("y = Identity(x)"), clipped)


def test_networks_that_amplify_roundings_may_differ_by_as_much() -> None:
    u = np.float32([[1.001, 0], [1, 0]]).reshape(2, 2, 1, 1)
    w = np.float32([[1e5, -1e5], [-1e5, 1e5]]).reshape(2, 2, 1, 1)
    old = body("c = Conv(x, u) y = Conv(c, w)", u=u, w=w)
    parts = {"a": np.float32(3), "b": np.float32(1) / np.float32(3)}
    proof = prove_equal(old, body("c = Conv(x, u) d = Mul(c, a) e = Mul(d, b) y = Conv(e, w)", u=u, w=w, **parts))
    assert FLOAT_TOLERANCE < proof.largest_difference <= proof.tolerance <= LARGEST_TOLERANCE
    with pytest.raises(OnnxImportError, match="differ by more than the tolerance"):
        prove_equal(old, body("c = Conv(x, u) d = Mul(c, a) y = Conv(d, w)", u=u, w=w, a=np.float32(1.01)))


def test_a_difference_that_only_another_batch_shows_is_found() -> None:
    first = body("y = Mul(x, c)", c=np.ones((1, 2, 4, 4), np.float32))
    mean = body("m = ReduceMean <axes = [0]> (x) d = Sub(x, m) y = Add(d, m)")
    prove_equal(first, mean)
    with pytest.raises(OnnxImportError, match="outputs of the edited model differ by more than the tolerance"):
        prove_equal(
            first, body("m = ReduceMean <axes = [0]> (x) z = Mul(x, c) y = Add(z, m)", c=np.float32(0).reshape(()))
        )


def test_a_model_that_takes_one_batch_is_compared_with_that() -> None:
    flat = "f = Reshape(x, s) y = Reshape(f, t)"
    shapes = {"s": np.asarray([1, 32], np.int64), "t": np.asarray([1, 2, 4, 4], np.int64)}
    assert prove_equal(body(flat, **shapes), body("y = Identity(x)")).largest_difference == 0


def test_whole_numbers_have_to_be_the_same() -> None:
    kept = model("y = ArgMax <axis = 1> (x)", inputs=X, outputs="int64[N,1,4,4] y")
    turned = model("z = Neg(x) y = ArgMin <axis = 1> (z)", inputs=X, outputs="int64[N,1,4,4] y")
    wrong = model("y = ArgMin <axis = 1> (x)", inputs=X, outputs="int64[N,1,4,4] y")
    assert prove_equal(kept, turned).largest_difference == 0
    with pytest.raises(OnnxImportError, match="at most 0"):
        prove_equal(kept, wrong)


def test_other_outputs_and_inputs_are_refused() -> None:
    with pytest.raises(OnnxImportError, match=r"outputs .*must not change.*found .*'z'.*allowed: .*'y'"):
        prove_equal(body("y = Relu(x)"), body("z = Relu(x)", outputs="float[N,2,4,4] z"))
    with pytest.raises(OnnxImportError, match=r"inputs .*must not change.*found .*'z'.*allowed: .*'x'"):
        prove_equal(body("y = Relu(x)"), body("y = Relu(z)", inputs="float[N,2,4,4] z"))
    with pytest.raises(OnnxImportError, match="another shape or type"):
        prove_equal(body("y = Relu(x)"), body("y = GlobalMaxPool(x)", outputs="float[N,2,1,1] y"))


def test_open_extents_beside_the_batch_have_to_be_given() -> None:
    first, second = (body("y = Relu(x)", inputs="float[N,2,H,4] x", outputs="float[N,2,H,4] y") for _ in range(2))
    with pytest.raises(
        OnnxImportError, match=r"input 'x': All dimensions except the batch.*found .-1, 2, -1, 4.*--shape x="
    ):
        prove_equal(first, second)
    assert prove_equal(first, second, shapes={"x": (1, 2, 6, 4)}).largest_difference == 0


def test_weights_are_compared_by_what_they_do() -> None:
    weights = numbers(3, 2, 1, 1)
    source = body("y = Conv(x, w)", outputs="float[N,3,4,4] y", w=weights)
    almost = body("y = Conv(x, w)", outputs="float[N,3,4,4] y", w=weights * np.float32(1 + 1e-7))
    wrong = body("y = Conv(x, w)", outputs="float[N,3,4,4] y", w=weights * np.float32(1 + 1e-4))
    assert prove_equal(source, almost).largest_difference < FLOAT_TOLERANCE
    with pytest.raises(OnnxImportError):
        prove_equal(source, wrong)


def test_what_a_softmax_at_the_end_hides_is_found() -> None:
    tail = "p = Flatten(a) q = Mul(p, big) y = Softmax(q)"
    outputs = "float[N,32] y"
    big = np.float32(1e6).reshape(())
    source = body(f"a = Mul(x, c) {tail}", outputs=outputs, big=big, c=np.float32(2).reshape(()))
    other = body(f"a = Mul(x, c) {tail}", outputs=outputs, big=big, c=np.float32(2.001).reshape(()))
    other.graph.node[0].name = "another node"
    with pytest.raises(OnnxImportError, match="value 'a'"):
        prove_equal(source, other)
    other.graph.node[0].ClearField("name")
    assert prove_equal(source, other).values == ["y"]
