import numpy as np
import pytest

from dryfit.network.layers.scale import Scale, ScaleMode

from .oracle import onnx_runtime, random_array, run


def test_one_coefficient_a_channel_agrees_with_batch_normalization_of_onnx_runtime():
    x = random_array((2, 3, 4, 5))
    gamma, beta, mean = (random_array((3,), seed=seed) for seed in (1, 2, 3))
    variance = np.abs(random_array((3,), seed=4)) + 0.5
    (expected,) = onnx_runtime("BatchNormalization", [x, gamma, beta, mean, variance], epsilon=1e-3)
    factor = gamma / np.sqrt(variance + 1e-3)
    (y,) = run(Scale(mode=ScaleMode.CHANNEL, scale=factor, shift=beta - mean * factor), x)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "axis", "shape"),
    [
        (ScaleMode.UNIFORM, 1, (1, 1, 1)),
        (ScaleMode.CHANNEL, 0, (2, 1, 1)),
        (ScaleMode.CHANNEL, 2, (1, 1, 4)),
        (ScaleMode.ELEMENTWISE, 1, (1, 3, 4)),
        (ScaleMode.ELEMENTWISE, 0, (2, 3, 4)),
    ],
)
def test_coefficients_are_spread_as_the_mode_has_it(mode, axis, shape):
    x = np.abs(random_array((2, 3, 4)))
    scale, shift, power = (np.abs(random_array(shape, seed=seed)) for seed in (1, 2, 3))
    layer = Scale(mode=mode, channel_axis=axis, scale=scale.ravel(), shift=shift.ravel(), power=power.ravel())
    np.testing.assert_allclose(run(layer, x)[0], (x * scale + shift) ** power, rtol=1e-5)


@pytest.mark.parametrize("absent", [None, np.zeros(0, np.float32)])
def test_absent_coefficients_change_nothing(absent):
    x = random_array((1, 2, 2))
    np.testing.assert_array_equal(run(Scale(mode=ScaleMode.CHANNEL, scale=absent, shift=absent, power=absent), x)[0], x)


def test_fp16_rounds_the_scale_and_not_the_shift():
    x = np.ones((1, 1, 1), np.float16)
    layer = Scale(mode=ScaleMode.UNIFORM, scale=np.array([-2049.0]), shift=np.array([2049.25]))
    assert run(layer, x)[0].item() == 1.25  # -2049 is -2048 in FP16
