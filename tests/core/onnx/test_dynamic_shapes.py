"""Dynamic dimensions: shape computations are followed where they can be, and computed at run time where not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.core.onnx.models import assert_agrees, model, numbers

from dryfit.onnx.importer import network_from_onnx


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CASES: dict[str, tuple[str, str, str, Mapping[str, np.ndarray]]] = {
    "reshape to a computed target": (
        """s = Shape(x) n = Gather<axis=0>(s, zero) n1 = Unsqueeze(n, zero1)
        t = Concat<axis=0>(n1, rest) y = Reshape(x, t)""",
        "float[N,3,H,W] x",
        "float[?,?,?] y",
        {"zero": np.array(0, np.int64), "zero1": ints(0), "rest": ints(3, -1)},
    ),
    "reshape that copies two axes": (
        "s = Shape(x) a = Slice(s, i0, i2) t = Concat<axis=0>(a, rest) y = Reshape(x, t)",
        "float[N,C,H,4] x",
        "float[?,?,?] y",
        {"i0": ints(0), "i2": ints(2), "rest": ints(-1)},
    ),
    "reshape to another tensor's shape": (
        "n = Neg(x) s = Shape(n) f = Reshape(x, flat) y = Reshape(f, s)",
        "float[N,C,H,W] x",
        "float[?,?,?,?] y",
        {"flat": ints(-1)},
    ),
    "flatten at axis 2": ("y = Flatten<axis=2>(x)", "float[N,C,H,W] x", "float[?,?] y", {}),
    "flatten at axis 0": ("y = Flatten<axis=0>(x)", "float[N,C,H,W] x", "float[?,?] y", {}),
    "slice to the end": (
        "y = Slice(x, a, b, c)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"a": ints(0, 1), "b": ints(2**63 - 1, 2**63 - 1), "c": ints(0, 2)},
    ),
    "slice with negative bounds": (
        "y = Slice(x, a, b, c)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"a": ints(-3, 0), "b": ints(-1, -2), "c": ints(2, 3)},
    ),
    "slice with steps": (
        "y = Slice(x, a, b, c, d)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"a": ints(0, -1), "b": ints(100, -100), "c": ints(2, 3), "d": ints(2, -2)},
    ),
    "slice by the shape of an input": (
        "s = Shape(x) h = Gather<axis=0>(s, two) m = Sub(h, one) y = Slice(x, a, m, c)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"two": ints(2), "one": ints(1), "a": ints(1), "c": ints(2)},
    ),
    "split into slices": (
        "y, z = Split<axis=1>(x, sizes)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y, float[?,?,?,?] z",
        {"sizes": ints(1, 2)},
    ),
    "split of a dynamic axis": (
        "y, z = Split<axis=3>(x)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y, float[?,?,?,?] z",
        {},
    ),
    "split into computed parts": (
        "s = Shape(x) h = Gather<axis=0>(s, i) r = Sub(h, one) t = Concat<axis=0>(one, r) y, z = Split<axis=2>(x, t)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y, float[?,?,?,?] z",
        {"i": ints(2), "one": ints(1)},
    ),
    "expand": ("y = Expand(x, t)", "float[N,1,H,W] x", "float[?,?,?,?,?] y", {"t": ints(2, 1, 3, 1, 1)}),
    "expand to another tensor's shape": (
        "r = ReduceMean<axes=[2,3]>(x) s = Shape(x) y = Expand(r, s)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {},
    ),
    "tile": ("y = Tile(x, r)", "float[N,3,H,W] x", "float[?,?,?,?] y", {"r": ints(1, 2, 1, 3)}),
    "pad": (
        "y = Pad(x, p, v)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"p": ints(0, 0, 1, 2, 0, 0, 3, -1), "v": np.array(0.5, np.float32)},
    ),
    "pad that reflects": (
        'y = Pad<mode="reflect">(x, p)',
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"p": ints(0, 0, 1, 2, 0, 0, 2, 1)},
    ),
    "depth to space": ("y = DepthToSpace<blocksize=2>(x)", "float[N,4,H,W] x", "float[?,?,?,?] y", {}),
    "space to depth": ("y = SpaceToDepth<blocksize=2>(x)", "float[N,3,4,W] x", "float[?,?,?,?] y", {}),
    "constant of a computed shape": (
        "s = Shape(x) c = ConstantOfShape<value = float[1] {2.5}>(s) y = Add(x, c)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {},
    ),
    "range to an extent": (
        "s = Shape(x) w = Gather<axis=0>(s, i) r = Range(a, w, b) y = Cast<to=1>(r)",
        "float[N,3,H,W] x",
        "float[?] y",
        {"i": np.array(3, np.int64), "a": np.array(1, np.int64), "b": np.array(2, np.int64)},
    ),
    "size": ("c = Size(x) y = Cast<to=1>(c)", "float[N,3,H,W] x", "float y", {}),
    "old softmax over several axes": ("y = Softmax<axis=1>(x)", "float[N,3,H,W] x", "float[?,?,?,?] y", {}),
    "squeeze and unsqueeze": (
        "a = Unsqueeze(x, i) b = Unsqueeze(a, j) y = Squeeze(b, k)",
        "float[N,3,H,W] x",
        "float[?,?,?,?,?] y",
        {"i": ints(2), "j": ints(0), "k": ints(0)},
    ),
    "broadcast of a lower rank": (
        "m = ReduceMax<axes=[0,1],keepdims=0>(x) y = Sub(x, m)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {},
    ),
    "gemm with a dynamic batch": (
        "g = GlobalAveragePool(x) f = Flatten(g) y = Gemm(f, w)",
        "float[N,3,H,W] x",
        "float[?,5] y",
        {"w": numbers(3, 5)},
    ),
    "resize by scales": (
        'y = Resize<mode="nearest">(x, , s)',
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "resize to another tensor's extents": (
        """s = Shape(x) a = Slice(s, i0, i2) b = Slice(s, i2, i4) d = Mul(b, two)
        t = Concat<axis=0>(a, d) y = Resize<mode="linear">(x, , , t)""",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"i0": ints(0), "i2": ints(2), "i4": ints(4), "two": ints(2)},
    ),
    "compress": (
        "y = Compress<axis=1>(x, c)",
        "float[N,3,H,W] x",
        "float[?,?,?,?] y",
        {"c": np.array([True, False, True])},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_model_with_dynamic_dimensions_agrees_with_onnx_runtime(name: str) -> None:
    nodes, inputs, outputs, weights = CASES[name]
    opset = 11 if "old" in name else 13
    parsed = model(nodes, inputs=inputs, outputs=outputs, opset=opset, weights=weights)
    for batch, height, width in ((2, 4, 6), (1, 8, 4)):
        extents = {"N": batch, "C": 3, "H": height, "W": width}
        words = inputs.partition("[")[2].partition("]")[0].split(",")
        assert_agrees(parsed, {"x": numbers(*(extents.get(word) or int(word) for word in words))})


def kinds(name: str) -> list[str]:
    nodes, inputs, outputs, weights = CASES[name]
    return [layer.kind for layer in network_from_onnx(model(nodes, inputs=inputs, outputs=outputs, weights=weights))]


@pytest.mark.parametrize("name", ["reshape to a computed target", "reshape that copies two axes"])
def test_a_reshape_whose_target_is_known_in_part_needs_no_shape_at_run_time(name: str) -> None:
    assert kinds(name) == ["shuffle"]


def test_what_follows_from_static_shapes_becomes_no_layer() -> None:
    nodes, _, outputs, weights = CASES["reshape to a computed target"]
    parsed = model(nodes, inputs="float[2,3,4,5] x", outputs=outputs, weights=weights)
    network = network_from_onnx(parsed)
    assert [layer.kind for layer in network] == ["shuffle"]
    assert network.outputs[0].shape == (2, 3, 20)


def test_a_static_axis_beside_a_dynamic_one_is_known() -> None:
    parsed = model(
        "s = Shape(x) c = Gather<axis=0>(s, one) y = ConstantOfShape(c)",
        inputs="float[N,3] x",
        outputs="float[3] y",
        weights={"one": ints(1)},
    )
    network = network_from_onnx(parsed)
    assert [layer.kind for layer in network] == ["constant"]
    assert network.outputs[0].shape == (3,)


def test_dynamic_dimensions_keep_their_names() -> None:
    network = network_from_onnx(
        model("y = Relu(x)", inputs="float[batch,3,height,4] x", outputs="float[batch,3,?,4] y")
    )
    tensor = network.inputs[0]
    assert tensor.shape == (-1, 3, -1, 4)
    assert [tensor.get_dimension_name(axis) for axis in range(4)] == ["batch", None, "height", None]
    assert network.outputs[0].get_dimension_name(0) == "batch"


def test_slices_of_static_axes_keep_their_extents_beside_dynamic_ones() -> None:
    nodes, inputs, outputs, weights = CASES["slice with negative bounds"]
    parsed = model(nodes, inputs="float[N,3,H,6] x", outputs=outputs, weights=weights)
    assert network_from_onnx(parsed).outputs[0].shape == (-1, 3, -1, 4)
    assert inputs
