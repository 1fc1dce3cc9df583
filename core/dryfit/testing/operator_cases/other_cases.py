"""Trial cases of the operators without weights: all codes, all pairs of codes, windows and images."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType, ParametricRelu
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.layers.movement import Concatenation, Identity
from dryfit.network.layers.normalization import Softmax, VectorFunction, VectorFunctionLayer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize, ResizeCoordinateTransformation
from dryfit.network.layers.window_layer import PaddingMode, Pooling, PoolingType
from dryfit.testing.operator_cases.drawn_grids import (
    Grid,
    all_codes,
    all_pairs,
    drawn_grid,
    drawn_pair,
    drawn_zero_point,
    tie_seeking_numbers,
    tie_seeking_sigmoid_scale,
)
from dryfit.testing.operator_cases.habits import NONE, CaseTrial
from dryfit.testing.operator_cases.operator_case import OperatorCase, case_of

Array = np.ndarray[Any, Any]
_TIED_SUMS = 0.4
_ALPHAS = (0.01, 0.1, 0.125, 0.5)


def _grids(trial: CaseTrial, operator: str, dtype: DataType) -> tuple[Grid, Grid]:
    """Grids of input and output as the library takes them."""
    x, y = drawn_pair(trial.random, dtype, dtype)
    if operator in trial.habits.fixed_grid:
        return x, (np.float32(1 / 256), int(np.iinfo(dtype.numpy).min))
    return (x, x) if operator in trial.habits.one_grid else (x, y)


def _codes(trial: CaseTrial, dtype: DataType, shape: Sequence[int], zero_point: int, spread: int) -> Array:
    """Codes within a distance of the zero point, so that sums lie on ties now and then."""
    limits = np.iinfo(dtype.numpy)
    codes = zero_point + trial.random.integers(-spread, spread + 1, tuple(shape))
    return np.clip(codes, limits.min, limits.max).astype(dtype.numpy)


def relu_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """ReLU and the clip to 0 and 6, of all codes."""
    for dtype, _ in itertools.product(trial.habits.types, range(trial.count)):
        for layer in (
            Activation(activation_type=ActivationType.RELU),
            Activation(activation_type=ActivationType.CLIP, alpha=0.0, beta=6.0),
        ):
            x, y = _grids(trial, "relu", dtype)
            yield case_of(layer, [all_codes(dtype.numpy)], [x], y)


def leaky_relu_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes, with four slopes in turn."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        layer = Activation(activation_type=ActivationType.LEAKY_RELU, alpha=_ALPHAS[index % len(_ALPHAS)])
        x, y = _grids(trial, "leaky_relu", dtype)
        yield case_of(layer, [all_codes(dtype.numpy)], [x], y)


def sigmoid_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes, with scales by which one is next to a tie."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        (_, zero_point), y = _grids(trial, "sigmoid", dtype)
        if index % 4:
            y = (np.float32(1 / 256), int(np.iinfo(dtype.numpy).min))
        x = (tie_seeking_sigmoid_scale(trial.random), zero_point)
        yield case_of(Activation(activation_type=ActivationType.SIGMOID), [all_codes(dtype.numpy)], [x], y)


def quantize_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of numbers next to half codes, and of others."""
    for dtype, _ in itertools.product(trial.habits.types, range(trial.count)):
        grid = drawn_grid(trial.random, dtype)
        others = trial.random.normal(0, 60, 64).astype(np.float32) * grid[0]
        numbers = np.concatenate([tie_seeking_numbers(grid[0]), others]).astype(np.float32)
        yield case_of(Quantize(to_type=dtype), [numbers], [None], grid, dtype)


def dequantize_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes."""
    for dtype, _ in itertools.product(trial.habits.types, range(trial.count)):
        yield case_of(Dequantize(), [all_codes(dtype.numpy)], [drawn_grid(trial.random, dtype)], None)


def requantize_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes, to every type."""
    for dtype, to_type, _ in itertools.product(trial.habits.types, trial.habits.types, range(trial.count)):
        x, y = drawn_pair(trial.random, dtype, to_type)
        yield case_of(Identity(), [all_codes(dtype.numpy)], [x], y, to_type)


def _sum_grids(trial: CaseTrial, dtype: DataType) -> tuple[Grid, Grid, Grid]:
    """Grids of two operands and of their sum; some in ratios of powers of two, so that ties occur."""
    a, y = drawn_pair(trial.random, dtype, dtype, (2**-4, 2**1))
    b = (np.float32(a[0] * np.float32(np.exp2(trial.random.uniform(-2, 2)))), drawn_zero_point(trial.random, dtype))
    if trial.random.random() < _TIED_SUMS:
        b = (np.float32(a[0] * np.exp2(trial.random.integers(-2, 3))), b[1])
        y = (np.float32(a[0] * np.exp2(trial.random.integers(-1, 4))), y[1])
    return a, b, y


def eltwise_sum_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all pairs of codes, or of one code in seven with every code."""
    for dtype, _ in itertools.product(trial.habits.types, range(trial.count)):
        a, b, y = _sum_grids(trial, dtype)
        first, second = all_pairs(dtype.numpy)
        if not trial.is_exhaustive:
            first, second = first[::7, ::5], second[::7, ::5]
        limits = trial.habits.limits[int(trial.random.integers(len(trial.habits.limits)))]
        layer = Elementwise(op=ElementWiseOperation.SUM)
        shape = (1, 1, *first.shape)
        yield case_of(layer, [first.reshape(shape), second.reshape(shape)], [a, b], y, limits=limits)


def _pair_cases(
    trial: CaseTrial, operations: Sequence[ElementWiseOperation], *, is_one_grid: bool = False
) -> Iterator[OperatorCase]:
    """Of all pairs of codes, or of one code in seven with one in five."""
    for operation, dtype, _ in itertools.product(operations, trial.habits.types, range(trial.count)):
        a, b, y = _sum_grids(trial, dtype)
        first, second = all_pairs(dtype.numpy)
        if not trial.is_exhaustive:
            first, second = first[::7, ::5], second[::7, ::5]
        shape = (1, 1, *first.shape)
        grids, output = ([y, y], y) if is_one_grid else ([a, b], y)
        limits = trial.habits.limits[int(trial.random.integers(len(trial.habits.limits)))]
        limits = NONE if is_one_grid else limits
        yield case_of(
            Elementwise(op=operation), [first.reshape(shape), second.reshape(shape)], grids, output, limits=limits
        )


def eltwise_difference_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """As those of sums."""
    yield from _pair_cases(trial, [ElementWiseOperation.SUB])


def eltwise_product_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """As those of sums."""
    yield from _pair_cases(trial, [ElementWiseOperation.PROD])


def eltwise_extreme_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of one grid."""
    yield from _pair_cases(trial, [ElementWiseOperation.MAX, ElementWiseOperation.MIN], is_one_grid=True)


def eltwise_quotient_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """As those of sums, without divisors of 0."""
    for case in _pair_cases(trial, [ElementWiseOperation.DIV]):
        first, second = (np.asarray(array) for array in case.inputs)
        zero_point = int(np.asarray(case.layer.zero_points[1]))
        other = zero_point + (1 if zero_point < np.iinfo(second.dtype).max else -1)
        yield attrs.evolve(case, inputs=(first, np.where(second == zero_point, other, second).astype(second.dtype)))


def eltwise_squared_difference_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all pairs of INT8 codes, with scales by which most squares are codes."""
    for _ in range(trial.count if DataType.INT8 in trial.habits.types else 0):
        a, b, y = _sum_grids(trial, DataType.INT8)
        first, second = all_pairs(np.int8)
        if not trial.is_exhaustive:
            first, second = first[::7, ::5], second[::7, ::5]
        scale = np.float32(max(a[0], b[0]) ** 2 * np.exp2(trial.random.uniform(5, 9)))
        layer = Elementwise(op=ElementWiseOperation.SQUARED_DIFFERENCE)
        inputs = [first[None, None], second[None, None]]
        yield case_of(layer, inputs, [a, b], (scale, y[1]))


_COMPARISONS = (
    ElementWiseOperation.EQUAL,
    ElementWiseOperation.GREATER,
    ElementWiseOperation.GREATER_EQUAL,
    ElementWiseOperation.LESS,
    ElementWiseOperation.LESS_EQUAL,
)


def comparison_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all pairs of codes; scales in ratios of powers of two, by which many are equal."""
    for operation, dtype, index in itertools.product(_COMPARISONS, trial.habits.types, range(trial.count)):
        a, b = drawn_grid(trial.random, dtype), drawn_grid(trial.random, dtype)
        if index % 2 == 0:
            b = (np.float32(a[0] * np.exp2(trial.random.integers(-2, 3))), b[1])
        first, second = all_pairs(dtype.numpy)
        if not trial.is_exhaustive:
            first, second = first[::7, ::5], second[::7, ::5]
        inputs = [first[None, None], second[None, None]]
        yield case_of(Elementwise(op=operation), inputs, [a, b], None, to_type=DataType.BOOL)


def _vector_cases(trial: CaseTrial, function: VectorFunction, grids: Mapping[DataType, Grid]) -> Iterator[OperatorCase]:
    """Rows of several lengths, narrow and wide."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        x, length = drawn_grid(trial.random, dtype), (5, 10, 33, 100)[index % 4]
        codes = _codes(trial, dtype, (1000 // length, length), x[1], 127 if index % 2 else 6)
        yield case_of(VectorFunctionLayer(function=function, axes=0b10), [codes], [x], grids[dtype])


def l2_normalization_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """With the output's grid as TensorFlow Lite has it."""
    grids = {DataType.INT8: (np.float32(1 / 128), 0), DataType.UINT8: (np.float32(1 / 128), 128)}
    yield from _vector_cases(trial, VectorFunction.L2_NORMALIZATION, grids)


def log_softmax_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """With the output's grid as TensorFlow Lite has it."""
    grids = {DataType.INT8: (np.float32(1 / 16), 127), DataType.UINT8: (np.float32(1 / 16), 255)}
    yield from _vector_cases(trial, VectorFunction.LOG_SOFTMAX, grids)


def more_function_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes: GELU by its approximation, and RSQRT and NEG of INT8."""
    for dtype, _ in itertools.product(trial.habits.types, range(trial.count)):
        x, y = drawn_grid(trial.random, dtype), drawn_grid(trial.random, dtype)
        yield case_of(Activation(activation_type=ActivationType.GELU_TANH), [all_codes(dtype.numpy)], [x], y)
    for operation, _ in itertools.product((UnaryOperation.RSQRT, UnaryOperation.NEG), range(trial.count)):
        x, y = drawn_grid(trial.random, DataType.INT8), drawn_grid(trial.random, DataType.INT8)
        x = (x[0], -128) if operation is UnaryOperation.RSQRT else x
        yield case_of(Unary(op=operation), [all_codes(np.int8)], [x], y)


_SAFE_FUNCTIONS = (ActivationType.TANH, ActivationType.GELU_ERF, ActivationType.HARD_SWISH)
_OF_POSITIVE = (UnaryOperation.LOG, UnaryOperation.SQRT)


def function_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes: activations, then functions that some libraries have for INT8 only."""
    for kind, dtype, _ in itertools.product(_SAFE_FUNCTIONS, trial.habits.types, range(trial.count)):
        x, y = drawn_grid(trial.random, dtype), drawn_grid(trial.random, dtype)
        if kind is ActivationType.TANH:
            y = (np.float32(1 / 128), 0 if dtype is DataType.INT8 else 128)
        yield case_of(Activation(activation_type=kind), [all_codes(dtype.numpy)], [x], y)
    if DataType.INT8 not in trial.habits.types:
        return
    for operation, _ in itertools.product((UnaryOperation.EXP, UnaryOperation.ABS, *_OF_POSITIVE), range(trial.count)):
        x, y = drawn_grid(trial.random, DataType.INT8), drawn_grid(trial.random, DataType.INT8)
        if operation in _OF_POSITIVE:
            x = (x[0], -128)
        yield case_of(Unary(op=operation), [all_codes(np.int8)], [x], y)


def parametric_relu_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes, with a slope for each channel."""
    for dtype, _ in itertools.product(trial.habits.types, range(trial.count)):
        a, b, y = _sum_grids(trial, dtype)
        channels = 6
        x = np.broadcast_to(all_codes(dtype.numpy).reshape(1, 1, 16, 16), (1, channels, 16, 16)).copy()
        slopes = _codes(trial, dtype, (1, channels, 1, 1), b[1], 90)
        yield case_of(ParametricRelu(), [x, slopes], [a, b], y)


def reduce_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Extremes over the last two axes or all but the first."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        x = drawn_grid(trial.random, dtype)
        operation = ReduceOperation.MAX if index % 2 else ReduceOperation.MIN
        layer = Reduce(op=operation, axes=0b1100 if index % 3 else 0b1110, keep_dims=bool(index % 2))
        yield case_of(layer, [_codes(trial, dtype, (2, 5, 4, 3), x[1], 100)], [x], x)


def bias_add_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes, with a constant a channel, on either side."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        a, b, y = _sum_grids(trial, dtype)
        channels = 6
        x = np.broadcast_to(all_codes(dtype.numpy).reshape(1, 1, 16, 16), (1, channels, 16, 16)).copy()
        bias = _codes(trial, dtype, (1, channels, 1, 1), b[1], 90)
        inputs, grids = ([x, bias], [a, b]) if index % 2 == 0 else ([bias, x], [b, a])
        yield case_of(Elementwise(op=ElementWiseOperation.SUM), inputs, grids, y)


def concat_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Of all codes: of one grid, and where the library takes them of three."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        must_equal = dtype is DataType.INT8 and "concat_int8" in trial.habits.one_grid
        y = drawn_grid(trial.random, dtype)
        others = [drawn_pair(trial.random, dtype, dtype)[0] for _ in range(2)]
        grids = [y, y] if must_equal or index % 3 == 2 else [y, *others]
        inputs = [np.roll(all_codes(dtype.numpy), 7 * at).reshape(1, 16, 4, 4) for at in range(len(grids))]
        yield case_of(Concatenation(axis=1), inputs, grids, y)


def average_pool_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Windows of several extents, with the paddings that the library takes."""
    windows = ((2, 2), (3, 3), (2, 3), (4, 4))
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        x, y = _grids(trial, "average_pool", dtype)
        window = windows[index % len(windows)]
        counts_padding = index % 2 if trial.habits.counts_padding is None else trial.habits.counts_padding
        layer = Pooling(
            pooling_type=PoolingType.AVERAGE,
            window_size_nd=window,
            stride_nd=(1 + index % 2, 1 + index // 2 % 2),
            average_count_excludes_padding=not counts_padding,
        )
        if index % 3:
            if trial.habits.explicit_padding:
                layer.padding_nd = (1, 1)
            else:
                layer.padding_mode = PaddingMode.SAME_UPPER
        codes = _codes(trial, dtype, (1, 9, 9, 7), x[1], 127 if index % 2 else 9)
        yield case_of(layer, [codes], [x], y)


def global_average_pool_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Means of images of several extents."""
    extents = ((7, 7), (4, 4), (3, 5), (8, 8))
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        x, y = drawn_pair(trial.random, dtype, dtype)
        codes = _codes(trial, dtype, (1, 37, *extents[index % len(extents)]), x[1], 127 if index % 2 else 9)
        layer = Reduce(op=ReduceOperation.AVG, axes=0b1100, keep_dims=True)
        yield case_of(layer, [codes], [x], y)


def mean_over_axes_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Means over other axes than all spatial ones."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        x, y = drawn_pair(trial.random, dtype, dtype)
        codes = _codes(trial, dtype, (2, 5, 6, 7), x[1], 127 if index % 2 else 9)
        layer = Reduce(op=ReduceOperation.AVG, axes=(0b1000, 0b0010, 0b1110)[index % 3], keep_dims=bool(index % 2))
        yield case_of(layer, [codes], [x], y)


def clip_to_one_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Clips from -1 or 0 to 1, of all codes."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        layer = Activation(activation_type=ActivationType.CLIP, alpha=float(-(index % 2)), beta=1.0)
        x, y = _grids(trial, "relu", dtype)
        yield case_of(layer, [all_codes(dtype.numpy)], [x], y)


def softmax_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Rows of several lengths, narrow and wide; and pairs, with scales by which one is next to a tie."""
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        x, y = _grids(trial, "softmax", dtype)
        if "softmax" not in trial.habits.fixed_grid:
            y = (np.float32(1 / (255 + index % 2)), int(np.iinfo(dtype.numpy).min))
        length = (5, 10, 33, 100)[index % 4]
        codes = _codes(trial, dtype, (1000 // length, length), x[1], 127 if index % 2 else 30)
        yield case_of(Softmax(axes=0b10), [codes], [x], y)
        lowest, highest = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
        pairs = np.stack([np.full(120, highest), np.arange(highest - 120, highest)], axis=-1).astype(dtype.numpy)
        if "softmax" not in trial.habits.fixed_grid:
            y = (np.float32(1 / 256), int(lowest))
        yield case_of(Softmax(axes=0b10), [pairs], [(tie_seeking_sigmoid_scale(trial.random), x[1])], y)


def resize_bilinear_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Images made larger and smaller, by the three ways to place them."""
    places = (
        ResizeCoordinateTransformation.ASYMMETRIC,
        ResizeCoordinateTransformation.HALF_PIXEL,
        ResizeCoordinateTransformation.ALIGN_CORNERS,
    )
    extents = ((5, 6, 10, 12), (5, 6, 3, 4), (4, 7, 9, 5), (3, 3, 8, 7))
    for dtype, index in itertools.product(trial.habits.types, range(trial.count)):
        x, _ = _grids(trial, "resize_bilinear", dtype)
        height, width, *to = extents[index // 3 % len(extents)]
        layer = Resize(
            shape=(1, 5, *to),
            resize_mode=InterpolationMode.LINEAR,
            coordinate_transformation=places[index % len(places)],
        )
        codes = _codes(trial, dtype, (1, 5, height, width), x[1], 127 if index % 2 else 20)
        yield case_of(layer, [codes], [x], x)
