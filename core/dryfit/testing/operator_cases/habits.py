"""What the libraries behind quantize methods take, and how many cases are drawn for one: the argument of what draws."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError
from dryfit.network.data_types import DataType

NONE = (-math.inf, math.inf)
RELU = (0.0, math.inf)
RELU6 = (0.0, 6.0)
INT8, UINT8 = DataType.INT8, DataType.UINT8


@frozen(kw_only=True)
class Habits:
    """What a library takes.

    Attributes:
        types: of activations.
        weights: type of activations -> types of weights.
        channel_weights: types of weights that may have one scale for each output channel.
        weights_have_zero_points: types of weights whose zero point need not be 0.
        limits: of fused activations of weighted operators and sums.
        batched_products: types of operands that may both have a matrix for each sample.
        one_grid: operators whose input and output have one grid; `concat_int8` where only INT8 has.
        fixed_grid: operators whose output has the scale 1/256 and the lowest code as zero point.
        greatest_multiplier: of weighted operators.
        counts_padding: whether average pooling counts padding; None where either can be chosen.
        explicit_padding: whether average pooling takes any padding; else only SAME_UPPER.
        has_sixteen_bits: whether activations may be INT16, with weights of INT8.
    """

    types: tuple[DataType, ...] = (INT8, UINT8)
    weights: Mapping[DataType, tuple[DataType, ...]] = attrs.field(factory=lambda: {INT8: (INT8,), UINT8: (UINT8,)})
    channel_weights: frozenset[DataType] = frozenset({INT8})
    weights_have_zero_points: frozenset[DataType] = frozenset({UINT8})
    limits: tuple[tuple[float, float], ...] = (NONE,)
    batched_products: frozenset[DataType] = frozenset()
    one_grid: frozenset[str] = frozenset()
    fixed_grid: frozenset[str] = frozenset()
    greatest_multiplier: float = 2.0**1.5
    counts_padding: bool | None = False
    explicit_padding: bool = False
    has_sixteen_bits: bool = False


_TENSORFLOW_LITE = Habits(
    limits=(NONE, RELU, RELU6),
    batched_products=frozenset({INT8}),
    one_grid=frozenset({"average_pool", "resize_bilinear", "concat_int8"}),
    fixed_grid=frozenset({"sigmoid", "softmax"}),
    has_sixteen_bits=True,
)
_ONNX_RUNTIME = Habits(
    weights={INT8: (INT8,), UINT8: (UINT8, INT8)},
    channel_weights=frozenset({INT8, UINT8}),
    batched_products=frozenset({INT8, UINT8}),
    one_grid=frozenset({"resize_bilinear"}),
    counts_padding=None,
    explicit_padding=True,
)
_CAFFE2 = Habits(
    types=(UINT8,),
    channel_weights=frozenset(),
    limits=(NONE, RELU),
    one_grid=frozenset({"relu", "concat_int8"}),
    fixed_grid=frozenset({"sigmoid", "softmax"}),
    greatest_multiplier=0.99,
    counts_padding=True,
    explicit_padding=True,
)
_HABITS: Mapping[str, Habits] = {"tflite": _TENSORFLOW_LITE, "onnx": _ONNX_RUNTIME, "caffe2": _CAFFE2}


def family_of(method: str) -> str:
    """The library that a method is about: `tflite` for every `tflite-...`."""
    return method.split("-", maxsplit=1)[0]


def habits_of(method: str) -> Habits:
    """What the library of a method takes.

    Raises:
        UnknownNameError: no library is known for it.
    """
    family = family_of(method)
    if family not in _HABITS:
        raise UnknownNameError("method with a library", method, _HABITS)
    return _HABITS[family]


@frozen(eq=False)
class CaseTrial:
    """How cases are drawn.

    Attributes:
        habits: of the library that is to answer.
        random: generator.
        count: how many rounds.
        is_exhaustive: sums of all 65,536 pairs of codes, and every half code of 8 bits in each weighted case with ties;
            else a share of them, for files that stay small.
    """

    habits: Habits
    random: np.random.Generator
    count: int
    is_exhaustive: bool = True
