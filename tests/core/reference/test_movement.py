"""The references of layers that move values, held against ONNX Runtime, numpy and loops."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dryfit.errors import ExecutionError, NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.movement import Concatenation, Identity, Padding, ReverseSequence, Squeeze, Unsqueeze
from dryfit.network.layers.slice import SampleMode, Shuffle, Slice
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, bool])
def test_concatenation_agrees_with_onnx_runtime(axis, dtype):
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    shapes[1][axis] = 1
    shapes[2][axis] = 0
    inputs = [random_array(shape, seed=i).astype(dtype) for i, shape in enumerate(shapes)]
    (expected,) = onnx_runtime("Concat", inputs, axis=axis)
    (output,) = run(Concatenation(axis=axis), *inputs)
    np.testing.assert_array_equal(output, expected)


def test_narrow_types_keep_their_bits():
    a, b = (np.arange(4, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn) for _ in range(2))
    (output,) = run(Concatenation(axis=0), a, b)
    assert output.dtype == a.dtype
    assert output.tobytes() == a.tobytes() + b.tobytes()


def test_identity_is_the_input_and_no_copy():
    x = random_array((2, 3))
    assert run(Identity(), x)[0] is x


@pytest.mark.parametrize(
    ("values", "to_type", "expected"),
    [
        (np.array([True, False]), DataType.HALF, np.array([1, 0], np.float16)),
        (np.array([3, -300], np.int32), DataType.FLOAT, np.array([3, -300], np.float32)),
        (np.array([2.75, -2.75], np.float32), DataType.INT32, np.array([2, -2], np.int32)),
        (np.array([0, 0.5], np.float16), DataType.BOOL, np.array([False, True])),
    ],
)
def test_with_an_output_type_it_is_a_cast(values, to_type, expected):
    layer = Identity()
    layer.set_output_type(0, to_type)
    (y,) = run(layer, values)
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)


PAIRS = st.tuples(st.integers(-2, 2), st.integers(-2, 2))


@given(pre=PAIRS, post=PAIRS)
def test_padding_and_cropping_agree_with_onnx_runtime(pre, post):
    x = random_array((2, 3, 4, 5))
    assume(all(e + a + b > 0 for e, a, b in zip((4, 5), pre, post, strict=True)))
    (expected,) = onnx_runtime("Pad", [x, np.array([0, 0, *pre, 0, 0, *post])])
    np.testing.assert_array_equal(run(Padding(pre_padding_nd=pre, post_padding_nd=post), x)[0], expected)


def test_a_crop_is_a_view():
    x = random_array((1, 4, 4))
    (y,) = run(Padding(pre_padding_nd=(-1, 0), post_padding_nd=(0, -1)), x)
    assert np.shares_memory(x, y)


def test_integers_and_views_are_accepted():
    x = np.arange(6, dtype=np.int8).reshape(2, 3).T
    (y,) = run(Padding(pre_padding_nd=(0, 1), post_padding_nd=(-1, 0)), x)
    assert y.tolist() == [[0, 0, 3], [0, 1, 4]]


@pytest.mark.parametrize(("batch_axis", "sequence_axis"), [(1, 0), (0, 1)])
@pytest.mark.parametrize("rest", [(), (3,)])
def test_reverse_sequence_agrees_with_onnx_runtime(batch_axis, sequence_axis, rest):
    x, lengths = random_array((4, 4, *rest)), np.array([4, 3, 1, 2])
    (expected,) = onnx_runtime("ReverseSequence", [x, lengths], batch_axis=batch_axis, time_axis=sequence_axis)
    (output,) = run(ReverseSequence(batch_axis=batch_axis, sequence_axis=sequence_axis), x, lengths)
    np.testing.assert_array_equal(output, expected)


def test_axes_may_lie_anywhere():
    x = random_array((2, 3, 4))
    (output,) = run(ReverseSequence(batch_axis=2, sequence_axis=1), x, np.array([3, 2, 0, 1]))
    np.testing.assert_array_equal(output[:, :, 0], x[:, ::-1, 0])
    np.testing.assert_array_equal(output[:, :, 1], x[:, [1, 0, 2], 1])
    np.testing.assert_array_equal(output[:, :, 2:], x[:, :, 2:])


def test_a_length_past_the_end_is_refused():
    with pytest.raises(ExecutionError, match="allowed: 0 to 2"):
        evaluate(ReverseSequence(), [random_array((2, 2)), np.array([1, 3])])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
def test_a_transpose_agrees_with_onnx_runtime_and_is_a_view(order):
    x = random_array((2, 3, 4))
    (expected,) = onnx_runtime("Transpose", [x], perm=order)
    (output,) = run(Shuffle(first_transpose=order), x)
    np.testing.assert_array_equal(output, expected)
    assert np.shares_memory(output, x)


@pytest.mark.parametrize(
    ("shape", "dims", "zero_is_placeholder"),
    [
        ((2, 3, 4), (0, -1), True),
        ((2, 3, 4), (4, 0, 2), True),
        ((0, 3), (3, 0), False),
        ((1,), (), True),
    ],
)
def test_a_reshape_agrees_with_onnx_runtime(shape, dims, zero_is_placeholder):
    x = random_array(shape)
    (expected,) = onnx_runtime("Reshape", [x, np.array(dims, np.int64)], allowzero=int(not zero_is_placeholder))
    (output,) = run(Shuffle(reshape_dims=dims, zero_is_placeholder=zero_is_placeholder), x)
    np.testing.assert_array_equal(output, expected)
    dynamic = evaluate(Shuffle(zero_is_placeholder=zero_is_placeholder), [x, np.array(dims, np.int64)])[0]
    np.testing.assert_array_equal(dynamic, expected)


@given(st.permutations(range(4)), st.permutations(range(3)), st.sampled_from([(0, -1, 2), (4, 0, -1), (-1, 1, 2)]))
def test_the_three_steps_follow_each_other(first, second, dims):
    x = random_array((2, 4, 4, 2))
    middle = x.transpose(first)
    sizes = [middle.shape[axis] if dim == 0 else dim for axis, dim in enumerate(dims)]
    layer = Shuffle(first_transpose=tuple(first), reshape_dims=dims, second_transpose=tuple(second))
    np.testing.assert_array_equal(evaluate(layer, [x])[0], middle.reshape(sizes).transpose(second))


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
    with pytest.raises(ExecutionError, match="An empty axis cannot be extended"):
        evaluate(Slice(start=(0,), shape=(2,), stride=(1,), mode=SampleMode.CLAMP), [random_array((0,))])


@pytest.mark.parametrize("axes", [[0], [2], [0, 2], [-3], []])
def test_squeeze_agrees_with_onnx_runtime_and_is_a_view(axes):
    x, axes = random_array((1, 3, 1, 2)), np.array(axes, np.int64)
    if axes.size and axes[0] == -3:
        x = x.transpose(1, 0, 2, 3)
    (expected,) = onnx_runtime("Squeeze", [x, axes]) if axes.size else (x,)
    (output,) = run(Squeeze(), x, axes, dynamic=False)
    np.testing.assert_array_equal(output, expected)
    assert np.shares_memory(output, x)


@pytest.mark.parametrize("axes", [[0], [2], [0, 3], [-1], [4, 0, -2]])
def test_unsqueeze_agrees_with_onnx_runtime_and_is_a_view(axes):
    x, axes = random_array((2, 3)), np.array(axes, np.int64)
    (expected,) = onnx_runtime("Unsqueeze", [x, axes])
    (output,) = run(Unsqueeze(), x, axes, dynamic=False)
    np.testing.assert_array_equal(output, expected)
    assert np.shares_memory(output, x)
