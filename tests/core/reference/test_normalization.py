"""The references of normalization, LRN and softmax layers, held against ONNX Runtime and formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Lrn, Normalization, Softmax
from dryfit.network.layers.shape_inference import mask_of

from .oracle import onnx_runtime, random_array, run


def per_channel(shape, rank, *, seed):
    return random_array(shape, seed=seed).reshape(1, -1, *(1,) * (rank - 2))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7), (1, 2, 3, 4, 5)])
def test_instance_normalization_agrees_with_onnx_runtime(shape):
    x, rank = random_array(shape), len(shape)
    scale, bias = per_channel((shape[1],), rank, seed=1), per_channel((shape[1],), rank, seed=2)
    (expected,) = onnx_runtime("InstanceNormalization", [x, scale.ravel(), bias.ravel()], epsilon=1e-3)
    (y,) = run(Normalization(axes=mask_of(range(2, rank)), epsilon=1e-3), x, scale, bias)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_normalization_with_one_scale_a_channel_agrees_with_onnx_runtime(groups):
    x = random_array((2, 6, 3, 4))
    scale, bias = per_channel((6,), 4, seed=1), per_channel((6,), 4, seed=2)
    (expected,) = onnx_runtime("GroupNormalization", [x, scale.ravel(), bias.ravel()], num_groups=groups, epsilon=1e-3)
    # One group is one mean over all channels, so the channels are an axis of it.
    axes = mask_of((1, 2, 3) if groups == 1 else (2, 3))
    (y,) = run(Normalization(axes=axes, num_groups=groups, epsilon=1e-3), x, scale, bias)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_group_normalization_with_one_scale_a_group_agrees_with_onnx_runtime():
    x = random_array((2, 6, 3, 4))
    scale, bias = per_channel((2,), 4, seed=1), per_channel((2,), 4, seed=2)
    (expected,) = onnx_runtime("GroupNormalization", [x, scale.ravel(), bias.ravel()], num_groups=2, opset=18)
    (y,) = run(Normalization(axes=mask_of((2, 3)), num_groups=2), x, scale, bias)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("has_bias", [True, False])
def test_layer_normalization_agrees_with_onnx_runtime(axis, has_bias):
    x = random_array((2, 3, 4, 5))
    scale = random_array((1,) * axis + x.shape[axis:], seed=1)
    bias = random_array(scale.shape, seed=2) if has_bias else None
    flat = [None if factor is None else factor.reshape(x.shape[axis:]) for factor in (scale, bias)]
    (expected,) = onnx_runtime("LayerNormalization", [x, *flat], axis=axis)
    (y,) = run(Normalization(axes=mask_of(range(axis, 4))), x, scale, bias)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_the_compute_precision_is_the_one_of_mean_and_variance():
    # In FP32 the spread of 1e-3 around 1e6 is lost; FP64 keeps it.
    x = 1e6 + np.array([[-1e-3, 1e-3]])
    assert DataType.from_numpy(x.dtype) is DataType.DOUBLE
    in_fp64 = run(Normalization(axes=2, epsilon=0, compute_precision=DataType.DOUBLE), x)[0]
    np.testing.assert_allclose(in_fp64, [[-1, 1]], rtol=1e-6)
    in_fp32 = run(Normalization(axes=2, epsilon=1e-12), x)[0]
    assert in_fp32.tolist() == [[0, 0]]


def test_fp16_agrees_with_onnx_runtime():
    x, scale, bias = (random_array(shape, np.float16, seed=1) for shape in ((4, 64), (1, 64), (1, 64)))
    (expected,) = onnx_runtime("LayerNormalization", [x, scale[0], bias[0]], axis=1, stash_type=int(TensorProto.FLOAT))
    (y,) = run(Normalization(axes=2), x, scale, bias)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, expected, rtol=2e-3, atol=2e-3)


@given(window=st.integers(0, 4).map(lambda n: 2 * n + 1), channels=st.integers(1, 8), rank=st.integers(3, 4))
def test_lrn_agrees_with_onnx_runtime(window, channels, rank):
    x = random_array((2, channels, 3, 2))
    (expected,) = onnx_runtime("LRN", [x], size=window, alpha=0.5, beta=0.75, bias=2.0)
    shape = x.shape if rank == 4 else (2, channels, 6)
    (y,) = run(Lrn(window_size=window, alpha=0.5, beta=0.75, k=2.0), x.reshape(shape))
    np.testing.assert_allclose(y.reshape(x.shape), expected, rtol=1e-5)


def test_an_even_window_has_one_channel_more_behind():
    x = np.array([1, 2, 4], np.float32).reshape(1, 3, 1, 1)
    (y,) = run(Lrn(window_size=2, alpha=2.0, beta=1.0, k=0.0), x)
    np.testing.assert_allclose(y.ravel(), [1 / 5, 2 / 20, 4 / 16], rtol=1e-6)


def test_fp16_squares_do_not_overflow():
    x = np.full((1, 1, 1, 1), 1000, np.float16)
    (y,) = run(Lrn(window_size=1, alpha=1.0, beta=0.5, k=0.0), x)
    assert y.item() == 1.0


def test_a_window_far_wider_than_the_channels_takes_them_all():
    x = np.array([1, 2, 4], np.float32).reshape(1, 3, 1, 1)
    (y,) = run(Lrn(window_size=2**31 + 1, alpha=float(2**31 + 1), beta=1.0, k=0.0), x)
    np.testing.assert_allclose(y.ravel(), [1 / 21, 2 / 21, 4 / 21], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_softmax_agrees_with_onnx_runtime(axis):
    x = random_array((2, 3, 4, 5)) * 10
    (expected,) = onnx_runtime("Softmax", [x], axis=axis)
    np.testing.assert_allclose(run(Softmax(axes=1 << axis), x)[0], expected, rtol=1e-5, atol=1e-7)


def test_large_numbers_do_not_overflow():
    x = np.array([[1e30, 1e30, 0]], np.float32)
    assert run(Softmax(axes=2), x)[0].tolist() == [[0.5, 0.5, 0]]


def test_fp16_is_rounded_once():
    x = random_array((4, 100), np.float16)
    (expected,) = onnx_runtime("Softmax", [x.astype(np.float32)], axis=1)
    np.testing.assert_allclose(run(Softmax(axes=2), x)[0], expected.astype(np.float16), rtol=1e-3)


def test_nothing_stays_nothing():
    assert run(Softmax(axes=2), np.zeros((3, 0), np.float32))[0].shape == (3, 0)
