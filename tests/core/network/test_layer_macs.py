"""Multiply-accumulates, against what loops over the definition count."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model

from dryfit.onnx.importer import network_from_onnx
from dryfit.reference.inference import infer_specs


def macs(body: str, x: str, y: str, **weights: tuple[int, ...]) -> int:
    arrays = {name: np.ones(shape, np.float32) for name, shape in weights.items()}
    network = network_from_onnx(model(body, inputs=x, outputs=y, weights=arrays))
    specs = infer_specs(network)
    return sum(layer.multiply_accumulates(specs) for layer in network.layers)


@pytest.mark.parametrize(
    ("body", "x", "y", "weights", "expected"),
    [
        ("y = Conv <pads = [1, 1, 1, 1]> (x, w)", "float[2,4,5,6] x", "float[2,8,5,6] y", {"w": (8, 4, 3, 3)},
         2 * 8 * 5 * 6 * 4 * 9),
        ("y = Conv <group = 4> (x, w)", "float[2,4,5,6] x", "float[2,8,3,4] y", {"w": (8, 1, 3, 3)},
         2 * 8 * 3 * 4 * 9),
        ("y = ConvTranspose <group = 2> (x, w)", "float[2,4,5,6] x", "float[2,6,7,8] y", {"w": (4, 3, 3, 3)},
         2 * 4 * 5 * 6 * 3 * 9),
        ("y = Gemm(x, w)", "float[2,12] x", "float[2,5] y", {"w": (12, 5)}, 2 * 12 * 5),
        ("z = Relu(x) t = Transpose <perm = [0, 2, 1]> (z) y = MatMul(x, t)", "float[3,4,5] x", "float[3,4,4] y", {},
         3 * 4 * 4 * 5),
        ('y = Einsum <equation = "...ij,jk->...ik"> (x, w)', "float[3,4,5] x", "float[3,4,6] y", {"w": (5, 6)},
         3 * 4 * 5 * 6),
        ("y = Relu(x)", "float[2,4,5,6] x", "float[2,4,5,6] y", {}, 0),
        ("y = Conv(x, w)", "float[N,4,5,6] x", "float[N,8,5,6] y", {"w": (8, 4, 1, 1)}, 8 * 5 * 6 * 4),
    ],
)  # fmt: skip
def test_layers_multiply_as_often_as_their_definition_says(
    body: str, x: str, y: str, weights: dict[str, tuple[int, ...]], expected: int
) -> None:
    assert macs(body, x, y, **weights) == expected
