"""What operators meant in older opsets: attributes that are inputs today, and other rules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.core.onnx.models import assert_agrees, model, numbers

CASES: dict[str, tuple[str, int, tuple[int, ...], str, Mapping[str, np.ndarray]]] = {
    "squeeze with an attribute": ("y = Squeeze <axes=[0,2]> (x)", 11, (1, 3, 1, 4), "float[3,4] y", {}),
    "squeeze of every extent of 1": ("y = Squeeze (x)", 11, (1, 3, 1, 4), "float[3,4] y", {}),
    "unsqueeze with an attribute": ("y = Unsqueeze <axes=[0,-1]> (x)", 11, (3, 4), "float[1,3,4,1] y", {}),
    "slice with attributes": (
        "y = Slice <starts=[1,-2], ends=[9,-1], axes=[0,1]> (x)",
        9,
        (3, 4),
        "float[2,1] y",
        {},
    ),
    "slice without axes": ("y = Slice <starts=[1,0], ends=[2,3]> (x)", 9, (3, 4), "float[1,3] y", {}),
    "split with an attribute": ("a, y = Split <axis=1, split=[1,3]> (x)", 11, (3, 4), "float[3,3] y", {}),
    "split into equal parts": ("a, y = Split <axis=1> (x)", 11, (3, 4), "float[3,2] y", {}),
    "pad with attributes": (
        'y = Pad <mode="constant", pads=[0,1,2,0], value=1.5> (x)',
        10,
        (3, 4),
        "float[5,5] y",
        {},
    ),
    "pad that reflects": ('y = Pad <mode="reflect", pads=[1,1,2,0]> (x)', 10, (3, 4), "float[6,5] y", {}),
    "clip with attributes": ("y = Clip <min=-0.5, max=0.5> (x)", 10, (3, 4), "float[3,4] y", {}),
    "clip with a lower bound": ("y = Clip <min=0.1> (x)", 10, (3, 4), "float[3,4] y", {}),
    "dropout": ("y = Dropout <ratio=0.9> (x)", 10, (3, 4), "float[3,4] y", {}),
    "dropout with a ratio": ("y = Dropout (x, r)", 13, (3, 4), "float[3,4] y", {"r": np.array(0.5, np.float32)}),
    "top-k with an attribute": ("y, i = TopK <k=2, axis=1> (x)", 9, (3, 4), "float[3,2] y", {}),
    "reduce with an attribute": ("y = ReduceMean <axes=[1], keepdims=0> (x)", 13, (3, 4), "float[3] y", {}),
    "sum with an attribute": ("y = ReduceSum <axes=[-1]> (x)", 11, (3, 4), "float[3,1] y", {}),
    "softmax that flattens": ("y = Softmax <axis=1> (x)", 11, (2, 3, 4), "float[2,3,4] y", {}),
    "softmax over a lone axis": ("y = Softmax <axis=1> (x)", 11, (2, 5, 1, 1), "float[2,5,1,1] y", {}),
    "log-softmax that flattens": ("y = LogSoftmax <axis=1> (x)", 11, (2, 3, 4), "float[2,3,4] y", {}),
    "hardmax that flattens": ("y = Hardmax <axis=1> (x)", 11, (2, 3, 4), "float[2,3,4] y", {}),
    "upsample with an attribute": (
        'y = Upsample <mode="nearest", scales=[1.0,1.0,2.0,3.0]> (x)',
        8,
        (1, 2, 3, 4),
        "float[1,2,6,12] y",
        {},
    ),
    "upsample with scales": (
        'y = Upsample <mode="linear"> (x, s)',
        9,
        (1, 2, 3, 4),
        "float[1,2,6,8] y",
        {"s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "resize of opset 10": (
        'y = Resize <mode="nearest"> (x, s)',
        10,
        (1, 2, 3, 4),
        "float[1,2,6,8] y",
        {"s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "resize of opset 11": (
        'y = Resize <mode="linear", coordinate_transformation_mode="pytorch_half_pixel"> (x, r, e, s)',
        11,
        (1, 2, 3, 4),
        "float[1,2,7,5] y",
        {"r": np.zeros(0, np.float32), "e": np.zeros(0, np.float32), "s": np.array([1, 2, 7, 5], np.int64)},
    ),
    "batch normalization of opset 8": (
        "y = BatchNormalization <epsilon=0.01> (x, g, b, m, v)",
        8,
        (2, 3, 4, 4),
        "float[2,3,4,4] y",
        {name: np.abs(numbers(3, seed=index)) for index, name in enumerate("gbmv")},
    ),
    "gemm of opset 7": (
        "y = Gemm <alpha=0.5, beta=2.0, transB=1> (x, w, c)",
        7,
        (3, 4),
        "float[3,5] y",
        {"w": numbers(5, 4, seed=1), "c": numbers(5, seed=2)},
    ),
    "gemm with a bias for each row": (
        "y = Gemm <transB=1> (x, w, c)",
        9,
        (3, 4),
        "float[3,5] y",
        {"w": numbers(5, 4, seed=1), "c": numbers(3, 1, seed=2)},
    ),
    "flatten at another axis": ("y = Flatten <axis=2> (x)", 9, (2, 3, 4, 5), "float[6,20] y", {}),
    "instance normalization": (
        "y = InstanceNormalization (x, s, b)",
        7,
        (2, 3, 4, 4),
        "float[2,3,4,4] y",
        {"s": numbers(3, seed=1), "b": numbers(3, seed=2)},
    ),
    "one-hot of opset 9": (
        "i = Cast <to=7> (x) y = OneHot (i, d, v)",
        9,
        (2, 3),
        "float[2,3,4] y",
        {"d": np.array([4], np.int64), "v": np.array([0, 1], np.float32)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_of_an_older_opset_agrees_with_onnx_runtime(name: str) -> None:
    nodes, opset, shape, outputs, weights = CASES[name]
    extents = ",".join(map(str, shape))
    parsed = model(nodes, inputs=f"float[{extents}] x", outputs=outputs, opset=opset, weights=weights)
    assert_agrees(parsed, {"x": numbers(*shape)})


def test_initializers_that_are_listed_as_inputs_are_constants() -> None:
    parsed = model(
        "y = Conv (x, w)",
        inputs="float[1,2,5,5] x, float[3,2,3,3] w",
        outputs="float[1,3,3,3] y",
        opset=8,
        weights={"w": numbers(3, 2, 3, 3)},
    )
    parsed.ir_version = 3
    assert_agrees(parsed, {"x": numbers(1, 2, 5, 5)})
