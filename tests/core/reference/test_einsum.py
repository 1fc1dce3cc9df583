import numpy as np
import pytest

from dryfit.network.layers.einsum import Einsum

from .oracle import onnx_runtime, random_array, run

CASES = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("bij, bjk -> bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij->ji", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ij->", [(2, 3)]),
    ("i,i", [(4,), (4,)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (1, 6, 4, 5)]),
    ("b...,b...->...", [(2, 3, 4), (2, 3, 4)]),
    ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)]),
    ("i,j,k->ijk", [(2,), (3,), (4,)]),
    ("Ab,bA->A", [(2, 3), (3, 2)]),
]


@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_it_agrees_with_onnx_runtime(equation, shapes):
    inputs = [random_array(shape, seed=seed) for seed, shape in enumerate(shapes)]
    (expected,) = onnx_runtime("Einsum", inputs, equation=equation)
    np.testing.assert_allclose(run(Einsum(equation=equation), *inputs)[0], expected, rtol=1e-5, atol=1e-5)


def test_ellipses_of_unequal_rank_broadcast_as_matrix_products_do():
    x, y = random_array((2, 3, 4)), random_array((4, 5), seed=1)
    np.testing.assert_allclose(run(Einsum(equation="...ij,...jk->...ik"), x, y)[0], x @ y, rtol=1e-5, atol=1e-6)


def test_fp16_sums_in_fp32_and_rounds_once():
    x = np.full((4096,), 1, np.float16)
    assert run(Einsum(equation="i,i->"), x, x)[0].item() == 4096
