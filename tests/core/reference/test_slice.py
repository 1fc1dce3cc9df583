"""The reference of slices, held against ONNX Runtime's Slice and Pad, and against a loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.errors import ExecutionError, NetworkError
from dryfit.network.layers.sample_mode import SampleMode
from dryfit.network.layers.slice import Slice
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run

PADS = [(0, 1, 2, 0, 2, 1), (0, 2, 3, 1, 2, 3), (0, -1, 2, 0, 1, -2)]
PAD_MODES = {
    "constant": SampleMode.FILL,
    "edge": SampleMode.CLAMP,
    "reflect": SampleMode.REFLECT,
    "wrap": SampleMode.WRAP,
}


@pytest.mark.parametrize(
    ("start", "shape", "stride"),
    [((0, 1, 0), (2, 2, 3), (1, 1, 1)), ((1, 2, 4), (1, 2, 3), (1, -2, -2)), ((0, 0, 0), (2, 0, 5), (1, 1, 1))],
)
def test_a_window_agrees_with_onnx_runtime_and_is_a_view(start, shape, stride):
    x = random_array((2, 3, 5))
    last = [s + n * t for s, n, t in zip(start, shape, stride, strict=True)]
    ends = [e if e >= 0 else -(10**6) for e in last]
    (expected,) = onnx_runtime("Slice", [x, *(np.array(v, np.int64) for v in (start, ends, range(3), stride))])
    (output,) = run(Slice(start=start, shape=shape, stride=stride), x)
    np.testing.assert_array_equal(output, expected)
    assert np.shares_memory(output, x) or not output.size


# With negative pads ONNX crops first and wraps what is left, which no single slice does.
@pytest.mark.parametrize(("mode", "pads"), [(m, p) for m in PAD_MODES for p in PADS if m != "wrap" or min(p) >= 0])
def test_padding_agrees_with_onnx_runtime(mode, pads):
    x = random_array((3, 4, 5))
    value = np.float32(7)
    (expected,) = onnx_runtime("Pad", [x, np.array(pads, np.int64), value if mode == "constant" else None], mode=mode)
    shape = tuple(extent + pads[i] + pads[i + 3] for i, extent in enumerate(x.shape))
    layer = Slice(start=tuple(-p for p in pads[:3]), shape=shape, stride=(1, 1, 1), mode=PAD_MODES[mode])
    fill = np.asarray(value) if mode == "constant" else None
    (output,) = run(layer, x, *([None, None, None, fill] if fill is not None else []))
    np.testing.assert_array_equal(output, expected)


def _element(mode, x, indices):
    place = []
    for position, extent in zip(indices, x.shape, strict=True):
        index = position
        if mode is SampleMode.FILL and not 0 <= index < extent:
            return 0
        if mode is SampleMode.CLAMP:
            index = min(max(index, 0), extent - 1)
        while mode is SampleMode.WRAP and not 0 <= index < extent:
            index += extent if index < 0 else -extent
        while mode is SampleMode.REFLECT and not 0 <= index < extent:
            index = -index if index < 0 else 2 * (extent - 1) - index
            index = 0 if extent == 1 else index
        place.append(index)
    return x[tuple(place)]


@given(
    st.sampled_from([SampleMode.FILL, SampleMode.CLAMP, SampleMode.WRAP, SampleMode.REFLECT]),
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(-9, 9), st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=2
    ),
)
def test_every_window_is_what_a_loop_finds(mode, axes):
    extents, start, shape, stride = zip(*axes, strict=True)
    x = random_array(extents)
    (output,) = run(Slice(start=start, shape=shape, stride=stride, mode=mode), x)
    expected = np.zeros(shape, np.float32)
    for index in np.ndindex(*shape):
        expected[index] = _element(mode, x, [s + i * t for s, i, t in zip(start, index, stride, strict=True)])
    np.testing.assert_array_equal(output, expected)


def test_bounds_and_axes_may_come_as_inputs():
    x = random_array((2, 3, 5))
    bounds = [np.array(v, np.int32) for v in ((1, 3), (2, 2), (1, -2))]
    output = evaluate(Slice(), [x, *bounds, None, np.array([1, -1])])[0]
    np.testing.assert_array_equal(output, x[:, 1:3, 3:0:-2])


def test_a_stride_of_zero_repeats_an_element():
    x = random_array((1, 3))
    (output,) = run(Slice(start=(0, 0), shape=(4, 3), stride=(0, 1)), x)
    np.testing.assert_array_equal(output, np.broadcast_to(x, (4, 3)))


def test_strict_bounds_are_checked_when_they_come_at_run_time():
    with pytest.raises(NetworkError, match="elements 2 to 4; allowed: 0 to 2"):
        evaluate(Slice(), [random_array((3,)), np.array([2]), np.array([3]), np.array([1])])


def test_an_empty_axis_cannot_be_extended():
    with pytest.raises(ExecutionError, match="without elements"):
        evaluate(Slice(start=(0,), shape=(2,), stride=(1,), mode=SampleMode.CLAMP), [random_array((0,))])
