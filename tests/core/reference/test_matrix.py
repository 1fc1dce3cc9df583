"""The references of matrix products and einsum, held against ONNX Runtime and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from dryfit.network.layers.matrix import Einsum, MatrixMultiply, MatrixOperation

from .oracle import onnx_runtime, random_array, run

M = MatrixOperation


@given(
    batch=mutually_broadcastable_shapes(num_shapes=2, min_dims=2, max_dims=2, max_side=3),
    extents=st.tuples(*[st.integers(1, 5)] * 3),
    transposed=st.tuples(st.booleans(), st.booleans()),
)
def test_matrices_agree_with_onnx_runtime(batch, extents, transposed):
    first, second = ((1,) * (2 - len(shape)) + shape for shape in batch.input_shapes)
    rows, inner, columns = extents
    x, y = random_array((*first, rows, inner)), random_array((*second, inner, columns), seed=1)
    (expected,) = onnx_runtime("MatMul", [x, y])
    layer = MatrixMultiply(op0=M.TRANSPOSE if transposed[0] else M.NONE, op1=M.TRANSPOSE if transposed[1] else M.NONE)
    left = x.swapaxes(-1, -2) if transposed[0] else x
    right = y.swapaxes(-1, -2) if transposed[1] else y
    np.testing.assert_allclose(run(layer, left, right)[0], expected, rtol=1e-5, atol=1e-5)


def test_vectors_have_no_axis_in_the_output():
    x, y = random_array((2, 3, 4)), random_array((2, 4), seed=1)
    (y0,) = run(MatrixMultiply(op1=M.VECTOR), x, y)
    np.testing.assert_allclose(y0, np.einsum("bij,bj->bi", x, y), rtol=1e-5)
    (y1,) = run(MatrixMultiply(op0=M.VECTOR, op1=M.TRANSPOSE), y, x)
    np.testing.assert_allclose(y1, np.einsum("bj,bij->bi", y, x), rtol=1e-5)
    (y2,) = run(MatrixMultiply(op0=M.VECTOR, op1=M.VECTOR), y, y)
    np.testing.assert_allclose(y2, (y * y).sum(-1), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_integers_agree_with_onnx_runtime(dtype):
    x, y = random_array((3, 4), dtype), random_array((4, 5), dtype, seed=1)
    np.testing.assert_array_equal(run(MatrixMultiply(), x, y)[0], onnx_runtime("MatMul", [x, y])[0])


def test_fp16_sums_in_fp32_and_rounds_once_for_matrix_multiply():
    x, y = np.full((1, 4096), 1, np.float16), np.full((4096, 1), 1, np.float16)
    assert run(MatrixMultiply(), x, y)[0].item() == 4096  # a sum in FP16 would stop at 2048


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
def test_einsum_agrees_with_onnx_runtime(equation, shapes):
    inputs = [random_array(shape, seed=seed) for seed, shape in enumerate(shapes)]
    (expected,) = onnx_runtime("Einsum", inputs, equation=equation)
    np.testing.assert_allclose(run(Einsum(equation=equation), *inputs)[0], expected, rtol=1e-5, atol=1e-5)


def test_ellipses_of_unequal_rank_broadcast_as_matrix_products_do():
    x, y = random_array((2, 3, 4)), random_array((4, 5), seed=1)
    np.testing.assert_allclose(run(Einsum(equation="...ij,...jk->...ik"), x, y)[0], x @ y, rtol=1e-5, atol=1e-6)


def test_fp16_sums_in_fp32_and_rounds_once_for_einsum():
    x = np.full((4096,), 1, np.float16)
    assert run(Einsum(equation="i,i->"), x, x)[0].item() == 4096
