"""Trial cases of INT16 activations with weights of INT8: drawn codes, zero points of 0, biases that seek ties."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.layers.matrix import MatrixMultiply
from dryfit.network.layers.movement import Concatenation, Identity
from dryfit.network.layers.normalization import Softmax
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize
from dryfit.network.layers.window_layer import PaddingMode, Pooling, PoolingType
from dryfit.testing.operator_cases.drawn_grids import Grid, drawn_scale
from dryfit.testing.operator_cases.habits import NONE, RELU, RELU6, CaseTrial
from dryfit.testing.operator_cases.operator_case import OperatorCase, case_of

Array = np.ndarray[Any, Any]
_LARGEST = 2**15 - 1
_OF_32768THS: Grid = (np.float32(2.0**-15), 0)
_BIASES = {np.int64: 2**34, np.int32: 2**24}
"""Type of a bias to its largest magnitude: sums of the first kind leave INT32."""


def _grid(trial: CaseTrial, least: float = 2**-14, greatest: float = 2**-8) -> Grid:
    return drawn_scale(trial.random, least, greatest), 0


def _codes(trial: CaseTrial, shape: Sequence[int], largest: int = _LARGEST) -> Array:
    return trial.random.integers(-largest, largest + 1, tuple(shape)).astype(np.int16)


def _bytes(trial: CaseTrial, shape: Sequence[int]) -> Array:
    return trial.random.integers(-127, 128, tuple(shape)).astype(np.int8)


def _weighted(trial: CaseTrial, layer: Layer, data: Sequence[int], kernel: Sequence[int], maps: int) -> OperatorCase:
    """A layer with weights, one scale or one a channel, and a bias of either type; some results saturate."""
    is_wide, is_per_channel = trial.random.random(2) < (0.7, 0.5)
    dtype: Any = np.int64 if is_wide else np.int32
    x, y = _grid(trial), _grid(trial, 2**-10, 2**-6)
    scales = np.exp2(trial.random.uniform(-9, -6, maps if is_per_channel else ())).astype(np.float32)
    largest = int(min(_BIASES[dtype], 2**15 * float(y[0]) / float(x[0]) / float(np.max(scales))))
    bias = trial.random.integers(-largest, largest + 1, maps).astype(dtype)
    grids: list[Any] = [x, (scales, np.zeros(scales.shape, np.int32)), None]
    limits = (NONE, RELU, RELU6)[int(trial.random.integers(3))]
    return case_of(layer, [_codes(trial, data), _bytes(trial, kernel), bias], grids, y, limits=limits)


def _convolutions(trial: CaseTrial) -> Iterator[OperatorCase]:
    for _ in range(trial.count):
        layer = Convolution(num_output_maps=8, kernel_size_nd=(3, 2), stride_nd=(1, 2))
        yield _weighted(trial, layer, (2, 5, 7, 6), (8, 5, 3, 2), 8)
        layer = Convolution(num_output_maps=6, kernel_size_nd=(3, 3), num_groups=6)
        yield _weighted(trial, layer, (1, 6, 7, 6), (6, 1, 3, 3), 6)
        layer = Convolution(num_output_maps=197, kernel_size_nd=(1, 1))
        yield _weighted(trial, layer, (1, 2, 6, 6), (197, 2, 1, 1), 197)


def _deconvolutions(trial: CaseTrial) -> Iterator[OperatorCase]:
    for _ in range(trial.count):
        layer = Deconvolution(num_output_maps=5, kernel_size_nd=(3, 3), stride_nd=(2, 1))
        case = _weighted(trial, layer, (2, 3, 4, 3), (3, 5, 3, 3), 5)
        yield case_of(layer, case.inputs, _grids_of(case), _output_of(case))


def _inner_products(trial: CaseTrial) -> Iterator[OperatorCase]:
    for _ in range(trial.count):
        yield _weighted(trial, FullyConnected(num_output_channels=97), (9, 3, 2, 2), (97, 12), 97)
        x, y, z = _grid(trial), _grid(trial), (np.float32(trial.random.uniform(0.5, 4)), 0)
        yield case_of(MatrixMultiply(), [_codes(trial, (3, 4, 6)), _codes(trial, (3, 6, 5))], [x, y], z)


def _grids_of(case: OperatorCase) -> list[Any]:
    pairs = zip(case.layer.scales, case.layer.zero_points, strict=True)
    return [None if scale is None else (scale, zero_point) for scale, zero_point in pairs]


def _output_of(case: OperatorCase) -> Grid:
    return case.layer.output_scale, case.layer.output_zero_point


def _pairs(
    trial: CaseTrial,
    *operations: ElementWiseOperation,
    other: Sequence[int] = (1, 1, 40, 50),
    is_one_grid: bool = False,
) -> Iterator[OperatorCase]:
    """Pairs of codes: near each other, so that sums lie on ties, and far apart."""
    for operation in operations:
        for index in range(trial.count):
            a, b = _grid(trial), _grid(trial)
            if index % 2:
                b = (np.float32(a[0] * np.exp2(trial.random.integers(-3, 4))), 0)
            y = (np.float32(a[0] * np.exp2(trial.random.uniform(-1, 3))), 0)
            if operation is ElementWiseOperation.PROD:
                y = (np.float32(float(a[0]) * float(b[0]) * np.exp2(trial.random.uniform(8, 14))), 0)
            if operation is ElementWiseOperation.DIV:
                y = (np.float32(np.exp2(trial.random.uniform(-12, -4))), 0)
            first, second = _codes(trial, (1, 6, 40, 50)), _codes(trial, other, (_LARGEST, 40)[index % 2])
            if operation is ElementWiseOperation.DIV:
                second = np.where(second == 0, 1, second).astype(np.int16)
            if operation is ElementWiseOperation.EQUAL:
                first[:, :3] = np.broadcast_to(second, first[:, :3].shape)
            grids, limits = ([y, y], NONE) if is_one_grid else ([a, b], (NONE, RELU, RELU6)[index % 3])
            is_flag = operation.is_comparison
            yield case_of(
                Elementwise(op=operation),
                [first, second],
                grids,
                None if is_flag else y,
                to_type=DataType.BOOL if is_flag else None,
                limits=NONE if is_flag else limits,
            )


def _every_code() -> Array:
    """All codes but the lowest, whose magnitude is none."""
    return np.maximum(np.arange(-(2**15), 2**15), -_LARGEST).astype(np.int16)


def _of_one(
    trial: CaseTrial, make: Callable[[], Layer], y: Grid | None = None, *, is_positive: bool = False
) -> Iterator[OperatorCase]:
    """A function of all codes, or of those that are not negative; with scales that TFLite treats apart."""
    for index in range(trial.count):
        codes = np.abs(_every_code()) if is_positive else _every_code()
        x = (np.float32(2.0 ** -(11 + index // 2 % 3)), 0) if index % 2 else _grid(trial)
        yield case_of(make(), [codes.reshape(64, 1024)], [x], y or _grid(trial))


def _functions(trial: CaseTrial) -> Iterator[OperatorCase]:
    yield from _of_one(trial, lambda: Activation(activation_type=ActivationType.TANH), _OF_32768THS)
    for kind in (ActivationType.GELU_ERF, ActivationType.GELU_TANH):
        yield from _of_one(trial, functools.partial(Activation, activation_type=kind))
    for operation in (UnaryOperation.EXP, UnaryOperation.ABS, UnaryOperation.NEG):
        yield from _of_one(trial, functools.partial(Unary, op=operation))
    for operation in (UnaryOperation.LOG, UnaryOperation.SQRT, UnaryOperation.RSQRT):
        yield from _of_one(trial, functools.partial(Unary, op=operation), is_positive=True)


def _relus(trial: CaseTrial) -> Iterator[OperatorCase]:
    yield from _of_one(trial, lambda: Activation(activation_type=ActivationType.RELU))
    yield from _of_one(trial, lambda: Activation(activation_type=ActivationType.CLIP, alpha=0.0, beta=6.0))


def _softmaxes(trial: CaseTrial) -> Iterator[OperatorCase]:
    for index in range(trial.count):
        length = (5, 10, 33, 100)[index % 4]
        codes = _codes(trial, (2000 // length, length), (_LARGEST, 3000)[index % 2])
        yield case_of(Softmax(axes=0b10), [codes], [_grid(trial)], _OF_32768THS)


def _averages(trial: CaseTrial) -> Iterator[OperatorCase]:
    for index in range(trial.count):
        x = _grid(trial)
        layer = Pooling(pooling_type=PoolingType.AVERAGE, window_size_nd=(3, 2), stride_nd=(1 + index % 2, 1))
        layer.padding_mode = PaddingMode.SAME_UPPER
        yield case_of(layer, [_codes(trial, (1, 7, 9, 9), (_LARGEST, 30)[index % 2])], [x], x)


def _means(trial: CaseTrial) -> Iterator[OperatorCase]:
    for index in range(trial.count):
        axes, largest = (0b1100, 0b1000, 0b0010)[index % 3], (_LARGEST, 50)[index % 2]
        layer = Reduce(op=ReduceOperation.AVG, axes=axes, keep_dims=True)
        yield case_of(layer, [_codes(trial, (2, 5, 6, 7), largest)], [_grid(trial)], _grid(trial))


def _extremes(trial: CaseTrial) -> Iterator[OperatorCase]:
    for operation, _ in itertools.product((ReduceOperation.MAX, ReduceOperation.MIN), range(trial.count)):
        x = _grid(trial)
        yield case_of(Reduce(op=operation, axes=0b1100, keep_dims=False), [_codes(trial, (2, 5, 4, 3))], [x], x)


def _concatenations(trial: CaseTrial) -> Iterator[OperatorCase]:
    for _ in range(trial.count):
        y = _grid(trial)
        yield case_of(Concatenation(axis=1), [_codes(trial, (1, 5, 4, 3)), _codes(trial, (1, 2, 4, 3))], [y, y], y)


def _resizes(trial: CaseTrial) -> Iterator[OperatorCase]:
    for (height, width), _ in itertools.product(((10, 12), (3, 5), (7, 4)), range(trial.count)):
        x = _grid(trial)
        layer = Resize(shape=(1, 5, height, width), resize_mode=InterpolationMode.LINEAR)
        yield case_of(layer, [_codes(trial, (1, 5, 5, 6))], [x], x)


def _requantizations(trial: CaseTrial) -> Iterator[OperatorCase]:
    """To INT16, and from and to INT8."""
    eight = np.arange(-128, 128).astype(np.int8)
    for _ in range(trial.count):
        x, y = _grid(trial), _grid(trial)
        narrow = (np.float32(np.exp2(trial.random.uniform(-6, -3))), int(trial.random.integers(-128, 128)))
        yield case_of(Identity(), [_every_code()], [x], y)
        yield case_of(Identity(), [_every_code()], [x], narrow, to_type=DataType.INT8)
        yield case_of(Identity(), [eight], [narrow], y, to_type=DataType.INT16)


def _quantizations(trial: CaseTrial) -> Iterator[OperatorCase]:
    for _ in range(trial.count):
        y = _grid(trial)
        halves = (np.arange(-40000, 40000, 7) + np.float32(0.5)).astype(np.float32) * np.float32(y[0])
        yield case_of(Quantize(to_type=DataType.INT16), [halves], [None], y, to_type=DataType.INT16)


def _dequantizations(trial: CaseTrial) -> Iterator[OperatorCase]:
    for _ in range(trial.count):
        yield case_of(Dequantize(), [_every_code()], [_grid(trial)], None)


_Pair = ElementWiseOperation
SIXTEEN_BITS: Mapping[str, Callable[[CaseTrial], Iterator[OperatorCase]]] = {
    "average_pool": _averages,
    "bias_add": lambda trial: _pairs(trial, _Pair.SUM, other=(1, 6, 1, 1)),
    "comparison": lambda trial: _pairs(
        trial, _Pair.EQUAL, _Pair.GREATER, _Pair.GREATER_EQUAL, _Pair.LESS, _Pair.LESS_EQUAL
    ),
    "concat": _concatenations,
    "convolution": _convolutions,
    "deconvolution": _deconvolutions,
    "dequantize": _dequantizations,
    "eltwise_difference": lambda trial: _pairs(trial, _Pair.SUB),
    "eltwise_extreme": lambda trial: _pairs(trial, _Pair.MAX, _Pair.MIN, is_one_grid=True),
    "eltwise_product": lambda trial: _pairs(trial, _Pair.PROD),
    "eltwise_quotient": lambda trial: _pairs(trial, _Pair.DIV),
    "eltwise_sum": lambda trial: _pairs(trial, _Pair.SUM, other=(1, 6, 40, 50)),
    "function": _functions,
    "global_average_pool": _means,
    "inner_product": _inner_products,
    "leaky_relu": lambda trial: _of_one(
        trial, lambda: Activation(activation_type=ActivationType.LEAKY_RELU, alpha=0.1)
    ),
    "quantize": _quantizations,
    "reduce": _extremes,
    "relu": _relus,
    "requantize": _requantizations,
    "resize_bilinear": _resizes,
    "sigmoid": lambda trial: _of_one(trial, lambda: Activation(activation_type=ActivationType.SIGMOID), _OF_32768THS),
    "softmax": _softmaxes,
}
"""Operator to what draws its cases."""
