"""Trial cases of convolution, deconvolution and inner products: ties by their biases, and random windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.testing.operator_cases.drawn_grids import WeightedGrids, drawn_weighted_grids, tie_seeking_biases
from dryfit.testing.operator_cases.habits import CaseTrial
from dryfit.testing.operator_cases.operator_case import OperatorCase, case_of

Array = np.ndarray[Any, Any]
_TIES = len(tie_seeking_biases(1.0))
_FEW_TIES = 197
"""Not a multiple of 8: vectors leave some channels over."""
_PATTERN = 31
"""Weights that no sum depends on repeat after so many elements."""
_RANDOM_REACH = (2.0**-12, 2.0**-8)
"""Multipliers of sums that are not chosen."""
_LARGEST_BIAS = 9000


@frozen(kw_only=True)
class _Weights:
    """Types of activations and weights, and whether these have a scale a channel."""

    activations: DataType
    weights: DataType
    is_per_channel: bool

    def grids(self, trial: CaseTrial, channels: int, reach: tuple[float, float] | None = None) -> WeightedGrids:
        """Grids for so many output channels."""
        types = (self.activations, self.weights)
        is_per_channel = self.is_per_channel
        return drawn_weighted_grids(
            trial.random, trial.habits, types, channels, is_per_channel=is_per_channel, reach=reach
        )


@frozen(kw_only=True)
class _Form:
    """A form of a convolution."""

    groups: int = 1
    is_depthwise: bool = False
    kernel: tuple[int, int] = (1, 1)


_FORMS = (_Form(), _Form(kernel=(3, 3)), _Form(groups=2), _Form(is_depthwise=True, kernel=(3, 2)))


def _rounds(trial: CaseTrial) -> Iterator[tuple[int, _Weights]]:
    """Every pair of types that the library takes, `count` times."""
    for activations in trial.habits.types:
        for weights in trial.habits.weights[activations]:
            for is_per_channel in (False, True)[: 1 + (weights in trial.habits.channel_weights)]:
                given = _Weights(activations=activations, weights=weights, is_per_channel=is_per_channel)
                yield from ((index, given) for index in range(trial.count))


def _codes(trial: CaseTrial, dtype: DataType, shape: Sequence[int]) -> Array:
    limits = np.iinfo(dtype.numpy)
    return trial.random.integers(limits.min, limits.max + 1, tuple(shape)).astype(dtype.numpy)


def _patterned(trial: CaseTrial, dtype: DataType, shape: Sequence[int]) -> Array:
    return np.resize(_codes(trial, dtype, [_PATTERN]), tuple(shape))


def _biases(trial: CaseTrial, channels: int) -> Array:
    return trial.random.integers(-_LARGEST_BIAS, _LARGEST_BIAS, channels).astype(np.int32)


def _tied_biases(trial: CaseTrial, multipliers: Array) -> Array:
    """For each channel a bias that seeks ties with its multiplier; together they meet all, or every fourth."""
    different, which = np.unique(multipliers, return_inverse=True)
    every = tie_seeking_biases(different)
    channels = np.arange(len(multipliers))
    stride = max(_TIES // len(multipliers), 1)
    return every[which, (channels * stride + int(trial.random.integers(_TIES))) % _TIES]


def _maps(trial: CaseTrial) -> int:
    return _TIES if trial.is_exhaustive else _FEW_TIES


def _limits(trial: CaseTrial) -> tuple[float, float]:
    limits = trial.habits.limits
    return limits[int(trial.random.integers(len(limits)))]


def _case(
    layer: Layer, x: Array, w: Array, bias: Array | None, grids: WeightedGrids, limits: tuple[float, float]
) -> OperatorCase:
    inputs = [x, w] if bias is None else [x, w, bias]
    return case_of(layer, inputs, [grids.x, grids.w, None][: len(inputs)], grids.y, limits=limits)


def convolution_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Each round has ties in every form, and one form with random sums, strides, paddings and dilations."""
    for index, weights in _rounds(trial):
        for form in _FORMS:
            yield _tied_convolution(trial, form, weights)
        yield _random_convolution(trial, _FORMS[index % len(_FORMS)], weights)


def _tied_convolution(trial: CaseTrial, form: _Form, weights: _Weights) -> OperatorCase:
    """One output position, and input codes that are all zero points: each sum is a channel's bias."""
    maps = _maps(trial) // form.groups * form.groups
    groups = channels = maps if form.is_depthwise else form.groups
    grids = weights.grids(trial, maps)
    x = np.full((1, channels, *form.kernel), grids.x[1], weights.activations.numpy)
    w = _patterned(trial, weights.weights, (maps, channels // groups, *form.kernel))
    layer = Convolution(num_output_maps=maps, kernel_size_nd=form.kernel, num_groups=groups)
    return _case(layer, x, w, _tied_biases(trial, grids.multipliers), grids, _limits(trial))


def _random_convolution(trial: CaseTrial, form: _Form, weights: _Weights) -> OperatorCase:
    maps, channels, groups = (10, 10, 10) if form.is_depthwise else (8, 4, form.groups)
    dilation = 1 if form.is_depthwise else int(trial.random.integers(1, 3))
    padding = tuple(min(1, extent // 2) for extent in form.kernel)
    layer = Convolution(
        num_output_maps=maps,
        kernel_size_nd=form.kernel,
        num_groups=groups,
        stride_nd=tuple(trial.random.integers(1, 3, 2).tolist()),
        dilation_nd=(dilation, dilation),
        pre_padding=padding,
        post_padding=padding,
    )
    grids = weights.grids(trial, maps, _RANDOM_REACH)
    x = _codes(trial, weights.activations, (2, channels, 7, 6))
    w = _codes(trial, weights.weights, (maps, channels // groups, *form.kernel))
    return _case(layer, x, w, _biases(trial, maps), grids, _limits(trial))


def deconvolution_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Ties, and random windows that overlap."""
    for _, weights in _rounds(trial):
        maps = _maps(trial)
        grids = weights.grids(trial, maps)
        x = np.full((1, 1, 1, 1), grids.x[1], weights.activations.numpy)
        w = _patterned(trial, weights.weights, (1, maps, 2, 1))
        layer = Deconvolution(num_output_maps=maps, kernel_size_nd=(2, 1), stride_nd=(2, 1))
        yield _case(layer, x, w, _tied_biases(trial, grids.multipliers), grids, trial.habits.limits[0])
        grids = weights.grids(trial, 5, _RANDOM_REACH)
        padding = (int(trial.random.integers(0, 2)),) * 2
        layer = Deconvolution(
            num_output_maps=5, kernel_size_nd=(3, 3), stride_nd=(2, 1), pre_padding=padding, post_padding=padding
        )
        x, w = _codes(trial, weights.activations, (1, 3, 4, 3)), _codes(trial, weights.weights, (3, 5, 3, 3))
        yield _case(layer, x, w, _biases(trial, 5), grids, trial.habits.limits[0])


def inner_product_cases(trial: CaseTrial) -> Iterator[OperatorCase]:
    """Fully connected layers with ties, and random ones; products with one matrix, and with one a sample."""
    for _, weights in _rounds(trial):
        maps = _maps(trial)
        grids = weights.grids(trial, maps)
        x = np.full((1, 2, 1, 1), grids.x[1], weights.activations.numpy)
        w = _patterned(trial, weights.weights, (maps, 2))
        biases = _tied_biases(trial, grids.multipliers)
        yield _case(FullyConnected(num_output_channels=maps), x, w, biases, grids, _limits(trial))
        grids = weights.grids(trial, 9, _RANDOM_REACH)
        x, w = _codes(trial, weights.activations, (4, 3, 2, 2)), _codes(trial, weights.weights, (9, 12))
        layer = FullyConnected(num_output_channels=9)
        yield _case(layer, x, w, _biases(trial, 9), grids, trial.habits.limits[0])
        product = MatrixMultiply(op1=MatrixOperation.TRANSPOSE)
        yield _case(product, x.reshape(4, 12), w, None, grids, trial.habits.limits[0])
        if weights.weights in trial.habits.batched_products and not weights.is_per_channel:
            x, w = _codes(trial, weights.activations, (3, 4, 6)), _codes(trial, weights.weights, (3, 6, 5))
            yield _case(MatrixMultiply(), x, w, None, grids, trial.habits.limits[0])
