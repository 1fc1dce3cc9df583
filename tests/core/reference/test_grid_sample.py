import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.network.layers.resize import GridSample, InterpolationMode
from dryfit.network.layers.slice import SampleMode

from .oracle import onnx_runtime, random_array, run

ONNX_MODE = {"NEAREST": "nearest", "LINEAR": "linear", "CUBIC": "cubic"}
ONNX_PADDING = {SampleMode.FILL: "zeros", SampleMode.CLAMP: "border", SampleMode.REFLECT: "reflection"}


@given(
    extents=st.tuples(*[st.integers(2, 5)] * 4),
    mode=st.sampled_from(InterpolationMode),
    padding=st.sampled_from(sorted(ONNX_PADDING, key=str)),
    aligned=st.booleans(),
)
def test_pictures_agree_with_onnx_runtime(extents, mode, padding, aligned):
    x = random_array((2, 3, *extents[:2]))
    grid = random_array((2, *extents[2:], 2), seed=1)
    layer = GridSample(interpolation_mode=mode, sample_mode=padding, align_corners=aligned)
    (expected,) = onnx_runtime(
        "GridSample",
        [x, grid],
        mode=ONNX_MODE[mode.name],
        padding_mode=ONNX_PADDING[padding],
        align_corners=int(aligned),
    )
    np.testing.assert_allclose(run(layer, x, grid)[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", [InterpolationMode.NEAREST, InterpolationMode.LINEAR])
@pytest.mark.parametrize("padding", ONNX_PADDING)
@pytest.mark.parametrize("aligned", [True, False])
def test_volumes_agree_with_onnx_runtime(mode, padding, aligned):
    x, grid = random_array((1, 2, 3, 4, 5)), random_array((1, 2, 3, 4, 3), seed=1)
    layer = GridSample(interpolation_mode=mode, sample_mode=padding, align_corners=aligned)
    (expected,) = onnx_runtime(
        "GridSample",
        [x, grid],
        mode=ONNX_MODE[mode.name],
        padding_mode=ONNX_PADDING[padding],
        align_corners=int(aligned),
    )
    np.testing.assert_allclose(run(layer, x, grid)[0], expected, rtol=1e-3, atol=1e-4)


def test_the_identity_grid_gives_the_input_back():
    x = random_array((1, 2, 3, 4))
    rows, columns = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    grid = np.stack([columns, rows], axis=-1)[None].astype(np.float32)
    for mode in InterpolationMode:
        (y,) = run(GridSample(interpolation_mode=mode, align_corners=True), x, grid)
        np.testing.assert_allclose(y, x, atol=1e-6)


def test_a_nan_in_the_grid_gives_nothing_of_the_input_away():
    x, grid = random_array((1, 1, 2, 2)), np.full((1, 1, 1, 2), np.nan, np.float32)
    for mode in InterpolationMode:
        (y,) = run(GridSample(interpolation_mode=mode), x, grid)
        assert y.item() == 0 or np.isnan(y.item())
